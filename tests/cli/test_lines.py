"""Lines of standard input in chunks, and notes about them."""

import pytest

from regard.cli.lines import CHUNK, Truncations, chunks, listed


def test_texts_come_in_chunks() -> None:
    texts = [str(number) for number in range(CHUNK + 1)]
    assert list(chunks(texts)) == [texts[:CHUNK], texts[CHUNK:]]


def test_many_lines_are_not_all_listed() -> None:
    assert listed([3]) == "line 3"
    assert listed(range(1, 1003)) == "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 992 more"


def test_lines_are_noted_by_what_became_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    truncations = Truncations()
    for line, fate in ((1, ""), (2, "cut at the end"), (5, "read in parts"), (7, "cut at the end")):
        truncations.add(line, fate)
    truncations.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: longer than the model reads, cut at the end: lines 2, 7",
        "note: longer than the model reads, read in parts: line 5",
    ]
