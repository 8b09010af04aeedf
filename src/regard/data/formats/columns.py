"""Columns: which column or language of a file is meant, as somebody names it, or as the names that people use tell.

Pairs choose two sides (`choose_sides`). Tables of other kinds have roles, such as text and label: what is asked for is
found by `asked_column`, the rest by what columns are called, and where that does not tell, an error lists them.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from regard.data.formats.rows import excerpt
from regard.errors import DataError, did_you_mean

# ISO 639-1: every language that has a code of two letters.
_ISO_639_1 = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es
et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki
kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no
nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te
tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
LANGUAGES = frozenset(_ISO_639_1.split())
SOURCES = ("source", "src")
TARGETS = ("target", "tgt", "trg")
# What people call the columns of labelled text; written without spaces, hyphens and underscores, as `plain` has them.
_TEXTS = "text sentence content review question sequence document comment message utterance query tweet body passage"
TEXTS = tuple(_TEXTS.split())
TWOS = (
    *(
        (noun + first, noun + second)
        for noun in ("text", "sentence", "question", "sequence")
        for first, second in (("1", "2"), ("a", "b"), ("", "2"), ("", "b"))
    ),
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("question", "passage"),
    ("query", "passage"),
    ("query", "document"),
)
_LABELS = """
label labels class category target score tag intent y sentiment rating stars topic emotion value fitness similarity
goldlabel isduplicate
"""
LABELS = tuple(_LABELS.split())
SPLIT_COLUMNS = ("split", "subset", "partition")
INDEXES = ("", "id", "idx", "index", "guid", "uid", "unnamed:0")  # pandas calls a column without a name as the last
COLUMNS = frozenset(
    {*SOURCES, *TARGETS, *TEXTS, *(name for two in TWOS for name in two), *LABELS, "id", "idx", "index"}
)
MAX_LISTED = 20  # names that a sentence lists
# A language, perhaps its script, perhaps its region: en, zh-Hant, pt_BR, es-419. Not "En" or "No", which begin sentences.
_CODE = re.compile(r"([a-z]{2}|[A-Z]{2})([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")


@lru_cache
def folded(name: str) -> str:
    """Return what all spellings of a name have in common: en_US and EN-us are en-us."""
    return name.strip().replace("_", "-").casefold()


def plain(name: str) -> str:
    """Return a name as `TEXTS`, `TWOS` and `LABELS` have it: sentence1 of "Sentence 1" and sentence_1."""
    return folded(name).replace("-", "").replace(" ", "")


def language_of(name: str) -> str:
    """Return the language of a code without its script and region: en of en-US."""
    return folded(name).partition("-")[0]


def match(name: str, names: Iterable[str]) -> list[str]:
    """Return what `name` may mean: itself; else other spellings of it (en_us: en-US); else its regions (en: en-US)."""
    names = list(names)
    if name in names:
        return [name]
    wanted = folded(name)
    same = [other for other in names if folded(other) == wanted]
    return same or [other for other in names if folded(other).startswith(wanted + "-")]


def is_column_name(text: str) -> bool:
    """Tell whether a text names a column beyond doubt: the whole code of a language, or source, text, label, …"""
    code = _CODE.fullmatch(text)
    return (code is not None and code[1].lower() in LANGUAGES) or plain(text) in COLUMNS


def name_text_and_label(cells: Iterable[str]) -> bool:
    """Tell whether among the cells of a first line are both the name of a text and that of a label, as people give them."""
    names = {plain(cell) for cell in cells}
    texts = {*TEXTS, *(first for first, _ in TWOS)}
    return not names.isdisjoint(texts) and not names.isdisjoint(LABELS)


def call_unnamed(role: str, *, given: Sequence[str], known: str) -> str:
    """Return what to call the language of a side ("source", "target") of a file that does not name it.

    `given` are the names that were asked for, source and target. The side's own is meant, or the other's where the file
    calls its other side `known` and that is not it: asked for de and en, what is not English is German.
    """
    own, other = [*given, "", ""][:2] if role == "source" else [*given, "", ""][1::-1]
    candidates = (own, other) if known else (own,)
    return next((name for name in candidates if name and language_of(name) != language_of(known)), role)


def find(file: str, name: str, names: Sequence[str]) -> str | None:
    """Return the one of `names` that `name` means, None if there is none; DataError if it may be several."""
    found = match(name, names)
    if len(found) > 1:
        raise DataError(
            f"{file}: '{name}' may be {listed(found, last='or')}.", f"Write the full name, for example {found[0]}."
        )
    return found[0] if found else None


def choose_sides(
    file: str, names: Sequence[str], *, source: str, target: str, noun: str, shown: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the names of the source and the target among `names`, of which there is at least one.

    With neither given (""), two names are taken in their order; with one given, the other of two is the other. Two that
    are called source and target are that, whatever languages are given.
    `noun` says what the names are ("column", "language"), `shown` how to show them where the names alone say little.
    """
    roles = _roles(names, source=source, target=target)
    if roles:
        return roles
    if source and target:
        first, second = (_require(file, name, names, noun=noun) for name in (source, target))
        if first == second:
            raise DataError(
                f"{file}: source and target are the same {noun}, {first}.", "Give --from and --to different ones."
            )
        return first, second
    if len(names) != 2:
        count = f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"
        remedy = "Say which are meant with --from and --to." if len(names) > 1 else "A pair of them is needed."
        raise DataError(f"{file} holds {count}: {listed(shown or names)}.", remedy)
    if not source and not target:
        return names[0], names[1]
    given = _require(file, source or target, names, noun=noun)
    other = names[1] if given == names[0] else names[0]
    return (given, other) if source else (other, given)


