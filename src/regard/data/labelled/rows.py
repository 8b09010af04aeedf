"""Labelled text: the rows of tables as texts, one or two of them, with a label (a class, or a number)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from regard.config import DataConfig
from regard.data.formats.columns import (
    INDEXES,
    LABELS,
    SPLIT_COLUMNS,
    TEXTS,
    TWOS,
    are_numbered,
    asked_column,
    called,
    cannot_tell,
    only,
    plain,
    refuse_same,
)
from regard.data.formats.files import check_file
from regard.data.formats.registry import TEXT, format_of
from regard.data.formats.rows import Bad, Row
from regard.data.formats.splits import check_splits
from regard.data.formats.tables import Table, cells_of, check_tables, open_table, rows_of_splits
from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """The names of columns as a table has them; "" for one that is not there.

    idle_split: one that by its name says splits, though none was asked for
    """

    text: str
    text_b: str = ""
    label: str = ""
    split: str = ""
    idle_split: str = ""

    def sentence(self) -> str:
        """Say which columns they are."""
        roles = {"text": self.text, "second text": self.text_b, "label": self.label, "split": self.split}
        return ", ".join(f"{role} '{name}'" for role, name in roles.items() if name)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, perhaps a second one that belongs to it (else ""), their label ("" where none is asked for), their place.

    split:  that which a column says it is of
    row:    all that the table says
    """

    text: str
    text_b: str
    label: str
    file: str
    line: int
    split: str = ""
    row: Row = field(default=Row("", 0, {}), compare=False, repr=False)

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
    files: Sequence[str], data: DataConfig, *, splits: Sequence[str] = (), labelled: bool = True
) -> Iterator[Labelled | Bad]:
    """Yield the rows of tables in their order, texts and labels without white space at their ends.

    splits:    train, valid or test keep the rows of which the column `data.split_column` says so; none keep all
    labelled:  whether each row needs a label; else plain text files can be read too, a line a text
    Missing files and those of another kind are errors at once; at the end, that no row is of the splits.
    """
    check_splits(*splits)
    texts = [file for file in files if not labelled and format_of(file) is TEXT]
    for file in texts:
        check_file(file)
    if not texts:
        check_tables(files, "labelled texts")
    tables = [_open(file, data, labelled=labelled, by_split=bool(splits)) for file in files]
    return _read(tables, splits if data.split_column else (), labelled)


def find_columns(file: str, data: DataConfig) -> LabelColumns:
    """Return which columns of a table `read_labelled` takes."""
    columns = _open(file, data, labelled=True, by_split=bool(data.split_column)).columns
    if columns is None:
        raise DataError(f"{file}: no row can be read.", "Check that it is the right file.")
    return columns


def _open(file: str, data: DataConfig, *, labelled: bool, by_split: bool) -> Table[LabelColumns]:
    if format_of(file) is TEXT:
        return Table(file=file, columns=LabelColumns("text"), wanted=())
    choose = partial(choose_label_columns, file, data=data, labelled=labelled, by_split=by_split)
    return open_table(file, choose, wanted=(data.text, data.text_b, data.label, data.split_column))


def _read(tables: Sequence[Table[LabelColumns]], splits: Sequence[str], labelled: bool) -> Iterator[Labelled | Bad]:
    for found in rows_of_splits(tables, splits):
        yield found if isinstance(found, Bad) else _example(*found, labelled)


def _example(columns: LabelColumns, row: Row, split: str, labelled: bool) -> Labelled | Bad:
    """Return what a row says, or why it cannot be used."""
    label = columns.label if labelled else ""
    cells = cells_of(row, {"text": columns.text, "second text": columns.text_b, "label": label})
    if isinstance(cells, Bad):
        return cells
    text, text_b, label = cells
    return Labelled(text, text_b, label, row.file, row.line, split, row)


def choose_label_columns(
    file: str, fields: Mapping[str, str], data: DataConfig, *, labelled: bool, by_split: bool
) -> LabelColumns:
    """Return the columns of a file with such a row.

    A name tells where it is one that people use and no other column has such a name too, or where only one column is left.
    labelled:  whether a label is needed; else it may be missing
    by_split:  whether the column that says the split is needed; else it may be missing
    """
    chosen = {
        "--text": asked_column(file, data.text, fields),
        "--text-b": asked_column(file, data.text_b, fields),
        "--label": asked_column(file, data.label, fields, may_lack=not labelled),
        "--split-column": asked_column(file, data.split_column, fields, may_lack=not by_split),
    }
    refuse_same(file, chosen)
    text, text_b, label, split = chosen.values()
    free = [name for name in fields if name not in chosen.values() and plain(name) not in INDEXES]
    if not label and not data.label:
        label = called(free, LABELS)
        free = [name for name in free if name != label]
    if not text:
        text, partner = _named_texts(free, alone=bool(text_b))
        text_b = text_b or partner
        text = text or only(free)  # what is left beside the label
        free = [name for name in free if name not in (text, text_b)]
    if not label and labelled and text:
        label = only(free)
    roles = {"text": ("--text", text), "label": ("--label", label or not labelled)}
    if missing := {role: option for role, (option, column) in roles.items() if not column}:
        unsure = len(missing) > 1 and not are_numbered(fields)
        advice = " If these are no names but a first row, write a header above it." if unsure else ""
        raise cannot_tell(file, fields, missing, advice=advice)
    idle = "" if data.split_column else called((name for name in free if name != label), SPLIT_COLUMNS)
    return LabelColumns(text, text_b, label, split, idle)


def _named_texts(names: Iterable[str], *, alone: bool) -> tuple[str, str]:
    """Return the columns of a text and a second one that are called so; alone: the second is known already."""
    plains = {plain(name): name for name in names}
    texts = {name for name in plains if name in TEXTS}
    twos = [two for two in TWOS if set(two) <= set(plains)]
    if len(twos) == 1 and texts <= set(twos[0]) and not alone:
        return plains[twos[0][0]], plains[twos[0][1]]
    if not texts and alone:
        texts = {first for first, _ in TWOS if first in plains}
    return (plains[texts.pop()] if len(texts) == 1 else ""), ""
