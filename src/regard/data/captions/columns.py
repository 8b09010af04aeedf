"""Which columns of a table are the image, the caption and the split: as asked for, or as their names or a row tell.

A name tells where it is one that people use and no other column has such a name too. A row tells by a cell that ends as
the name of an image file does, and without a header by one that says train, valid or test. Where only one column is left
it is the other; else the answer is an error that lists the columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from regard.config import DataConfig
from regard.data.formats.columns import INDEXES, SPLIT_COLUMNS, listed, plain
from regard.data.formats.rows import excerpt
from regard.data.images.decoding import ENDINGS
from regard.data.labelled.columns import choose_columns
from regard.data.labelled.rows import split_of
from regard.errors import DataError

# What people call the columns; written without spaces, hyphens and underscores, as `plain` has them.
_IMAGES = "image img picture photo file filename filepath path imagefile imagefilename imagename imagepath"
IMAGES = tuple(_IMAGES.split())
CAPTIONS = ("caption", "text", "sentence", "description", "comment", "annotation")


@dataclass(frozen=True, slots=True)
class CaptionColumns:
    """The names of columns as a file has them; "" for one that is not there."""

    image: str
    caption: str
    split: str = ""

    def sentence(self) -> str:
        """Say which columns they are."""
        roles = {"image": self.image, "caption": self.caption, "split": self.split}
        return ", ".join(f"{role} '{name}'" for role, name in roles.items() if name)


def choose_caption_columns(file: str, fields: Mapping[str, str], data: DataConfig) -> CaptionColumns:
    """Return the columns of a file with such a row: `data.source` is the image, `data.text` the caption."""
    asked = {"--from": data.source, "--text": data.text, "--split-column": data.split_column}
    chosen = {option: _asked(file, fields, wanted) for option, wanted in asked.items()}
    _refuse_same(file, chosen)
    image, caption, split = chosen.values()
    free = [name for name in fields if name not in chosen.values() and plain(name) not in INDEXES]
    split = split or _called(free, SPLIT_COLUMNS)
    if not split and are_numbered(fields) and len(fields) > 2:
        split = _only(name for name in free if split_of(fields[name]))
    free = [name for name in free if name != split]
    image = image or _called(free, IMAGES) or _only(name for name in free if names_image(fields[name]))
    free = [name for name in free if name != image]
    caption = caption or _called(free, CAPTIONS) or (_only(free) if image else "")
    image = image or (_only(name for name in free if name != caption) if caption else "")
    if not image or not caption:
        raise _cannot_tell(file, fields, image=image, caption=caption)
    return CaptionColumns(image, caption, split)


def names_image(cell: str) -> bool:
    """Tell whether a cell ends as the name of an image file does."""
    return PurePath(cell.strip()).suffix.lower() in ENDINGS


def are_numbered(fields: Iterable[str]) -> bool:
    """Tell whether columns have numbers for names, as where there is no header."""
    return all(name == str(number) for number, name in enumerate(fields, start=1))


def _asked(file: str, fields: Mapping[str, str], wanted: str) -> str:
    """Return the column that a name or a number means, "" where none is asked for."""
    if not wanted:
        return ""
    return choose_columns(file, fields, DataConfig(text=wanted), labelled=False, by_split=False).text


def _refuse_same(file: str, chosen: Mapping[str, str]) -> None:
    for name in filter(None, chosen.values()):
        options = [option for option, own in chosen.items() if own == name]
        if len(options) > 1:
            raise DataError(f"{file}: {listed(options)} name the same column, '{name}'.", "Name different ones.")


def _called(names: Iterable[str], known: Sequence[str]) -> str:
    return _only(name for name in names if plain(name) in known)


def _only(names: Iterable[str]) -> str:
    """Return the one name that there is; "" for none or several."""
    found = list(names)
    return found[0] if len(found) == 1 else ""


def _cannot_tell(file: str, fields: Mapping[str, str], *, image: str, caption: str) -> DataError:
    names: Sequence[str] = list(fields)
    if are_numbered(fields):
        names = [f'{name} ("{excerpt(cell, characters=20)}")' for name, cell in fields.items()]
    count = f"{len(names)} column{'' if len(names) == 1 else 's'}"
    remedies = {
        (True, False): "Say which is the caption with --text.",
        (False, True): "Say which is the image with --from.",
        (False, False): "Say which are the image and the caption with --from and --text.",
    }
    return DataError(f"{file} holds {count}: {listed(names)}.", remedies[bool(image), bool(caption)])
