"""Lines in, lines out: arguments or standard input in chunks, their predictions, notes that name lines by number."""

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from regard.cli.terminal import Waiting, json_line, note, tell
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.api import Run
    from regard.tasks.options import Options
    from regard.tasks.results import Result, Results

CHUNK = 512  # lines predicted together: output flows, and memory does not grow with the input


def chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts, or the lines of standard input, so many at a time; at a keyboard each line is answered at once."""
    lines = iter(texts) if texts else read_stdin()
    count = 1 if not texts and sys.stdin.isatty() else CHUNK
    while chunk := list(islice(lines, count)):
        yield chunk


def read_stdin() -> Iterator[str]:
    """Yield the lines of standard input, which ends lines at the byte \\n and is UTF-8."""
    from regard.data.formats.rows import decode, excerpt

    if sys.stdin.isatty():
        tell("Type one sentence per line; Ctrl-D ends.")
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        text, reason = decode(raw.removesuffix(b"\n").removesuffix(b"\r"))
        if reason:
            raise DataError(
                f"standard input, line {number}: {reason} ('{excerpt(text)}').",
                "Text in UTF-8 is expected; iconv converts other encodings: iconv -f latin1 -t utf-8",
            )
        yield text


class Predictor:
    """Predicts chunk after chunk with one run, and shows how far it is."""

    def __init__(self, run: "Run[Any]", options: "Options", waiting: Waiting) -> None:
        self.run = run
        self.options = options
        self.waiting = waiting
        self._n_chunks = 0
        self._done = 0

    def __call__(self, inputs: Sequence[Any], **fields: Any) -> "Results[Result]":
        """Predict one more chunk; `fields` are those of the options that belong to its inputs."""
        progress = self.waiting.after(self._done)
        options = replace(self.options.chunk(self._n_chunks), progress=lambda what, done: progress(done), **fields)
        found = self.run.predict_with(inputs, options)
        self.waiting.hide()
        self._n_chunks += 1
        self._done += len(inputs)
        return found


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How predictions are shown: as lines for people or as JSON, with so many alternatives (0: nobody asked for any)."""

    top: int = 0
    json: bool = False

    def __call__(self, result: "Result | None", **facts: Any) -> list[str]:
        """The lines of one result; in JSON with what is known of its input, which is all where there is no result."""
        if self.json:
            return [json_line({**facts, **(result.to_json(top=self.top) if result is not None else {})})]
        return result.lines(top=self.top) if result is not None else []


class Truncations:
    """The lines that were longer than the model reads at once, by what became of them."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}

    def add(self, line: int, truncation: str) -> None:
        """Take in what became of a line; nothing where it was read whole."""
        if truncation:
            self._lines.setdefault(truncation, []).append(line)

    def tell(self) -> None:
        """Name the lines, if there are such."""
        for truncation, lines in self._lines.items():
            note(f"longer than the model reads, {truncation}: {listed(lines)}")


def listed(numbers: Sequence[int], *, most: int = 10) -> str:
    """Write the numbers of lines, not too many of them."""
    shown = ", ".join(f"{number:,}" for number in numbers[:most])
    more = f" and {len(numbers) - most:,} more" if len(numbers) > most else ""
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{more}"


def note_files(texts: Sequence[str], *, tables: bool = False) -> None:
    """Hint at texts that are names of files: perhaps their content was meant; `tables`: whether --data takes them."""
    for text in texts:
        if os.path.isfile(text):  # noqa: PTH113 (a Path would refuse a text that is too long for a name)
            table = f"--data {text} for a table, " if tables else ""
            note(f"'{text}' is read as text, but a file has that name. For its content: {table}< {text} for its lines")
