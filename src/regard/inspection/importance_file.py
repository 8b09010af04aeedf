"""The file of an importance measurement, by which one that was killed goes on: JSON lines, one per part that is done.

The first line says what was measured on what; a file of another model, other data or other settings is refused. A line
counts only with its line end: a kill can cut the last one short.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import DataError, UsageError
from regard.regular_files import MEGABYTE, open_regular, read_regular
from regard.runs.disk import as_json, disk_errors, sync
from regard.runs.json_files import parse_json

FORMAT = 1
MOST_BYTES = 64 * MEGABYTE


class ImportanceFile:
    """Results by the names of parts, each on the disk before the next is measured."""

    def __init__(self, path: str | Path, *, fingerprint: str) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.done: dict[str, Mapping[str, Any]] = {}
        size = self._read() if os.path.lexists(self.path) else 0
        with disk_errors(self.path.parent, needed=0):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = open_regular(self.path, os.O_WRONLY | os.O_CREAT)
            try:
                os.ftruncate(descriptor, size)  # without what a kill cut short
            finally:
                os.close(descriptor)
            sync(self.path.parent)
        if not size:
            self._append({"format": FORMAT, "fingerprint": fingerprint})

    def keep(self, part: str, result: Mapping[str, Any]) -> None:
        """Write the result of a part; when this returns, it is on the disk."""
        self._append({"part": part, **result})
        self.done[part] = result

    def _append(self, record: Mapping[str, Any]) -> None:
        line = as_json(record) + b"\n"
        with disk_errors(self.path.parent, needed=len(line)):
            descriptor = open_regular(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _read(self) -> int:
        """Read what is done; return where the last whole line ends."""
        try:
            content = read_regular(self.path, most=MOST_BYTES)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}.", "Name another file.") from error
        size = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:size].splitlines(), start=1):
            try:
                record = parse_json(line)
            except ValueError:
                record = None
            if number == 1:
                self._check(record)
            elif isinstance(record, dict) and isinstance(record.get("part"), str):
                self.done[record.pop("part")] = record
            else:
                raise DataError(
                    f"{self.path}:{number}: expected a JSON object with the result of a part.", "Delete that line."
                )
        return size

    def _check(self, header: object) -> None:
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise UsageError(f"{self.path} is not a file of an importance measurement.", "Name another file.")
        if header.get("fingerprint") != self.fingerprint:
            raise UsageError(
                f"{self.path} is of another model, other data or other settings.",
                "Name another file, or delete it to begin anew.",
            )
