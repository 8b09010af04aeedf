"""Tables as text: TSV (a tab between two columns, nothing quoted) and CSV (commas, quotes, a header)."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from regard.data.formats.columns import folded, is_column_name, match, name_text_and_label
from regard.data.formats.rows import Bad, Row, byte_lines, decode, excerpt, read_lines
from regard.errors import DataError

# A quoted cell may hold any number of lines, but a record beyond this began with a stray quote.
MAX_RECORD_CHARACTERS = 1 << 24
# Lines that tell whether a first one of two letters a cell is a header or a word list's first pair, "it" and its "es".
N_PEEKED = 20
PEEKED_CHARACTERS = 1000
_CODE = re.compile("[a-z]{2}")


def read_tsv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each line's cells by name: the header's, or "1", "2", … where there is no header or numbers are wanted.

    The first line is a header if its cells are plain column names (en, de-AT, source), if the names of a text and a label
    are among them, or if they are what `columns` name. It is one also if names are wanted and there are not two columns:
    only a header can give them names. Codes of languages above short words are words too, unless they are wanted.
    """
    wanted = [name for name in columns if name and not name.isdecimal()]
    lines = enumerate(read_lines(file), start=1)
    for number, line in lines:
        if isinstance(line, Bad) or not line:
            yield _line_row(file, number, [], line)
            continue
        cells = line.split("\t")
        is_header = _is_header(cells, wanted)
        peeked: list[tuple[int, str | Bad]] = []
        if is_header and all(map(_CODE.fullmatch, cells)) and not any(match(name, cells) for name in wanted):
            peeked = _peek(lines)
            is_header = not any(_are_short_words(text) for _, text in peeked)
        names = _numbered(cells) if not is_header or _are_numbers(columns) else _header(file, number, cells)
        for place, text in chain([] if is_header else [(number, line)], peeked, lines):
            yield _line_row(file, place, names, text)


def read_csv(file: str, columns: Sequence[str] = ()) -> Iterator[Row | Bad]:
    """Yield each record's cells by the names of the header. A record's line is the one it begins on.

    Where numbers are wanted the columns are "1", "2", …, and the first record is no header unless it is plainly one.
    A record is what `csv` reads. If that fails, or finds another number of cells than the header has, all the lines that
    were read are bad: none of them can be told to be a row, as it may as well be a line of a quoted cell.
    """
    names: list[str] = []
    for record in _csv_records(file):
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
        else:
            text = excerpt(record.first.text)
            row = Bad(file, line, record.fault, text) if record.fault else _row(file, line, names, record.cells)
            yield row
            if isinstance(row, Bad) and len(record.cells) != len(names):
                for inner in range(line + 1, line + record.n_lines):
                    yield Bad(file, inner, row.reason, "")


def delimiter_of(first: bytes) -> str:
    """Tell by the first line of a CSV what separates its cells: where the comma is the decimal sign, semicolons do."""
    return ";" if b";" in first and b"," not in first else ","


class _Line(NamedTuple):
    number: int
    text: str
    fault: str


class _Record(NamedTuple):
    first: _Line
    cells: list[str]  # none if it is empty or not well-formed
    fault: str
    n_lines: int = 1


class _RecordLines:
    """The texts of a record's lines for `csv`, which reads as many as the record has, and what was found in them."""

    def __init__(self, first: _Line, following: Iterator[_Line]) -> None:
        self._lines = chain([first], following)
        self._n_characters = 0
        self.n_lines = 0
        self.fault = ""

    def __iter__(self) -> "_RecordLines":
        return self

    def __next__(self) -> str:
        if self._n_characters > MAX_RECORD_CHARACTERS:
            raise StopIteration
        line = next(self._lines)
        self._n_characters += len(line.text) + 1
        self.n_lines += 1
        self.fault = self.fault or line.fault
        return line.text + "\n"


