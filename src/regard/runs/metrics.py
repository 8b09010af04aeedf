"""Training metrics: `metrics.jsonl`, one JSON object per line, appended while a run trains.

A kill can cut the last line short. A line counts only with its line end; a partial one is dropped.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from regard.errors import RunError
from regard.evaluation.metrics import METRICS
from regard.regular_files import MEGABYTE, open_regular, open_to_read
from regard.runs.disk import as_json, disk_errors, gone, write_atomically
from regard.runs.folder import RunFolder
from regard.runs.json_files import is_count, is_number, is_scores, parse_json

LONGEST_LINE = 16 * MEGABYTE
NUMBERS = {*METRICS, "epoch", "learning_rate", "norms"}  # what is drawn or shown must be these, or missing

TAIL = 1_000_000  # bytes at the end of the file in which the newest record is looked for


class Metrics:
    """The writing end, for the holder of the run's lock: `with Metrics(run) as metrics: metrics.append(record)`."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        with disk_errors(run.path, needed=0):
            # Without a buffer: each line is with the system at once, and nothing is left to write when closing.
            descriptor = open_regular(run.metrics_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self.file = os.fdopen(descriptor, "ab", buffering=0)
            self.file.truncate(sum(map(len, whole_lines(run.metrics_file))))

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
    return [record for _, record in read_lines(run)]


def newest(run: RunFolder) -> dict[str, Any] | None:
    """Return the newest record, read from the end of the file; None where there is none that can be read."""
    try:
        with open_to_read(run.metrics_file) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read(TAIL).split(b"\n")  # the last is partial, or empty
        return parse(lines[-2], run.metrics_file, 0) if len(lines) > 1 else None
    except (OSError, RunError):
        return None


def truncate(run: RunFolder, *, step: int, validated: bool) -> None:
    """Drop the records after a step, and a partial line. The others keep their bytes.

    Without `validated`, the step's own validation goes too: it was killed before its checkpoint, and comes again.
    """
    lines = [
        line
        for line, record in read_lines(run)
        if record["step"] < step or (record["step"] == step and (validated or record["kind"] != "valid"))
    ]
    if run.metrics_file.exists():
        write_atomically(run.metrics_file, b"".join(lines))


def read_lines(run: RunFolder) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield each whole line with its end, and the record in it."""
    for number, line in enumerate(whole_lines(run.metrics_file), start=1):
        yield line, parse(line, run.metrics_file, number)


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
    try:
        with open_to_read(file) as stream:
            while (line := stream.readline(LONGEST_LINE)).endswith(b"\n"):
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}.", "Put back the file that training wrote.") from error
    if len(line) == LONGEST_LINE:
        raise RunError(f"{file} has a line of more than {LONGEST_LINE // MEGABYTE} MB.", "Delete that line.")
