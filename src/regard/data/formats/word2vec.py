"""Word vectors in word2vec's text format, for an embedding that starts from what others have learned.

The first line says how many words and how wide; each other line is a word and its numbers, separated by spaces.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.data.formats.rows import byte_lines
from regard.errors import DataError

_HEADER = re.compile(rb"\s*0*([1-9][0-9]{0,9})\s+0*([1-9][0-9]{0,9})\s*")


def read_vectors(
    path: str | Path, vocabulary: Mapping[str, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the ids (N,) of those of a vocabulary's words that the file has, and their vectors (N, width).

    Of a word that it has twice, the first line counts.
    Memory holds the vocabulary's vectors only. A path that ends in .gz is unpacked on the way.
    """
    name = os.fspath(path)
    lines = byte_lines(name)
    n_words, width = _header(name, next(lines))
    found: dict[int, npt.NDArray[np.float32]] = {}
    line_number = 1
    for line_number, line in enumerate(lines, start=2):
        # From the right, for some files have words with spaces inside.
        word, *fields = line.rstrip(b" \r").rsplit(b" ", width)
        if len(fields) != width:
            raise _wrong(name, line_number, f"expected a word and {width} numbers, found {len(fields)} numbers")
        try:
            id = vocabulary.get(word.decode("utf-8"))
        except UnicodeDecodeError:
            raise _wrong(name, line_number, "the word is not UTF-8") from None
        if id is not None and id not in found:
            found[id] = _numbers(name, line_number, fields)
    if line_number - 1 != n_words:
        raise _wrong(name, 1, f"it promises {n_words:,} words, and {line_number - 1:,} follow")
    ids = sorted(found)
    vectors = np.array([found[id] for id in ids], dtype=np.float32).reshape(-1, width)
    return np.array(ids, dtype=np.int64), vectors


def _header(path: str, line: bytes) -> tuple[int, int]:
    found = _HEADER.fullmatch(line)
    if not found:
        shown = line[:40].decode("utf-8", errors="replace").rstrip()
        raise DataError(
            f"{path}, line 1: expected the number of words and the width, as in '400000 300', found '{shown}'.",
            "Write such a line at the top: GloVe's files come without it.",
        )
    return int(found[1]), int(found[2])


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
