"""Tables: rows with named columns, of which some have a role in the data, and one may say the split of each row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from regard.data.formats.files import check_regular
from regard.data.formats.registry import TABLES, Fields, format_of, is_table, read_rows
from regard.data.formats.rows import Bad, Row, excerpt
from regard.data.formats.splits import no_row_of_split, split_of
from regard.errors import DataError

MANY_KEYS = 100
MAX_WAITING = 1000  # records with keys of their own that may pass before it is known which keys are meant


class Divided(Protocol):
    """The columns of a table, one of which may say the split."""

    @property
    def split(self) -> str:
        """Its name; "" for none."""
        ...


Columns = TypeVar("Columns", bound=Divided)


@dataclass(frozen=True, kw_only=True)
class Table(Generic[Columns]):
    """A table, and which of its columns are meant (None where no row can be read); its rows can be read again and again.

    wanted: what its reader is told of the columns, by which it knows a header
    """

    file: str
    columns: Columns | None
    wanted: tuple[str, ...]

    def rows(self) -> Iterator[Row | Bad]:
        """Yield all rows in their order."""
        return read_rows(self.file, columns=self.wanted, scalars=True)


def rows_of_splits(tables: Sequence[Table[Columns]], splits: Sequence[str]) -> Iterator[tuple[Columns, Row, str] | Bad]:
    """Yield the rows of some splits in their order, each with its columns and its split; an error if there are none.

    splits: train, valid or test, of which rows are meant where a column says it; where none does, all are of the first.
            Without splits, all rows are meant, and have none.
    """
    column, found = "", False
    for table in tables:
        for row in table.rows():
            if isinstance(row, Bad):
                yield row
                continue
            assert table.columns is not None
            split = splits[0] if splits else ""
            if splits and (column := table.columns.split):
                said = row.fields.get(column, "")
                split = split_of(said)
                if not split:
                    yield Bad(row.file, row.line, "unknown split", excerpt(said))
                if split not in splits:
                    continue
            found = True
            yield table.columns, row, split
    if column and not found:
        raise no_row_of_split([table.file for table in tables], column, splits[0])


def check_tables(files: Sequence[str], noun: str) -> None:
    """Refuse files that are missing, and those that are no tables, from which the data is read."""
    if not files:
        raise DataError("No file was given.", f"Name one or more tables: {', '.join(TABLES)}.")
    for file in files:
        check_regular(file)  # a table is read several times
        if not is_table(file):
            raise DataError(f"{file}: {noun} are read from tables.", f"Convert it to one: {', '.join(TABLES)}.")


def open_table(file: str, choose: Callable[[Mapping[str, str]], Columns], *, wanted: tuple[str, ...]) -> Table[Columns]:
    """Find the columns of a table: `choose` returns them, or raises DataError where the names do not tell."""
    seen: dict[str, str] = {}
    row = None
    # A record may lack keys that others have: then the first ones do not tell yet.
    n_tried = MAX_WAITING if format_of(file).fields is Fields.KEYS else 1
    good = (row for row in read_rows(file, columns=wanted, scalars=True) if isinstance(row, Row))
    for number, row in enumerate(islice(good, n_tried), start=1):
        seen |= row.fields
        if len(seen) > MANY_KEYS and number.bit_count() > 1:
            continue  # each try takes time by their number: then only the first, second, fourth, eighth … record is one
        with suppress(DataError):
            if seen:
                return Table(file=file, columns=choose(seen), wanted=wanted)
    if row is not None and not seen:
        raise DataError(
            f"{file}: its records hold no text, no number and no truth value.",
            'Write them as {"name": "…"}, a text or a number under each name.',
        )
    return Table(file=file, columns=choose(seen) if seen else None, wanted=wanted)


def cells_of(row: Row, columns: Mapping[str, str]) -> list[str] | Bad:
    """Return what a row has in the columns of some roles, without white space at its ends, or which role it lacks.

    A role without a column, "", is not lacked: its cell is "".
    """
    cells = [row.fields.get(column, "").strip() if column else "" for column in columns.values()]
    for (role, column), cell in zip(columns.items(), cells, strict=True):
        if column and not cell:
            found = next((other for other in row.fields.values() if other.strip()), "")
            reason = f"{'empty' if column in row.fields else 'no'} {role}"
            return Bad(row.file, row.line, reason, excerpt(found), row)
        if "\0" in cell:
            return Bad(row.file, row.line, "NUL byte", excerpt(cell), row)
    return cells
