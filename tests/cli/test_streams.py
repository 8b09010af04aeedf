import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.streams import OutputError, Stream, standard_streams


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell in which `regard` is the command."""
    line = f'regard() {{ "{sys.executable}" -m regard "$@"; }}; {line}'
    return subprocess.run(["sh", "-c", line], capture_output=True, env={**os.environ, **environment})


class Full(io.StringIO):
    """A stream whose disk is full."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_results_that_cannot_be_written_are_an_error() -> None:
    with pytest.raises(OutputError) as raised:
        Stream(Full(), essential=True).write("a result")
    assert not raised.value.reader_left


def test_what_cannot_be_told_is_none() -> None:
    assert Stream(Full(), essential=False).write("a note") == 6


def test_after_a_failure_a_stream_is_silent() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        stream = Stream(pipe, essential=True)
        stream.write("in the buffer")
        with pytest.raises(OutputError) as raised:
            stream.flush()
        assert raised.value.reader_left
        stream.write("nowhere")
        stream.flush()


def test_everything_else_is_the_streams_own() -> None:
    assert not Stream(io.StringIO(), essential=True).isatty()


def test_closed_streams_are_empty_and_the_old_ones_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with standard_streams():
        assert sys.stdin.buffer.read() == b""
        for stream in (sys.stdout, sys.stderr):
            stream.write("nobody reads this")
            stream.flush()
    assert (sys.stdin, sys.stdout, sys.stderr) == (None, None, None)


def test_text_is_utf8_and_names_are_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.fsdecode(b"a\xff")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with standard_streams():
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"größer {name}\n")
            stream.flush()
    assert out.buffer.getvalue() == "größer a".encode() + b"\xff\n"
    assert err.buffer.getvalue() == "größer a?\n".encode()


@pytest.mark.parametrize("command", ["regard", "regard --help", "regard --version"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_in_two_lines(command: str, unbuffered: str) -> None:
    ended = shell(f"{command} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert ended.returncode == 1
    assert ended.stderr.decode().splitlines() == [
        "error: Standard output cannot be written: No space left on device.",
        "Free some space, or send the output elsewhere.",
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("regard >&-", 0),
        ("regard trian 2>&-", 2),
        ("regard trian 2>/dev/full", 2),
        ("regard runs nowhere <&- >&- 2>&-", 2),
    ],
)
def test_streams_that_are_closed_or_full_do_not_change_the_outcome(line: str, code: int) -> None:
    ended = shell(line)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    ended = shell(f"regard show '{tmp_path}/größe'", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert ended.stderr.decode().startswith(f"error: {tmp_path}/größe is not a run: ")


def test_without_standard_input_there_is_nothing_to_translate(
    command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from regard.cli.main import main

    monkeypatch.setattr(sys, "stdin", None)
    assert main(["translate", str(trained), "--engine", "torch"]) == 0
    assert capsys.readouterr() == ("", "")
