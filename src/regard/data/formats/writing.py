"""Tables written again with added columns: what was there stays as it was, CSV, TSV and JSON Lines each in its own way."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from regard.data.formats.delimited import delimiter_of, read_csv, read_tsv
from regard.data.formats.rows import Bad, Row, byte_lines, decode
from regard.errors import DataError


class RowWriter(Protocol):
    """Writes the rows of one file, each with values for the columns that are added."""

    def heading(self) -> list[str]:
        """The header with the names that are added, as lines: none, where the file has none."""
        ...

    def line(self, row: Row, values: Sequence[str | float]) -> str:
        """Write a row with a value for each column that is added."""
        ...

    def bad(self, bad: Bad) -> str:
        """Write what could be read of a bad row, with no value for the columns that are added."""
        ...


class TsvWriter:
    """Lines of cells between tabs."""

    def __init__(self, file: str, added: Sequence[str], columns: Sequence[str]) -> None:
        lines, names = list[int | str](), list[str]()
        for row in self._rows(file, columns):
            lines.append(row.line)
            if isinstance(row, Row):
                names = list(row.fields)
                break
        # A line that no row stands on, before the first good one, is a header.
        header = next((line for line, own in enumerate(lines, start=1) if line != own), 0)
        self._heading = [*self._header(file, header), *added] if header else []
        self._n_columns, self._n_added = len(names), len(added)
        _refuse_taken(file, added, self._heading[: -len(added)])

    def heading(self) -> list[str]:
        return [self._joined(self._heading)] if self._heading else []

    def line(self, row: Row, values: Sequence[str | float]) -> str:
        return self._joined([*row.fields.values(), *map(_as_cell, values)])

    def bad(self, bad: Bad) -> str:
        cells = bad.row.fields.values() if bad.row else [""] * self._n_columns
        return self._joined([*cells, *[""] * self._n_added])

    def _rows(self, file: str, columns: Sequence[str]) -> Iterator[Row | Bad]:
        return read_tsv(file, columns)

    def _header(self, file: str, line: int) -> list[str]:
        return decode(next(islice(byte_lines(file), line - 1, None)))[0].split("\t")

    def _joined(self, cells: Sequence[str]) -> str:
        return "\t".join(cells)


class CsvWriter(TsvWriter):
    """Records of cells between commas or semicolons, quoted where they must be."""

    def __init__(self, file: str, added: Sequence[str], columns: Sequence[str]) -> None:
        self._delimiter = delimiter_of(next(byte_lines(file)))
        super().__init__(file, added, columns)

    def _rows(self, file: str, columns: Sequence[str]) -> Iterator[Row | Bad]:
        return read_csv(file, columns)

    def _header(self, file: str, line: int) -> list[str]:
        # By the names of its header, whatever is wanted of it.
        return next(list(row.fields) for row in read_csv(file) if isinstance(row, Row))

    def _joined(self, cells: Sequence[str]) -> str:
        written = io.StringIO()
        csv.writer(written, delimiter=self._delimiter, lineterminator="").writerow(cells)
        return written.getvalue()


class JsonLinesWriter:
    """Objects with further keys."""

    def __init__(self, file: str, added: Sequence[str], columns: Sequence[str]) -> None:
        self._file = file
        self._added = added

    def heading(self) -> list[str]:
        return []

    def line(self, row: Row, values: Sequence[str | float]) -> str:
        record = json.loads(row.original)
        _refuse_taken(self._file, self._added, record)
        return json.dumps({**record, **dict(zip(self._added, values, strict=True))}, ensure_ascii=False)

    def bad(self, bad: Bad) -> str:
        record = json.loads(bad.row.original) if bad.row else {}
        return json.dumps({**record, **dict.fromkeys(self._added)}, ensure_ascii=False)


def _as_cell(value: str | float) -> str:
    """Write a value so that it stays in its cell; a number with all digits that single precision holds."""
    return value.replace("\t", " ").replace("\n", " ") if isinstance(value, str) else f"{value:.9g}"


def _refuse_taken(file: str, added: Sequence[str], names: Sequence[str] | dict[str, object]) -> None:
    for name in added:
        if name in names:
            raise DataError(f"{file} has a column '{name}' already.", "Rename it: the new column has that name.")
