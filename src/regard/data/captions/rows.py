"""Captioned images: the rows of tables, each a caption and the image that it belongs to.

An image is looked for in the folder of its table, then in the folder `images` there. A path that leaves the folder is
refused: what a table from elsewhere names must not be whatever lies on this disk. Links are the owner's own doing.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from regard.config import DataConfig
from regard.data.formats.columns import (
    INDEXES,
    SPLIT_COLUMNS,
    are_numbered,
    asked_column,
    called,
    cannot_tell,
    only,
    plain,
    refuse_same,
)
from regard.data.formats.registry import ending_of, read_rows
from regard.data.formats.rows import Bad, Row, excerpt, place_of
from regard.data.formats.splits import split_of
from regard.data.formats.tables import Table, cells_of, open_table
from regard.data.images.decoding import ENDINGS
from regard.errors import DataError

FOLDERS = ("", "images/", "Images/")  # within the table's, in which an image is looked for
NO_IMAGE = "no such image"
PATH_CHARACTERS = 300  # of one that was not found, as a person must see where it was looked for
# What people call the columns; written without spaces, hyphens and underscores, as `plain` has them.
_IMAGES = "image img picture photo file filename filepath path imagefile imagefilename imagename imagepath"
IMAGES = tuple(_IMAGES.split())
CAPTIONS = ("caption", "text", "sentence", "description", "comment", "annotation")


@dataclass(frozen=True, slots=True)
class CaptionColumns:
    """The names of columns as a table has them; "" for one that is not there."""

    image: str
    caption: str
    split: str = ""

    def sentence(self) -> str:
        """Say which columns they are."""
        roles = {"image": self.image, "caption": self.caption, "split": self.split}
        return ", ".join(f"{role} '{name}'" for role, name in roles.items() if name)


@dataclass(frozen=True, slots=True)
class Captioned:
    """A caption without white space at its ends, the path of its image, its split ("" for none), and its place."""

    text: str
    image: str
    split: str
    file: str
    line: int
    image_row: int = -1  # in the corpus of images, once these are stored


class ImagePaths:
    """Finds the images that the cells of tables name; each is looked for once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], str] = {}  # by table and cell; "" for none

    def captioned(self, columns: CaptionColumns, row: Row, split: str) -> Captioned | Bad:
        """Return what a row says, or why it cannot be used."""
        cells = cells_of(row, {"image": columns.image, "caption": columns.caption})
        if isinstance(cells, Bad):
            return cells
        cell, text = cells
        key = row.file, cell
        if key not in self._found:
            _refuse_outside(f"{row.file}:{row.line}: the image '{excerpt(cell)}'", cell)
            self._found[key] = next(filter(_is_file, candidates(row.file, cell)), "")
        if not self._found[key]:
            tried = next(candidates(row.file, cell))
            return Bad(row.file, row.line, NO_IMAGE, excerpt(tried, characters=PATH_CHARACTERS))
        return Captioned(text, self._found[key], split, row.file, row.line)


def candidates(table: str, cell: str) -> Iterator[str]:
    """Yield the paths at which the image that a cell of a table names is looked for."""
    for folder in FOLDERS:
        yield place_of(folder_of(table), "/" + os.path.normpath(folder + cell).replace(os.sep, "/"))


def folder_of(table: str) -> str:
    """Return the folder in which the images of a table are looked for."""
    return str(Path(table).parent)


def open_captions(file: str, data: DataConfig) -> Table[CaptionColumns]:
    """Find the columns of a table of captions."""
    return open_table(file, partial(choose_caption_columns, file, data=data), wanted=_wanted(file, data))


def names_image(cell: str) -> bool:
    """Tell whether a cell ends as the name of an image file does."""
    return PurePath(cell.strip()).suffix.lower() in ENDINGS


def choose_caption_columns(file: str, fields: Mapping[str, str], data: DataConfig) -> CaptionColumns:
    """Return the columns of a file with such a row: `data.image` is the image, `data.text` the caption.

    A name tells where it is one that people use and no other column has such a name too. A row tells by a cell that ends
    as the name of an image file does, and without a header by one that says train, valid or test. Where only one column
    is left it is the other.
    """
    asked = {"--image": data.image, "--text": data.text, "--split-column": data.split_column}
    chosen = {option: asked_column(file, wanted, fields) for option, wanted in asked.items()}
    refuse_same(file, chosen)
    image, caption, split = chosen.values()
    free = [name for name in fields if name not in chosen.values() and plain(name) not in INDEXES]
    split = split or called(free, SPLIT_COLUMNS)
    if not split and are_numbered(fields) and len(fields) > 2:
        split = only(name for name in free if split_of(fields[name]))
    free = [name for name in free if name != split]
    image = image or called(free, IMAGES) or only(name for name in free if names_image(fields[name]))
    free = [name for name in free if name != image]
    caption = caption or called(free, CAPTIONS) or (only(free) if image else "")
    image = image or (only(name for name in free if name != caption) if caption else "")
    roles = {"image": ("--image", image), "caption": ("--text", caption)}
    if missing := {role: option for role, (option, column) in roles.items() if not column}:
        raise cannot_tell(file, fields, missing)
    return CaptionColumns(image, caption, split)


def _wanted(file: str, data: DataConfig) -> tuple[str, ...]:
    """Return what a reader must be told so that it takes a first line for a header if it names no image file."""
    if ending_of(file).removesuffix(".gz") not in (".csv", ".tsv"):
        return data.image, data.text, data.split_column
    first = next((row for row in read_rows(file) if isinstance(row, Row)), None)
    if first is None:
        return ()
    cells = first.fields.values() if are_numbered(first.fields) else first.fields.keys()
    return ("1",) if any(map(names_image, cells)) else tuple(cells)


def _refuse_outside(place: str, cell: str) -> None:
    """Refuse the path of an image that is not within the folder of its table."""
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


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()  # a pipe that nobody writes to would be waited for, for ever
    except OSError:  # as of a name that is too long
        return False