def _csv_records(file: str) -> Iterator[_Record]:
    """Yield the records of a CSV file.

    A line that is not UTF-8 is still read (with marks in it), so that a quoted cell ends where it should.
    """
    raw_lines = byte_lines(file)
    heading = next(raw_lines)
    delimiter = delimiter_of(heading)
    lines = (_Line(number, *decode(raw)) for number, raw in enumerate(chain([heading], raw_lines), start=1))
    for first in lines:
        if '"' not in first.text and "\r" not in first.text:  # most records; csv would say the same more slowly
            yield _Record(first, first.text.split(delimiter) if first.text else [], first.fault)
            continue
        taken = _RecordLines(first, lines)
        usual_limit = csv.field_size_limit(MAX_RECORD_CHARACTERS)
        try:
            record = _Record(
                first, next(csv.reader(taken, delimiter=delimiter, strict=True)), taken.fault, taken.n_lines
            )
        except csv.Error:
            record = _Record(first, [], first.fault or "not a CSV record", taken.n_lines)
        finally:
            csv.field_size_limit(usual_limit)
        yield record


def _is_header(cells: list[str], wanted: list[str]) -> bool:
    """Tell whether a TSV's first line is its header; `wanted` are the names that were asked for, without numbers."""
    # Of two equal cells, as in "no" and its Spanish "no", neither can name a column.
    if len(cells) > 1 and len(set(cells)) == len(cells) and all(is_column_name(cell) for cell in cells):
        return True
    if len(set(cells)) == len(cells) and name_text_and_label(cells):
        return True
    # Whole cells only: "En-suite room" does not begin with a language.
    return bool(wanted) and (len(cells) != 2 or all(_names_column(name, cells) for name in wanted))


def _names_column(name: str, cells: list[str]) -> bool:
    return bool(match(name, (cell for cell in cells if is_column_name(cell) or folded(cell) == folded(name))))


def _are_numbers(columns: Sequence[str]) -> bool:
    """Tell whether columns are wanted, and all by their numbers."""
    wanted = [name for name in columns if name]
    return bool(wanted) and all(name.isdecimal() for name in wanted)


def _numbered(cells: list[str]) -> list[str]:
    return [str(column) for column in range(1, len(cells) + 1)]


def _peek(lines: Iterator[tuple[int, str | Bad]]) -> list[tuple[int, str | Bad]]:
    """Return some of the following lines, up to the first long one."""
    peeked: list[tuple[int, str | Bad]] = []
    for number, line in islice(lines, N_PEEKED):
        peeked.append((number, line))
        if isinstance(line, str) and len(line) > PEEKED_CHARACTERS:
            break
    return peeked


def _are_short_words(line: str | Bad) -> bool:
    """Tell whether the cells of a line are words in small letters, one of two letters at most, none of more than three."""
    cells = line.split("\t") if isinstance(line, str) else [""]
    lengths = [len(cell) for cell in cells if cell.isalpha() and cell.islower()]
    return len(lengths) == len(cells) and min(lengths) <= 2 and max(lengths) <= 3


def _header(file: str, line: int, cells: list[str]) -> list[str]:
    twice = sorted(cell for cell, count in Counter(cells).items() if count > 1)
    if twice:
        raise DataError(f"{file}:{line}: the header names the column '{twice[0]}' twice.", "Rename one of them.")
    return cells


def _line_row(file: str, number: int, names: list[str], line: str | Bad) -> Row | Bad:
    if isinstance(line, Bad):
        return line
    return _row(file, number, names, line.split("\t")) if line else Bad(file, number, "empty line", "")


def _row(file: str, line: int, names: list[str], cells: list[str]) -> Row | Bad:
    if len(cells) == len(names):
        return Row(file, line, dict(zip(names, cells, strict=True)))
    plural = "" if len(names) == 1 else "s"
    return Bad(file, line, f"{len(names)} column{plural} expected, {len(cells)} found", excerpt("\t".join(cells)))
