"""Captioned images: the rows of tables, each a caption and the image that it belongs to.

An image is looked for in the folder of its table, then in the folder `images` there. A path that leaves the folder is
refused: what a table from elsewhere names must not be whatever lies on this disk. Links are the owner's own doing.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from regard.config import DataConfig
from regard.data.captions.columns import CaptionColumns, are_numbered, choose_caption_columns, names_image
from regard.data.formats.files import check_regular
from regard.data.formats.registry import Fields, ending_of, format_of, read_rows
from regard.data.formats.rows import Bad, Row, excerpt
from regard.data.images.survey import place_of
from regard.data.labelled.rows import MAX_WAITING, TABLES, split_of
from regard.errors import DataError

FOLDERS = ("", "images/", "Images/")  # within the table's, in which an image is looked for
NO_IMAGE = "no such image"
PATH_CHARACTERS = 300  # of one that was not found, as a person must see where it was looked for


@dataclass(frozen=True, slots=True)
class Captioned:
    """A caption without white space at its ends, the path of its image, its split ("" for none), and its place."""

    text: str
    image: str
    split: str
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class CaptionTable:
    """A table, and which of its columns are meant; its rows can be read as often as needed.

    wanted: what its reader is told of the columns, by which it knows a header
    """

    file: str
    columns: CaptionColumns
    wanted: tuple[str, ...]
    _images: dict[str, str] = field(default_factory=dict)  # the path of the image that a cell names, "" for none

    @cached_property
    def folder(self) -> str:
        return str(Path(self.file).parent)

    def captions(self, splits: Sequence[str] = ()) -> Iterator[Captioned | Bad]:
        """Yield the rows in their order.

        splits: train, valid or test, of which rows are meant where a column says it; where none does, all are of the first
        """
        for row in self._rows():
            if isinstance(row, Bad):
                yield row
                continue
            split = splits[0] if splits else ""
            if splits and self.columns.split:
                said = row.fields.get(self.columns.split, "")
                split = split_of(said)
                if not split:
                    yield Bad(row.file, row.line, "unknown split", excerpt(said))
                if split not in splits:
                    continue
            yield self._captioned(row, split)

    def named(self) -> set[str]:
        """Return the paths at which the images of all rows, of any split, are looked for."""
        rows = (row for row in self._rows() if isinstance(row, Row))
        cells = {row.fields.get(self.columns.image, "").strip() for row in rows}
        return {path for cell in cells if cell for path in self._candidates(cell)}

    def _rows(self) -> Iterator[Row | Bad]:
        return read_rows(self.file, columns=self.wanted, scalars=True)

    def _captioned(self, row: Row, split: str) -> Captioned | Bad:
        """Return what a row says, or why it cannot be used."""
        cell, text = (row.fields.get(name, "").strip() for name in (self.columns.image, self.columns.caption))
        if not cell:
            return _lacking(row, self.columns.image, "image")
        if not text:
            return _lacking(row, self.columns.caption, "caption")
        if "\0" in cell or "\0" in text:
            return Bad(row.file, row.line, "NUL byte", excerpt(text))
        if cell not in self._images:
            place = f"{row.file}:{row.line}: the image '{excerpt(cell)}'"
            if Path(cell).is_absolute():
                raise DataError(
                    f"{place} is named by an absolute path.",
                    "Write its path from the folder of the table, so that the folder can be moved.",
                )
            if ".." in Path(os.path.normpath(cell)).parts:
                raise DataError(
                    f"{place} lies outside of the folder of the table.",
                    "Put the images into that folder, or a link to them, and write paths from there.",
                )
            self._images[cell] = next(filter(_is_file, self._candidates(cell)), "")
        image = self._images[cell]
        if not image:
            tried = next(self._candidates(cell))
            return Bad(row.file, row.line, NO_IMAGE, excerpt(tried, characters=PATH_CHARACTERS))
        return Captioned(text, image, split, row.file, row.line)

    def _candidates(self, cell: str) -> Iterator[str]:
        for folder in FOLDERS:
            yield place_of(self.folder, "/" + os.path.normpath(folder + cell).replace(os.sep, "/"))


def open_table(file: str, data: DataConfig) -> CaptionTable:
    """Find the columns of a table. Where no row can be read, there are none, and all rows are bad."""
    check_regular(file)
    if not file.lower().removesuffix(".gz").endswith(TABLES):
        raise DataError(f"{file}: captions are read from tables.", f"Convert or rename it to one: {', '.join(TABLES)}.")
    wanted = _wanted(file, data)
    seen: dict[str, str] = {}
    good = (row for row in read_rows(file, columns=wanted, scalars=True) if isinstance(row, Row) and row.fields)
    # A record may lack keys that others have: then the first ones do not tell yet.
    n_tried = MAX_WAITING if format_of(file).fields is Fields.KEYS else 1
    for row in islice(good, n_tried):
        seen |= row.fields
        with suppress(DataError):
            return CaptionTable(file=file, columns=choose_caption_columns(file, seen, data), wanted=wanted)
    if seen:
        choose_caption_columns(file, seen, data)  # says what is missing
    return CaptionTable(file=file, columns=CaptionColumns("", ""), wanted=wanted)


def _wanted(file: str, data: DataConfig) -> tuple[str, ...]:
    """Return what a reader must be told so that it takes a first line for a header if it names no image file."""
    if ending_of(file).removesuffix(".gz") not in (".csv", ".tsv"):
        return data.source, data.text, data.split_column
    first = next((row for row in read_rows(file) if isinstance(row, Row)), None)
    if first is None:
        return ()
    cells = first.fields.values() if are_numbered(first.fields) else first.fields.keys()
    return ("1",) if any(map(names_image, cells)) else tuple(cells)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()  # a pipe that nobody writes to would be waited for, for ever
    except OSError:  # as of a name that is too long
        return False


def _lacking(row: Row, column: str, role: str) -> Bad:
    found = next((cell for cell in row.fields.values() if cell.strip()), "")
    return Bad(row.file, row.line, f"{'empty' if column in row.fields else 'no'} {role}", excerpt(found))
