"""Tables written again with further columns: what was there stays as it was, CSV, TSV and JSON Lines each in its own way."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from regard.data.formats.registry import ending_of, read_rows
from regard.data.formats.rows import Row, byte_lines, decode
from regard.errors import DataError, UsageError

WRITABLE = (".csv", ".tsv", ".jsonl", ".ndjson")


class AddedColumns:
    """The rows of a file by their line, each with values for the columns that are added.

    wanted: the columns that are read, by which a TSV's header is known
    """

    def __init__(self, file: str, added: Sequence[str], *, wanted: Sequence[str] = ()) -> None:
        self.file = file
        self.added = added
        self.wanted = wanted
        self.ending = ending_of(file).removesuffix(".gz")
        if self.ending not in WRITABLE:
            raise UsageError(
                f"{file} is no table that columns can be added to: a name that ends in {', '.join(WRITABLE[:3])} is "
                "expected.",
                "Save it as CSV; or give lines of text on standard input: regard predict RUN < FILE",
            )
        first = next(read_rows(file, columns=wanted), None)
        # Where the first record stands on a later line than the first, that one is a header.
        self.has_header = self.ending in (".csv", ".tsv") and first is not None and first.line > 1
        self._header = _header(file, self.ending) if self.has_header else []
        for name in added:
            if name in self._header:
                raise _taken(file, name)
        self._delimiter = ";" if self.ending == ".csv" and _has_semicolons(file) else ","

    def heading(self) -> list[str]:
        """The header with the names that are added, as lines: none, where the file has none."""
        return [self._joined([*self._header, *self.added])] if self.has_header else []

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield the line of each row, and what `line` needs of it; of a bad row there may be none."""
        if self.ending == ".csv":
            for row in read_rows(self.file, columns=self.wanted):
                if isinstance(row, Row):
                    yield row.line, list(row.fields.values())
            return
        for number, raw in enumerate(byte_lines(self.file), start=1):
            if number > self.has_header:
                yield number, decode(raw)[0]

    def line(self, row: Any, values: Sequence[str | float]) -> str:
        """Write a row of `rows` with a value for each column that is added."""
        if self.ending == ".csv":
            return self._joined([*row, *map(as_cell, values)])
        if self.ending == ".tsv":
            return self._joined([row, *map(as_cell, values)])
        record = json.loads(row)
        for name in self.added:
            if name in record:
                raise _taken(self.file, name)
        return json.dumps({**record, **dict(zip(self.added, values, strict=True))}, ensure_ascii=False)

    def _joined(self, cells: Sequence[str]) -> str:
        if self.ending == ".tsv":
            return "\t".join(cells)
        written = io.StringIO()
        csv.writer(written, delimiter=self._delimiter, lineterminator="").writerow(cells)
        return written.getvalue()


def as_cell(value: str | float) -> str:
    """Write a value so that it stays in its cell; a number with the digits that people read."""
    return value.replace("\t", " ").replace("\n", " ") if isinstance(value, str) else f"{value:.6g}"


def _header(file: str, ending: str) -> list[str]:
    if ending == ".tsv":
        return decode(next(byte_lines(file)))[0].split("\t")
    first = next(read_rows(file), None)  # by the names of its header, whatever is wanted of it
    return list(first.fields) if isinstance(first, Row) else []


def _taken(file: str, name: str) -> DataError:
    return DataError(f"{file} has a column '{name}' already.", "Rename it: the new column has that name.")


def _has_semicolons(file: str) -> bool:
    """As the reader tells: where the comma is the decimal sign, spreadsheets write semicolons."""
    first = next(byte_lines(file))
    return b";" in first and b"," not in first
