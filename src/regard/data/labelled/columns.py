"""Which columns of a table are the text, a second text, the label and the split: as asked for, or as their names tell.

Knows names only. A name tells where it is one that people use and no other column has such a name too, or where only one
column is left; else the answer is an error that lists the columns.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from regard.config import DataConfig
from regard.data.formats.columns import INDEXES, LABELS, SPLIT_COLUMNS, TEXTS, TWOS, folded, listed, plain
from regard.data.formats.rows import excerpt
from regard.errors import DataError, did_you_mean


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns as a file has them; "" for one that is not there.

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


def choose_columns(
    file: str, fields: Mapping[str, str], data: DataConfig, *, labelled: bool, by_split: bool
) -> Columns:
    """Return the columns of a file with such a row.

    labelled:  whether a label is needed; else it may be missing
    by_split:  whether the column that says the split is needed; else it may be missing
    """
    names = list(fields)
    chosen = {
        "--text": _asked(file, data.text, fields),
        "--text-b": _asked(file, data.text_b, fields),
        "--label": _asked(file, data.label, fields, may_lack=not labelled),
        "--split-column": _asked(file, data.split_column, fields, may_lack=not by_split),
    }
    _refuse_same(file, chosen)
    text, text_b, label, split = chosen.values()
    free = [name for name in names if name not in chosen.values() and plain(name) not in INDEXES]
    if not label and not data.label:
        label = _only(name for name in free if plain(name) in LABELS)
        free = [name for name in free if name != label]
    if not text:
        text, partner = _named_text(free, alone=bool(text_b))
        text_b = text_b or partner
        text = text or _only(free)  # what is left beside the label
        free = [name for name in free if name not in (text, text_b)]
    if not label and labelled and text:
        label = _only(free)
    if not text or (labelled and not label):
        raise _cannot_tell(file, fields, text=text, label=label or not labelled)
    idle = "" if data.split_column else _only(name for name in free if plain(name) in SPLIT_COLUMNS and name != label)
    return Columns(text, text_b, label, split, idle)


def _asked(file: str, wanted: str, fields: Mapping[str, str], *, may_lack: bool = False) -> str:
    """Return the column that a name or a number means, "" where none is asked for."""
    names = list(fields)
    if not wanted or wanted in names:
        return wanted
    same = [name for name in names if folded(name) == folded(wanted)]
    if len(same) == 1:
        return same[0]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    if may_lack:
        return ""
    raise DataError(f"{file} has no column '{wanted}'.", _nearest(wanted, fields))


def _nearest(wanted: str, fields: Mapping[str, str]) -> str:
    """Return the sentence that points to the near name; without a header the names would stand in the first row."""
    if not _are_numbered(fields):
        return did_you_mean(wanted, fields)
    near = difflib.get_close_matches(wanted, fields.values(), n=1)
    count = f"It has no header: count its columns, from 1 to {len(fields)}."
    return f"Did you mean {near[0]}?" if near and not wanted.isdecimal() else count


def _refuse_same(file: str, chosen: Mapping[str, str]) -> None:
    names = [name for name in chosen.values() if name]
    for name in names:
        options = [option for option, own in chosen.items() if own == name]
        if len(options) > 1:
            raise DataError(f"{file}: {listed(options)} name the same column, '{name}'.", "Name different ones.")


def _named_text(names: Iterable[str], *, alone: bool) -> tuple[str, str]:
    """Return the columns of a text and a second one that are called so; alone: the second is known already."""
    plains = {plain(name): name for name in names}
    texts = {name for name in plains if name in TEXTS}
    twos = [two for two in TWOS if set(two) <= set(plains)]
    if len(twos) == 1 and texts <= set(twos[0]) and not alone:
        return plains[twos[0][0]], plains[twos[0][1]]
    if not texts and alone:
        texts = {first for first, _ in TWOS if first in plains}
    return (plains[texts.pop()] if len(texts) == 1 else ""), ""


def _only(names: Iterable[str]) -> str:
    """Return the one name that there is; "" for none or several."""
    found = list(names)
    return found[0] if len(found) == 1 else ""


def _cannot_tell(file: str, fields: Mapping[str, str], *, text: str, label: str | bool) -> DataError:
    names: Sequence[str] = list(fields)
    if not names:
        return DataError(
            f"{file}: its records hold no text, no number and no truth value.",
            'Write them as {"text": "…", "label": "…"}.',
        )
    if _are_numbered(fields):
        names = [f'{name} ("{excerpt(cell, characters=20)}")' for name, cell in fields.items()]
    count = f"{len(names)} column{'' if len(names) == 1 else 's'}"
    remedies = {
        (True, False): "Say which is the label with --label.",
        (False, True): "Say which is the text with --text.",
        (False, False): "Say which are the text and the label with --text and --label.",
    }
    remedy = remedies[bool(text), bool(label)]
    if not text and not label and not _are_numbered(fields):
        remedy += " If these are no names but a first row, write a header above it."
    return DataError(f"{file} holds {count}: {listed(names)}.", remedy)


def _are_numbered(fields: Mapping[str, str]) -> bool:
    return list(fields) == [str(number) for number in range(1, len(fields) + 1)]
