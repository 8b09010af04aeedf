"""Tables as text: TSV (a tab between two columns, nothing quoted) and CSV (commas, quotes, a header)."""

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from regard.data.formats.columns import folded, is_column_name, match, name_text_and_label
from regard.data.formats.rows import Bad, Row, byte_lines, decode, excerpt, read_lines
from regard.errors import DataError

# A quoted cell may hold line ends, but a record that goes on beyond this began with a stray quote.
MAX_RECORD_LINES = 100


def read_tsv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each line's cells by name: the header's, or "1", "2", … where there is no header or numbers are wanted.

    The first line is a header if its cells are plain column names (en, de-AT, source), if the names of a text and a label
    are among them, or if they are what `columns` name. It is one also if names are wanted and there are not two columns:
    only a header can give them names.
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
            is_header = _is_header(cells, [name for name in columns if name and not name.isdecimal()])
            by_number = not is_header or _are_numbers(columns)
            names = _numbered(cells) if by_number else _header(file, number, cells)
            if is_header:
                continue
        yield _row(file, number, names, cells)


def read_csv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each record's cells by the names of the header. A record's line is the one it begins on.

    Where numbers are wanted the columns are "1", "2", …, and the first record is no header unless it is plainly one.
    A stray quote costs the line that it stands on: reading goes on at the next.
    """
    records = _CsvRecords(file)
    names: list[str] = []
    while record := records.take(n_columns=len(names)):
        line = record.first.number
        if not record.fault and not record.cells:
            yield Bad(file, line, "empty line", "")
        elif not names:
            if record.fault:
                raise DataError(
                    f"{file}:{line}: the header cannot be read ({record.fault}).",
                    "Save the file again as CSV in UTF-8.",
                )
            names = _numbered(record.cells) if _are_numbers(columns) else _header(file, line, record.cells)
            if _are_numbers(columns) and not _is_header(record.cells, []):
                yield _row(file, line, names, record.cells)
        elif record.fault:
            yield Bad(file, line, record.fault, excerpt(record.first.text))
        else:
            yield _row(file, line, names, record.cells)


def delimiter_of(first: bytes) -> str:
    """Tell by the first line of a CSV what separates its cells: where the comma is the decimal sign, semicolons do."""
    return ";" if b";" in first and b"," not in first else ","


class _Line(NamedTuple):
    number: int
    text: str
    fault: str


class _Record(NamedTuple):
    first: _Line
    cells: list[str]
    fault: str


class _CsvRecords:
    """The records of a CSV file, one at a time.

    A line that is not UTF-8 is still read (with marks in it), so that a quoted cell ends where it should.
    """

    def __init__(self, file: str) -> None:
        raw_lines = byte_lines(file)
        first = next(raw_lines)
        self._delimiter = delimiter_of(first)
        self._unread = (_Line(number, *decode(raw)) for number, raw in enumerate(chain([first], raw_lines), start=1))
        self._given_back: deque[_Line] = deque()

    def take(self, *, n_columns: int) -> _Record | None:
        """Return the next record, None at the end. `n_columns` is how many cells it should have, 0 if not known yet."""
        first = self._next_line()
        if first is None:
            return None
        if '"' not in first.text and "\r" not in first.text:  # most records; csv would say the same more slowly
            return _Record(first, first.text.split(self._delimiter) if first.text else [], first.fault)
        lines = [first]
        try:
            cells = next(csv.reader(self._texts(lines), delimiter=self._delimiter, strict=True))
        except csv.Error:
            cells = None
        if cells is not None and not self._are_records(lines, n_columns):
            return _Record(first, cells, next((line.fault for line in lines if line.fault), ""))
        # csv says where a cell should have ended at the latest, not where it went wrong: that is the line it began on.
        self._given_back.extendleft(reversed(lines[1:]))
        return _Record(first, [], first.fault or "not a CSV record")

    def _texts(self, lines: list[_Line]) -> Iterator[str]:
        """Yield the texts of a record that begins with `lines`, and add to these every line that is read for it."""
        yield lines[0].text + "\n"
        while len(lines) < MAX_RECORD_LINES and (line := self._next_line()):
            lines.append(line)
            yield line.text + "\n"

    def _next_line(self) -> _Line | None:
        return self._given_back.popleft() if self._given_back else next(self._unread, None)

    def _are_records(self, lines: list[_Line], n_columns: int) -> bool:
        """Tell whether lines that csv takes for one record are records each, between two stray quotes.

        A quote that opens by mistake and one that closes by mistake make a record that is well-formed. But if each line
        alone has all the columns, none empty and none after a space as in prose, then the line ends were not meant.
        Two lines are too few to tell: "1,5 kg" above "flour" is like that too.
        """
        if n_columns < 2 or len(lines) < 3:
            return False
        rows = (line.text.split(self._delimiter) for line in lines)
        return all(len(cells) == n_columns and all(cell and not cell[0].isspace() for cell in cells) for cells in rows)


def _is_header(cells: list[str], wanted: list[str]) -> bool:
    """Tell whether a TSV's first line is its header; `wanted` are the names that were asked for, without numbers."""
    # Of two equal cells, as in "no" and its Spanish "no", neither can name a column.
    if len(cells) > 1 and len(set(cells)) == len(cells) and all(is_column_name(cell) for cell in cells):
        return True
    if len(set(cells)) == len(cells) and name_text_and_label(cells):
        return True
    # Whole cells only: "En-suite room" does not begin with a language.
    named = {name: [cell for cell in cells if is_column_name(cell) or folded(cell) == folded(name)] for name in wanted}
    return bool(wanted) and (len(cells) != 2 or all(match(name, near) for name, near in named.items()))


def _are_numbers(columns: Sequence[str]) -> bool:
    """Tell whether columns are wanted, and all by their numbers."""
    wanted = [name for name in columns if name]
    return bool(wanted) and all(name.isdecimal() for name in wanted)


def _numbered(cells: list[str]) -> list[str]:
    return [str(column) for column in range(1, len(cells) + 1)]


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
