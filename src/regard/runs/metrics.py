"""Training metrics: `metrics.jsonl`, one JSON object per line, appended while a run trains.

A kill can cut the last line short. A line counts only with its line end; a partial one is dropped.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from regard.errors import RunError
from regard.runs.disk import as_json, disk_errors, write_atomically
from regard.runs.folder import RunFolder


class Metrics:
    """The writing end, for the holder of the run's lock: `with Metrics(run) as metrics: metrics.append(record)`."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        with disk_errors(run.path, needed=0):
            # Without a buffer: each line is with the system at once, and nothing is left to write when closing.
            self.file = run.metrics_file.open("ab", buffering=0)
            self.file.truncate(len(whole_lines(run.metrics_file)))

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; NaN and infinity become null. A kill of the process does not lose it."""
        line = memoryview(as_json(record) + b"\n")
        with disk_errors(self.run.path, needed=len(line)):
            while line:
                line = line[self.file.write(line) :]

    def sync(self) -> None:
        """Wait until all records are on the disk; called when a checkpoint is written."""
        with disk_errors(self.run.path, needed=0):
            os.fsync(self.file.fileno())

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


def read_lines(run: RunFolder) -> list[tuple[bytes, dict[str, Any]]]:
    """Return each whole line with its end, and the record in it."""
    lines = whole_lines(run.metrics_file).splitlines(keepends=True)
    return [(line, parse(line, run.metrics_file, number)) for number, line in enumerate(lines, start=1)]


def parse(line: bytes, file: Path, number: int) -> dict[str, Any]:
    """Read one line's record."""
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if isinstance(record, dict) and isinstance(record.get("kind"), str) and isinstance(record.get("step"), int):
        return record
    raise RunError(
        f"{file}:{number}: expected a JSON object with kind and step.",
        "Delete that line.",
    )


def whole_lines(file: Path) -> bytes:
    """Return the file's content up to its last line end; nothing where there is no file."""
    content = file.read_bytes() if file.exists() else b""
    return content[: content.rfind(b"\n") + 1]