def can_choose(names: Sequence[str], *, source: str, target: str) -> bool:
    """Tell whether among `names` is what `choose_sides` looks for: both that are given, or else two at least."""
    if source and target:
        both_found = bool(match(source, names) and match(target, names))
        return both_found or _roles(names, source=source, target=target) is not None
    return len(names) > 1


def _roles(names: Sequence[str], *, source: str, target: str) -> tuple[str, str] | None:
    """Return the source and the target if there are two names that say which is which, and no other way was asked."""
    sources = [name for name in names if folded(name) in SOURCES]
    targets = [name for name in names if folded(name) in TARGETS]
    if len(names) != 2 or not sources or not targets:
        return None
    if any(name.isdecimal() or match(name, names) for name in (source, target) if name):
        return None
    return sources[0], targets[0]


def _require(file: str, name: str, names: Sequence[str], *, noun: str) -> str:
    found = find(file, name, names)
    if found is None:
        raise DataError(f"{file} has no {noun} '{name}'.", did_you_mean(name, names))
    return found


def listed(names: Sequence[str], *, last: str = "and") -> str:
    """Return names as a sentence lists them: a, b and c; of very many the first, and how many more there are."""
    if len(names) > MAX_LISTED:
        names = [*names[:MAX_LISTED], f"{len(names) - MAX_LISTED:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def asked_column(place: str, wanted: str, fields: Mapping[str, str], *, may_lack: bool = False) -> str:
    """Return the column of a table that a name or a number (from 1) means; "" where none is asked for.

    place:     the file, perhaps with the line of its header, for the error
    fields:    the columns by name, with the cells of a row
    may_lack:  whether there may be no such column; the answer is "" then
    """
    names = list(fields)
    if not wanted or wanted in names:
        return wanted
    for spelled in (folded, plain):
        same = [name for name in names if spelled(name) == spelled(wanted)]
        if len(same) == 1:
            return same[0]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    if may_lack:
        return ""
    raise DataError(f"{place} has no column '{wanted}'.", _nearest_column(wanted, fields))


def _nearest_column(wanted: str, fields: Mapping[str, str]) -> str:
    """Return the sentence that points to the near name; without a header the names would stand in the first row."""
    if not are_numbered(fields):
        return did_you_mean(wanted, fields)
    near = difflib.get_close_matches(wanted, fields.values(), n=1)
    count = f"It has no header: count its columns, from 1 to {len(fields)}."
    return f"Did you mean {near[0]}?" if near and not wanted.isdecimal() else count


def are_numbered(names: Iterable[str]) -> bool:
    """Tell whether columns have numbers for names, as where there is no header."""
    return all(name == str(number) for number, name in enumerate(names, start=1))


def only(names: Iterable[str]) -> str:
    """Return the one name that there is; "" for none or several."""
    found = list(names)
    return found[0] if len(found) == 1 else ""


def called(names: Iterable[str], known: Sequence[str]) -> str:
    """Return the one of `names` that is called as `known` has it; "" for none or several."""
    return only(name for name in names if plain(name) in known)


def refuse_same(file: str, chosen: Mapping[str, str]) -> None:
    """Refuse one column for two roles; `chosen` are the columns by the options that name them."""
    for name in filter(None, chosen.values()):
        options = [option for option, own in chosen.items() if own == name]
        if len(options) > 1:
            raise DataError(f"{file}: {listed(options)} name the same column, '{name}'.", "Name different ones.")


def cannot_tell(file: str, fields: Mapping[str, str], missing: Mapping[str, str], *, advice: str = "") -> DataError:
    """Return the error for a table whose names do not tell some columns; `missing` are their roles, with the options."""
    names: Sequence[str] = list(fields)
    if are_numbered(fields):
        names = [f'{name} ("{excerpt(cell, characters=20)}")' for name, cell in fields.items()]
    count = f"{len(names)} column{'' if len(names) == 1 else 's'}"
    roles = listed([f"the {role}" for role in missing])
    return DataError(
        f"{file} holds {count}: {listed(names)}.",
        f"Say which {'is' if len(missing) == 1 else 'are'} {roles} with {listed(list(missing.values()))}.{advice}",
    )
