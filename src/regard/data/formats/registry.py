"""The table of known formats by the ending of a file's name, and the reader of any of them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from regard.data.formats.delimited import read_csv, read_tsv
from regard.data.formats.files import check_file
from regard.data.formats.jsonl import read_jsonl
from regard.data.formats.parquet import read_parquet
from regard.data.formats.po import read_po
from regard.data.formats.rows import Bad, Reader, Row
from regard.data.formats.text import read_text
from regard.data.formats.tmx import read_tmx
from regard.data.formats.writing import CsvWriter, JsonLinesWriter, RowWriter, TsvWriter
from regard.data.formats.xliff import read_xliff
from regard.errors import UsageError


class Fields(Enum):
    """What the fields of a format's rows are."""

    COLUMNS = "the same in every row"
    KEYS = "a row may lack some"
    LANGUAGES = "a unit need not hold them all"


@dataclass(frozen=True)
class Format:
    """How a file is read, and what its rows are like.

    read_scalars:  as `read`, with numbers, true and false as texts; None where all is text anyway
    write:         how its rows are written again with further columns; None where they are not
    """

    read: Reader
    fields: Fields = Fields.COLUMNS
    read_scalars: Reader | None = None
    write: Callable[[str, Sequence[str], Sequence[str]], RowWriter] | None = None


TEXT = Format(read_text)
_JSONL = Format(read_jsonl, Fields.KEYS, partial(read_jsonl, scalars=True), JsonLinesWriter)
FORMATS = {
    ".csv": Format(read_csv, write=CsvWriter),
    ".tsv": Format(read_tsv, write=TsvWriter),
    ".jsonl": _JSONL,
    ".ndjson": _JSONL,
    ".parquet": Format(read_parquet, read_scalars=partial(read_parquet, scalars=True)),
    ".tmx": Format(read_tmx, Fields.LANGUAGES),
    ".xliff": Format(read_xliff, Fields.LANGUAGES),
    ".xlf": Format(read_xliff, Fields.LANGUAGES),
    ".po": Format(read_po, Fields.LANGUAGES),
}
TABLES = tuple(ending for ending, known in FORMATS.items() if known.fields is not Fields.LANGUAGES)
WRITABLE = tuple(ending for ending, known in FORMATS.items() if known.write)


def ending_of(file: str) -> str:
    """Return the end of the name of `file` that says how it is read, such as .tsv or .tsv.gz; text has none or .gz."""
    name = file.lower()
    packed = ".gz" if name.endswith(".gz") else ""
    return next((ending for ending in FORMATS if name.removesuffix(packed).endswith(ending)), "") + packed


def is_table(file: str) -> bool:
    """Tell whether the name of a file says that it is a table, with columns or keys."""
    return ending_of(file).removesuffix(".gz") in TABLES


def format_of(file: str) -> Format:
    """Return the format that the name of `file` tells; whatever is unknown is text (train.en, train.txt)."""
    return FORMATS.get(ending_of(file).removesuffix(".gz"), TEXT)


def read_rows(
    file: str | os.PathLike[str], *, columns: Sequence[str] = (), scalars: bool = False
) -> Iterator[Row | Bad]:
    """Yield the records of a file of any format; a file that is not there is an error at once, not at the first record.

    `columns` are the names that are wanted, of the source and of the target. They tell whether a TSV begins with a
    header, what in a record must be text, and what to call a language that the file does not name.
    scalars: numbers, true and false are texts too, in formats that tell them apart
    """
    name = os.fspath(file)
    check_file(name)
    known = format_of(name)
    return (known.read_scalars if scalars and known.read_scalars else known.read)(name, columns)


def row_writer(file: str, added: Sequence[str], *, columns: Sequence[str] = ()) -> RowWriter:
    """Return what writes the rows of a table again, each with values for the columns that are `added`.

    columns: those that are read, as `read_rows` is told of them
    """
    write = format_of(file).write
    if write is None:
        raise UsageError(
            f"{file} is no table that columns can be added to: a name that ends in {', '.join(WRITABLE)} is expected.",
            "Save it as CSV; or give lines of text on standard input: regard predict RUN < FILE",
        )
    return write(file, added, columns)
