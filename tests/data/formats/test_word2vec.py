"""The reader of word2vec's text format, and how strict it is."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from regard.data.formats.word2vec import read_vectors
from regard.errors import DataError

VOCABULARY = {"<pad>": 0, "dog": 1, "New York": 2, "Straße": 3, "unseen": 4}
FILE = "5 2\ndog 1.5 -2\ncat x y\nNew York 0.25 1e-3 \ndog 9 9\nStraße 3 4\n"
REMEDY = "\nIs the file in word2vec's text format, and complete?"


def test_words_of_the_vocabulary_are_found(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(FILE, encoding="utf-8")
    ids, vectors = read_vectors(path, VOCABULARY)
    assert ids.tolist() == [1, 2, 3]
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.array([[1.5, -2], [0.25, 1e-3], [3, 4]], dtype=np.float32))
    packed = tmp_path / "vectors.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(read_vectors(packed, VOCABULARY)[1], vectors)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"2 2\ndog 1 2\ncat 1\n", "line 3: expected a word and 2 numbers, found 1 numbers"),
        (b"2 2\ndog 1 2\n\n", "line 3: expected a word and 2 numbers, found 0 numbers"),
        (b"1 2\ndog 1 two\n", "line 2: expected numbers after the word, found '1 two'"),
        (b"1 2\ndog 1 nan\n", "line 2: a number is not finite"),
        (b"1 2\ndog 1 1e99\n", "line 2: a number is not finite"),
        (b"2 2\ndog 1 2\n\xff 1 2\n", "line 3: the word is not UTF-8"),
        (b"3 2\ndog 1 2\n", "line 1: it promises 3 words, and 1 follow"),
        (b"5 1000000000\ndog 1 2\n", "line 2: expected a word and 1000000000 numbers, found 2 numbers"),
        (b"1 2\ndog 1 2\ncat 1 2\n", "line 1: it promises 1 words, and 2 follow"),
    ],
)
def test_wrong_lines_are_named(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_vectors(path, VOCABULARY)
    assert str(caught.value) == f"{path}, {problem}." + REMEDY


@pytest.mark.parametrize("first", ["", "dog 0.1 0.2", "400000", "0 300", "-1 3", "5 1000000000000", "9" * 35 + " 3"])
def test_a_file_without_the_first_line(first: str, tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text(f"{first}\ncat 1 2\n")
    with pytest.raises(DataError) as caught:
        read_vectors(path, VOCABULARY)
    assert str(caught.value) == (
        f"{path}, line 1: expected the number of words and the width, as in '400000 300', found '{first}'.\n"
        "Write such a line at the top: GloVe's files come without it."
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text(FILE)
    path = tmp_path / "vektors.txt"
    with pytest.raises(DataError) as caught:
        read_vectors(path, VOCABULARY)
    assert str(caught.value) == f"{path}: there is no such file.\nDid you mean {tmp_path}/vectors.txt?"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(FILE)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError) as caught:
        read_vectors(path, VOCABULARY)
    assert str(caught.value) == f"{path}: cannot be read (Permission denied).\nCheck its permissions."


def test_a_packed_file_that_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(FILE.encode())[:-9])
    with pytest.raises(DataError) as caught:
        read_vectors(path, VOCABULARY)
    assert caught.value.problem == f"{path}: damaged or incomplete gzip data after line 6."
    assert caught.value.remedy == f"Copy it again; `gzip -t {path}` tells when it is whole."
