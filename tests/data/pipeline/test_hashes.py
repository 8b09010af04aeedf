"""The hash of a file's content, and of a sentence."""

import hashlib
from pathlib import Path

import pytest

from regard.data.pipeline.hashes import content_hash, sentence_hash
from regard.errors import DataError


def test_a_hash_is_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"ab")
    assert content_hash(tmp_path / "one") == hashlib.sha256(b"ab").hexdigest()


def test_a_missing_file_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        content_hash(tmp_path / "train.en")


@pytest.mark.parametrize("other", ["  ein Caf\u00e9\u00a0 ", "EIN CAFE\u0301", "ein\tcafe\u0301"])
def test_sentences_are_the_same_up_to_form_case_and_spaces(other: str) -> None:
    assert sentence_hash("ein caf\u00e9") == sentence_hash(other)


def test_other_sentences_are_not() -> None:
    assert len({sentence_hash(text) for text in ("ein Haus", "einHaus", "ein Haus.", "ein", "")}) == 5
    assert 0 <= sentence_hash("x") < 2**64
