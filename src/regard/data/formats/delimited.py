"""Tables as text: TSV (a tab parts two columns, nothing is quoted) and CSV (commas, quotes, a header)."""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain

from regard.data.formats.names import match
from regard.data.formats.rows import Bad, Row, byte_lines, decode, excerpt, read_lines
from regard.errors import DataError


def read_tsv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each line's cells by name: the header's, or "1", "2", … where there is no header.

    The first line is a header if one of `columns` names a cell of it. It is one also if names are wanted and there are
    not two columns: only a header can give them names.
    """
    names: list[str] = []
    for number, line in enumerate(read_lines(file), start=1):
        if isinstance(line, Bad):
            yield line
            continue
        if not line:
            yield Bad(file, number, "empty line", "")
            continue
        cells = line.split("\t")
        if not names:
            if _is_header(cells, columns):
                names = _header(file, number, cells)
                continue
            names = [str(column) for column in range(1, len(cells) + 1)]
        yield _row(file, number, names, cells)


def read_csv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each record's cells by the names of the header. A record's line is the one it begins on."""
    lines = _CsvLines(file)
    names: list[str] = []
    # A stray quote swallows lines only up to csv's own limit of a field, 131,072 characters.
    records = csv.reader(lines, delimiter=lines.delimiter, strict=True)
    while True:
        line = records.line_num + 1
        cells: list[str] = []
        try:
            cells = next(records)
        except StopIteration:
            return
        except csv.Error:
            lines.fault = lines.fault or "not a CSV record"
        fault, first_line = lines.take()
        if not fault and not cells:
            yield Bad(file, line, "empty line", "")
        elif not names:
            if fault:
                raise DataError(
                    f"{file}:{line}: the header cannot be read ({fault}).", "Save the file again as CSV in UTF-8."
                )
            names = _header(file, line, cells)
        else:
            yield Bad(file, line, fault, excerpt(first_line)) if fault else _row(file, line, names, cells)


class _CsvLines:
    """The lines for `csv.reader`, and what was wrong with those of the record that it is reading.

    A line that is not UTF-8 is still handed on (with marks in it), so that a quoted cell ends where it should.
    """

    def __init__(self, file: str) -> None:
        lines = byte_lines(file)
        first = next(lines)
        # Where the comma is the decimal sign, spreadsheets write semicolons.
        self.delimiter = ";" if b";" in first and b"," not in first else ","
        self.fault = ""
        self._first_line = ""
        self._lines = chain([first], lines)

    def __iter__(self) -> Iterator[str]:
        for raw in self._lines:
            text, reason = decode(raw)
            self.fault = self.fault or reason
            self._first_line = self._first_line or text
            yield text + "\n"

    def take(self) -> tuple[str, str]:
        """Return the fault and the first line of the record just read, and forget them."""
        taken = self.fault, self._first_line
        self.fault = self._first_line = ""
        return taken


def _is_header(cells: list[str], columns: Sequence[str]) -> bool:
    wanted = [name for name in columns if name and not name.isdecimal()]
    return any(match(name, cells) for name in wanted) or (bool(wanted) and len(cells) != 2)


def _header(file: str, line: int, cells: list[str]) -> list[str]:
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    if twice:
        raise DataError(f"{file}:{line}: the header names the column '{twice[0]}' twice.", "Rename one of them.")
    return cells


def _row(file: str, line: int, names: list[str], cells: list[str]) -> Row | Bad:
    if len(cells) == len(names):
        return Row(file, line, dict(zip(names, cells, strict=True)))
    plural = "" if len(names) == 1 else "s"
    return Bad(file, line, f"{len(names)} column{plural} expected, {len(cells)} found", excerpt("\t".join(cells)))
