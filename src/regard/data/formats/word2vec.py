"""Word vectors in word2vec's text format, for an embedding that starts from what others have learned.

The first line says how many words and how wide; each other line is a word and its numbers, separated by spaces.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from regard.data.formats.files import DAMAGE, damaged, open_file
from regard.errors import DataError


def read_vectors(path: str | Path, vocabulary: Mapping[str, int]) -> tuple[npt.NDArray[np.float32], int]:
    """Return the vectors of a vocabulary's words, (largest id + 1, width), and how many words were found.

    Rows of words that the file does not have are zero. Of a word that it has twice, the first line counts.
    Memory holds the vocabulary's vectors only. A path that ends in .gz is unpacked on the way.
    """
    name = os.fspath(path)
    try:
        with open_file(name) as file:
            return _read(name, file, vocabulary)
    except DAMAGE:
        raise damaged(name) from None


def _read(path: str, file: BinaryIO, vocabulary: Mapping[str, int]) -> tuple[npt.NDArray[np.float32], int]:
    n_words, width = _header(path, file.readline())
    vectors = np.zeros((max(vocabulary.values(), default=-1) + 1, width), dtype=np.float32)
    found: set[str] = set()
    line_number = 1
    for line_number, line in enumerate(file, start=2):
        # From the right, for some files have words with spaces inside.
        word_bytes, *fields = line.rstrip(b" \r\n").rsplit(b" ", width)
        if len(fields) != width:
            raise _wrong(path, line_number, f"expected a word and {width} numbers, found {len(fields)} numbers")
        try:
            word = word_bytes.decode("utf-8")
        except UnicodeDecodeError:
            raise _wrong(path, line_number, "the word is not UTF-8") from None
        if word in vocabulary and word not in found:
            vectors[vocabulary[word]] = _numbers(path, line_number, fields)
            found.add(word)
    if line_number - 1 != n_words:
        raise _wrong(path, 1, f"it promises {n_words:,} words, and {line_number - 1:,} follow")
    return vectors, len(found)


def _header(path: str, line: bytes) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and int(field) > 0 for field in fields):
        shown = line[:40].decode("utf-8", errors="replace").rstrip()
        raise DataError(
            f"{path}, line 1: expected the number of words and the width, as in '400000 300', found '{shown}'.",
            "Write such a line at the top: GloVe's files come without it.",
        )
    return int(fields[0]), int(fields[1])


def _numbers(path: str, line_number: int, fields: list[bytes]) -> npt.NDArray[np.float32]:
    try:
        numbers = np.array([float(field) for field in fields])
    except ValueError:
        shown = b" ".join(fields)[:40].decode("utf-8", errors="replace")
        raise _wrong(path, line_number, f"expected numbers after the word, found '{shown}'") from None
    # Also false for what is no number.
    if not (np.abs(numbers) <= np.finfo(np.float32).max).all():
        raise _wrong(path, line_number, "a number is not finite")
    return numbers.astype(np.float32)


def _wrong(path: str, line_number: int, reason: str) -> DataError:
    return DataError(f"{path}, line {line_number}: {reason}.", "Is the file in word2vec's text format, and complete?")
