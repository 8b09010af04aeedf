"""Training metrics: `metrics.jsonl`, one JSON object per line, appended while a run trains.

A kill can cut the last line short. A line counts only with its line end; a partial one is dropped. A long run has millions
of lines: what is asked of its end is read from the end, and what is drawn is so many of them.
"""

import io
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from regard.errors import RunError
from regard.evaluation.metrics import METRICS
from regard.regular_files import MEGABYTE, open_regular, open_to_read
from regard.runs.disk import as_json, disk_errors, gone
from regard.runs.folder import RunFolder
from regard.runs.json_files import is_count, is_number, is_scores, parse_json

LONGEST_LINE = 16 * MEGABYTE
NUMBERS = {*METRICS, "epoch", "learning_rate", "norms"}  # what is drawn or shown must be these, or missing
UPDATE = b'{"kind": "train"'  # how the line of an update begins
BLOCK = 1 << 16  # bytes that are read at once from the end


class Metrics:
    """The writing end, for the holder of the run's lock: `with Metrics(run) as metrics: metrics.append(record)`."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        with disk_errors(run.path, needed=0):
            # Without a buffer: each line is with the system at once, and nothing is left to write when closing.
            descriptor = open_regular(run.metrics_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self.file = os.fdopen(descriptor, "ab", buffering=0)
            self.file.truncate(next((end for end, _ in lines_from_end(run.metrics_file)), 0))

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; NaN and infinity become null. A kill of the process does not lose it."""
        line = memoryview(as_json(record) + b"\n")
        with disk_errors(self.run.path, needed=len(line)):
            while line:
                line = line[self.file.write(line) :]

    def sync(self) -> None:
        """Wait until all records are on the disk; called before a checkpoint is written.

        Raises a TrainingError where the file is no longer in the run's folder: that was moved or deleted meanwhile.
        """
        with disk_errors(self.run.path, needed=0):
            os.fsync(self.file.fileno())
            if not self._is_in_place():
                raise gone(self.run.path)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), self.run.metrics_file.lstat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(run: RunFolder) -> list[dict[str, Any]]:
    """Return all records, oldest first; none where nothing has been written."""
    lines = enumerate(whole_lines(run.metrics_file), start=1)
    return [parse(line, run.metrics_file, number) for number, line in lines]


def read_some(run: RunFolder, *, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return evenly spaced records, at most so many of updates and so many others; and of how many updates each is one."""
    counts = Counter(line.startswith(UPDATE) for line in whole_lines(run.metrics_file))
    strides = {is_update: math.ceil(count / most) for is_update, count in counts.items()}
    seen: Counter[bool] = Counter()
    records = []
    for number, line in enumerate(whole_lines(run.metrics_file), start=1):
        is_update = line.startswith(UPDATE)
        if seen[is_update] % strides.get(is_update, 1) == 0:
            records.append(parse(line, run.metrics_file, number))
        seen[is_update] += 1
    return records, strides.get(True, 1)


def read_from_end(run: RunFolder) -> Iterator[dict[str, Any]]:
    """Yield the records, newest first; no more of the file is read than is asked for."""
    return (record for _, record in _from_end(run))


def newest(run: RunFolder) -> dict[str, Any] | None:
    """Return the newest record; None where there is none that can be read."""
    try:
        return next(read_from_end(run), None)
    except RunError:
        return None


def truncate(run: RunFolder, *, step: int, validated: bool) -> None:
    """Drop the records after a step, and a partial line. The others keep their bytes.

    Without `validated`, the step's own validation goes too: it was killed before its checkpoint, and comes again.
    """
    kept = (
        end
        for end, record in _from_end(run)
        if record["step"] < step or (record["step"] == step and (validated or record["kind"] != "valid"))
    )
    size = next(kept, 0)
    if run.metrics_file.exists():
        with disk_errors(run.path, needed=0):
            descriptor = open_regular(run.metrics_file, os.O_WRONLY)
            try:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _from_end(run: RunFolder) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where each line ends, and the record in it, the last first."""
    file = run.metrics_file
    for end, line in lines_from_end(file):
        try:
            record = parse(line, file, 0)
        except RunError:  # raised again with the line's number, which is known from the beginning only
            ends = enumerate(accumulate(map(len, whole_lines(file))), start=1)
            record = parse(line, file, next(number for number, place in ends if place == end))
        yield end, record


def parse(line: bytes, file: Path, number: int) -> dict[str, Any]:
    """Read one line's record."""
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    if not (isinstance(record, dict) and isinstance(record.get("kind"), str) and is_count(record.get("step"))):
        raise RunError(f"{file}:{number}: expected a JSON object with kind and step.", "Delete that line.")
    for name in NUMBERS.intersection(record):
        value = record[name]
        if not (is_scores(value) if name == "norms" else value is None or is_number(value)):
            raise RunError(f"{file}:{number}: {name} is not a number.", "Delete that line.")
    return record


def whole_lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of the file that have their end; none where there is no file."""
    with _opened(file) as stream:
        while (line := stream.readline(LONGEST_LINE)).endswith(b"\n"):
            yield line
    if len(line) == LONGEST_LINE:
        raise _line_too_long(file)


def lines_from_end(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the same lines, the last first, each behind the place where it ends."""
    with _opened(file) as stream:
        begin = stream.seek(0, os.SEEK_END)
        found = b""  # from `begin` on, up to the last line that was yielded
        while begin:
            size = min(BLOCK, begin)
            begin = stream.seek(begin - size)
            found = stream.read(size) + found
            *lines, partial = found.split(b"\n")  # behind the last line's end, which only the end of the file has
            end = begin + len(found) - len(partial)
            found = lines[0] + b"\n" if lines else partial
            for line in reversed(lines[1:] if begin else lines):
                yield end, line + b"\n"
                end -= len(line) + 1
            if len(found) >= LONGEST_LINE:
                raise _line_too_long(file)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """Open the file to read, an empty one where there is none."""
    try:
        with open_to_read(file) if os.path.lexists(file) else io.BytesIO() as stream:
            yield stream
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}.", "Put back the file that training wrote.") from error


def _line_too_long(file: Path) -> RunError:
    return RunError(f"{file} has a line of more than {LONGEST_LINE // MEGABYTE} MB.", "Delete that line.")
