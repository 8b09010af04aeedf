"""Bytes to lines: where a line ends, and what makes it bad."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.formats import rows
from regard.data.formats.rows import Bad, decode, excerpt, read_lines
from regard.errors import DataError


def lines_of(folder: Path, content: bytes, name: str = "a.en") -> list[str | Bad]:
    (folder / name).write_bytes(content)
    return list(read_lines(str(folder / name)))


def test_lines_end_at_the_newline_byte_only(tmp_path: Path) -> None:
    text = "one\u2028still one\ntwo\u0085\x0c\x1c\x0b\rstill two\nthree"
    assert lines_of(tmp_path, text.encode()) == ["one\u2028still one", "two\u0085\x0c\x1c\x0b\rstill two", "three"]


def test_one_carriage_return_belongs_to_the_line_end(tmp_path: Path) -> None:
    assert lines_of(tmp_path, b"one\r\ntwo\r\r\nthree\r") == ["one", "two\r", "three\r"]


def test_a_byte_order_mark_is_removed_at_the_start_only(tmp_path: Path) -> None:
    assert lines_of(tmp_path, b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n") == ["one", "\ufefftwo"]


def test_a_last_line_needs_no_newline_and_an_empty_line_counts(tmp_path: Path) -> None:
    assert lines_of(tmp_path, b"one\n\ntwo") == ["one", "", "two"]
    assert lines_of(tmp_path, b"one\n\n") == ["one", ""]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(DataError) as caught:
        lines_of(tmp_path, "\ufeffone\n".encode(encoding))
    assert caught.value.problem == f"{tmp_path}/a.en: UTF-8 was expected, its first bytes say UTF-16."
    assert caught.value.remedy == "Save it as UTF-8."


def test_bad_lines_have_number_reason_and_excerpt(tmp_path: Path) -> None:
    file = str(tmp_path / "a.en")
    assert lines_of(tmp_path, b"one\nM\xfcnchen\nthr\0ee\nfour\n") == [
        "one",
        Bad(file, 2, "not UTF-8", "M\\xfcnchen"),
        Bad(file, 3, "NUL byte", "thr\\x00ee"),
        "four",
    ]


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 8)
    file = str(tmp_path / "a.en")
    read = lines_of(tmp_path, b"12345678\n" + "123456789ä12345678901234\n".encode() + "12345678ä\nend\n".encode())
    assert read == [
        "12345678",
        Bad(file, 2, "line too long", "123456789"),
        Bad(file, 3, "line too long", "12345678\\xc3"),
        "end",
    ]


def test_a_damaged_gzip_names_the_line_reached(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(50_000)))
    with pytest.raises(DataError) as caught:
        lines_of(tmp_path, whole[: len(whole) // 2], "a.en.gz")
    before, _, line = caught.value.problem.rstrip(".").rpartition(" ")
    assert before == f"{tmp_path}/a.en.gz: damaged or incomplete gzip data after line"
    assert 10_000 < int(line) < 40_000


def test_a_file_that_only_claims_to_be_gzip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.en\.gz: damaged or incomplete gzip data after line 0\."):
        lines_of(tmp_path, b"plain text\n", "a.en.gz")


def test_a_gzip_of_nothing_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.en\.gz: the file is empty\."):
        lines_of(tmp_path, gzip.compress(b""), "a.en.gz")


def test_an_excerpt_is_short_and_harmless() -> None:
    assert excerpt("x" * 61) == "x" * 60 + "…"
    assert excerpt("x" * 60) == "x" * 60
    assert excerpt("\x1b[31mred\u2028ä") == "\\x1b[31mred\\u2028ä"


@settings(deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n")))
def test_every_text_survives_decoding(text: str) -> None:
    assert decode(text.encode()) == (text, "")
