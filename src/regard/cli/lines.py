"""Lines in, lines out: arguments or standard input in chunks, their predictions, notes that name lines by number."""

import codecs
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.cli.options import given
from regard.cli.terminal import Waiting, json_line, note, tell
from regard.data.formats.rows import NOT_UTF_8, Bad, decode, excerpt
from regard.data.pipeline.bad_rows import BadRows
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.api import Run
    from regard.api.process_pool import Chunk, ProcessPool
    from regard.tasks.options import Options
    from regard.tasks.results import Result, Results

CHUNK = 512  # lines predicted together: output flows, and memory does not grow with the input
BLOCK = 1 << 16  # bytes read at once


class Lines:
    """Texts of the command line, or the lines of standard input, UTF-8, as they come: so many at a time.

    A bad line is read as an empty one, so that each answer keeps its line, and is named at the end. With `on_bad` stop it
    is an error, after the answers to what stands before it.
    """

    def __init__(self, texts: Sequence[str] = (), *, on_bad: str = "") -> None:
        if texts and on_bad:
            raise UsageError("--on-bad is for files and standard input.", "Leave it out.")
        self.texts = texts
        self._on_bad = given({"on_bad": on_bad}).get("on_bad", "keep-going")
        self._n_read = 0
        self._bad_rows = BadRows("line")
        self._first_remedy = ""
        self._problems: dict[int, str] = {}  # of the lines that came last, by number
        self._holds_utf_8 = False  # characters beyond ASCII, that is

    def __iter__(self) -> Iterator[list[str]]:
        if not self.texts:
            yield from self._read_stdin()
        waiting = iter(self.texts)
        while chunk := list(islice(waiting, CHUNK)):
            yield chunk

    @property
    def stream(self) -> BinaryIO | None:
        """What is read from, if that may make one wait."""
        return None if self.texts else sys.stdin.buffer

    def _read_stdin(self) -> Iterator[list[str]]:
        """Yield the lines that wait there together; at a keyboard each line alone."""
        if sys.stdin.isatty():
            tell("Type one sentence per line; Ctrl-D ends.")
        for raws in waiting_lines(sys.stdin.buffer, most=1 if sys.stdin.isatty() else CHUNK):
            lines: list[str] = []
            self._problems.clear()
            for raw in raws:
                self._n_read += 1
                marked = raw.removeprefix(codecs.BOM_UTF8) if self._n_read == 1 else raw
                text, reason = decode(marked.removesuffix(b"\r"))
                if reason and lines and self._on_bad == "stop":
                    yield lines
                self._holds_utf_8 = self._holds_utf_8 or not (reason or raw.isascii())
                lines.append(self.bad(self._n_read, reason, text, self._remedy(reason)) if reason else text)
            yield lines

    def bad(self, number: int, reason: str, text: str, remedy: str) -> str:
        """Take in that a line is bad, and return what is read in its place; DataError where it stops the command."""
        bad = Bad("standard input", number, reason, excerpt(text))
        if self._on_bad == "stop":
            raise DataError(f"standard input, line {number}: {reason} ('{bad.excerpt}').", remedy)
        self._bad_rows.add(bad)
        self._first_remedy = self._first_remedy or remedy
        self._problems[number] = reason
        return ""

    def facts(self) -> dict[int, dict[str, str]]:
        """What JSON says of the lines that came last beside their results, by number: what is wrong with the bad ones."""
        return {number: {"problem": reason} for number, reason in self._problems.items()}

    def tell(self) -> None:
        """Name the bad lines, if there are such; DataError where there are no others."""
        sentences = self._bad_rows.sentences()
        if sentences and self._bad_rows.n_bad == self._n_read:
            raise DataError(f"No line can be read: {'; '.join(sentences)}.", self._first_remedy)
        for sentence in sentences:
            note(f"answered with an empty line: {sentence}")

    def _remedy(self, reason: str) -> str:
        """Advise to convert all lines, unless some are UTF-8 already, which that would garble."""
        if reason != NOT_UTF_8:
            return "Correct that line."
        convert = "Text in UTF-8 is expected; iconv converts other encodings: iconv -f latin1 -t utf-8"
        return "Write that line again: others before it are in UTF-8." if self._holds_utf_8 else convert


def waiting_lines(stream: BinaryIO, *, most: int) -> Iterator[list[bytes]]:
    """Yield the lines that are there, at most so many at once, and wait where there is none: each is answered in time.

    A line ends at the byte \\n, which is left out.
    """
    lines: list[bytes] = []
    begun: list[bytes] = []  # the blocks of a line without an end so far
    while True:
        block = stream.read1(BLOCK)  # type: ignore[attr-defined]  # what is there, if only a byte; it waits for one
        *ends, rest = block.split(b"\n")
        if ends or not block:
            first, *others = ends or [b""]
            whole = b"".join([*begun, first])
            lines += [whole, *others] if ends or whole else []
            begun.clear()
        begun.append(rest)
        while len(lines) >= most or (lines and not (block and has_input(stream))):
            yield lines[:most]
            del lines[:most]
        if not block:
            return


def has_input(stream: BinaryIO) -> bool:
    """Whether reading returns at once, as at the end; a file that says nothing of that is taken at its word."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except io.UnsupportedOperation:  # bytes in memory
        return True
    except OSError:  # a pipe on Windows
        return False


class Predictor:
    """Predicts chunk after chunk with one run, and shows how far it is; `latest`: what came last, and the options of it.

    pool: processes that do it instead, several chunks at a time
    """

    latest: "tuple[Results[Result], Options]"

    def __init__(
        self, run: "Run[Any]", options: "Options", waiting: Waiting, *, pool: "ProcessPool | None" = None
    ) -> None:
        self.run = run
        self.options = options
        self.waiting = waiting
        self.pool = pool
        self._done = 0

    def __call__(self, chunks: "Iterable[Chunk]", *, stream: Any = None) -> "Iterator[tuple[Chunk, Sequence[Result]]]":
        """Yield each chunk with its predictions; `stream`: what the chunks are read from, if reading may wait."""
        if self.pool is None:
            for chunk in chunks:
                yield chunk, self.one(chunk.inputs, **chunk.fields) if chunk.inputs else ()
            return
        for chunk, found in self.pool.predict(chunks, stream=stream, progress=self.waiting):
            self.waiting.hide()
            yield chunk, found

    def one(self, inputs: Sequence[Any], **fields: Any) -> "Results[Result]":
        """Predict one chunk; `fields` are those of the options that belong to its inputs."""
        progress = self.waiting.after(self._done)
        options = replace(self.options.after(self._done), progress=lambda what, done: progress(done), **fields)
        found = self.run.predict_with(inputs, options)
        self.latest = found, options
        self.waiting.hide()
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
            note(f"longer than the model reads at once, {truncation}: {listed(lines)}")


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
