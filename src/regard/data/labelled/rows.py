"""Labelled text: the rows of tables as texts, one or two of them, with a label (a class, or a number)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.config import DataConfig
from regard.data.formats.columns import listed
from regard.data.formats.files import check_file
from regard.data.formats.registry import TEXT, Fields, format_of, read_rows
from regard.data.formats.rows import Bad, Row, excerpt
from regard.data.labelled.columns import Columns, choose_columns
from regard.errors import DataError, UsageError, did_you_mean

SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation", "development"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {spelling: split for split, spellings in SPLITS.items() for spelling in spellings}
MAX_WAITING = 1000  # records with keys of their own that may pass before it is known which keys are meant
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, perhaps a second one that belongs to it (else ""), their label ("" where none is asked for), their place."""

    text: str
    text_b: str
    label: str
    file: str
    line: int

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text, self.text_b) if self.text_b else (self.text,)

    @property
    def key(self) -> str:
        """What decides whether it is held out: rows of one text fall on one side."""
        return self.text


def read_labelled(
    files: Sequence[str], data: DataConfig, *, split: str = "", labelled: bool = True
) -> Iterator[Labelled | Bad]:
    """Yield the rows of tables in their order, texts and labels without white space at their ends.

    split:     "train", "valid" or "test" keeps the rows of which the column `data.split_column` says so; "" keeps all
    labelled:  whether each row needs a label; else plain text files can be read too, a line a text
    Missing files and those of another kind are errors at once; at the end, that no row is of the split.
    """
    check_split(split)
    if not files:
        raise DataError("No file was given.", f"Name one or more tables: {', '.join(TABLES)}.")
    for file in files:
        check_file(file)
        if not _is_table(file) and (labelled or format_of(file) is not TEXT):
            raise DataError(f"{file}: labelled text is read from tables.", f"Convert it to one: {', '.join(TABLES)}.")
    return _of_split(files, data, split if data.split_column else "", labelled)


def find_columns(file: str, data: DataConfig, *, labelled: bool = True) -> Columns:
    """Return which columns of a file `read_labelled` takes."""
    for columns, _ in _with_columns(file, data, labelled=labelled, by_split=bool(data.split_column)):
        if columns is not None:
            return columns
    raise DataError(f"{file}: no row can be read.", "Check that it is the right file.")


def check_split(split: str) -> None:
    """Refuse the name of a split that is none."""
    if split and split not in SPLITS:
        raise UsageError(f"The split must be train, valid or test, not '{split}'.", did_you_mean(split, SPLITS))


def split_of(value: str) -> str:
    """Return the split that a cell means, "" if none."""
    return _SPLIT_OF.get(value.strip().casefold(), "")


class NoRowError(DataError):
    """No row is of the split that is wanted."""

    def __init__(self, files: Sequence[str], data: DataConfig, split: str) -> None:
        spellings = listed([f"'{one}'" for one in SPLITS[split]], last="or")
        super().__init__(
            f"{', '.join(files)}: in no row does the column '{data.split_column}' say {spellings}.",
            "Check --split-column, or leave it out.",
        )


def _is_table(file: str) -> bool:
    return file.lower().removesuffix(".gz").endswith(TABLES)


def _of_split(files: Sequence[str], data: DataConfig, split: str, labelled: bool) -> Iterator[Labelled | Bad]:
    found = False
    for file in files:
        for columns, row in _with_columns(file, data, labelled=labelled, by_split=bool(split)):
            if isinstance(row, Bad):
                yield row
                continue
            assert columns is not None
            if split:
                own = split_of(row.fields.get(columns.split, ""))
                if not own:
                    yield Bad(file, row.line, "unknown split", excerpt(row.fields.get(columns.split, "")))
                if own != split:
                    continue
            found = True
            yield _example(row, columns, labelled)
    if split and not found:
        raise NoRowError(files, data, split)


def _with_columns(
    file: str, data: DataConfig, *, labelled: bool, by_split: bool
) -> Iterator[tuple[Columns | None, Row | Bad]]:
    """Yield each row with the columns to take from it; where keys may be missing, the first rows may not tell them yet."""
    wanted = (data.text, data.text_b, data.label, data.split_column)
    if format_of(file) is TEXT:
        yield from ((Columns("text"), row) for row in read_rows(file))
        return
    waits = format_of(file).fields is Fields.KEYS
    columns: Columns | None = None
    seen: dict[str, str] = {}  # the keys so far
    waiting: list[Row] = []
    for row in read_rows(file, columns=wanted, scalars=True):
        if isinstance(row, Bad):
            yield columns, row
            continue
        if columns is None:
            seen |= row.fields
            waiting.append(row)
            try:
                columns = choose_columns(file, seen, data, labelled=labelled, by_split=by_split)
            except DataError:
                if not waits or len(waiting) == MAX_WAITING:
                    raise
                continue
            yield from ((columns, one) for one in waiting)
            waiting.clear()
        else:
            yield columns, row
    if waiting:
        choose_columns(file, seen, data, labelled=labelled, by_split=by_split)  # says what is missing


def _example(row: Row, columns: Columns, labelled: bool) -> Labelled | Bad:
    """Return what a row says, or why it cannot be used."""
    text = row.fields.get(columns.text, "").strip()
    text_b = row.fields.get(columns.text_b, "").strip() if columns.text_b else ""
    label = row.fields.get(columns.label, "").strip() if columns.label else ""
    if not text:
        return _lacking(row, columns.text, "text")
    if columns.text_b and not text_b:
        return _lacking(row, columns.text_b, "second text")
    if labelled and not label:
        return _lacking(row, columns.label, "label")
    if "\0" in text or "\0" in text_b or "\0" in label:
        return Bad(row.file, row.line, "NUL byte", excerpt(text))
    return Labelled(text, text_b, label, row.file, row.line)


def _lacking(row: Row, column: str, role: str) -> Bad:
    found = next((cell for cell in row.fields.values() if cell.strip()), "")
    return Bad(row.file, row.line, f"{'empty' if column in row.fields else 'no'} {role}", excerpt(found))
