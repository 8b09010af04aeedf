"""Lines of standard input in chunks, and notes about them."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from regard.cli.lines import BLOCK, CHUNK, Lines, Truncations, listed, waiting_lines


def test_texts_come_in_chunks() -> None:
    texts = [str(number) for number in range(CHUNK + 1)]
    assert list(Lines(texts)) == [texts[:CHUNK], texts[CHUNK:]]


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "wb", buffering=0) as writer:  # noqa: PTH123 (no path)
        yield reader, writer


def test_a_line_comes_before_the_next_is_written(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = pipe
    lines = waiting_lines(reader, most=3)
    for text in (b"a", b"", b"bc"):
        writer.write(text + b"\n")
        assert next(lines) == [text]
    writer.write(b"d\r\ne\nhalf a ")
    assert next(lines) == [b"d\r", b"e"], "what waits comes together"
    writer.write(b"line\n1\n2\n3\n4")
    assert next(lines) == [b"half a line", b"1", b"2"]
    assert next(lines) == [b"3"]
    writer.close()
    assert list(lines) == [[b"4"]]


def test_lines_of_any_length_and_number_come_whole_and_in_order() -> None:
    written = [b"x" * (7 * number) for number in range(400)] + [b"y" * (3 * BLOCK), b"", b"z"]
    for end in (b"", b"\n"):
        found = list(waiting_lines(io.BytesIO(b"\n".join(written) + end), most=50))
        assert [line for chunk in found for line in chunk] == written
        assert [len(chunk) for chunk in found] == [50] * 8 + [3]
    assert list(waiting_lines(io.BytesIO(b""), most=5)) == []
    assert list(waiting_lines(io.BytesIO(b"\n"), most=5)) == [[b""]]


def test_a_file_comes_in_full_chunks(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"a line of a file\n" * 10_000)
    with (tmp_path / "lines").open("rb") as file:
        sizes = list(map(len, waiting_lines(file, most=CHUNK)))
    assert set(sizes[:-1]) == {CHUNK}


def test_many_lines_are_not_all_listed() -> None:
    assert listed([3]) == "line 3"
    assert listed(range(1, 1003)) == "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 992 more"


def test_lines_are_noted_by_what_became_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    truncations = Truncations()
    for line, fate in ((1, ""), (2, "cut at the end"), (5, "read in parts"), (7, "cut at the end")):
        truncations.add(line, fate)
    truncations.tell()
    assert capsys.readouterr().err.splitlines() == [
        "note: longer than the model reads at once, cut at the end: lines 2, 7",
        "note: longer than the model reads at once, read in parts: line 5",
    ]
