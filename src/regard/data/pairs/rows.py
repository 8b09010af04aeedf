"""Sentence pairs, source and target, from aligned text files or from any format that holds both."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from regard.data.formats.columns import are_numbered, can_choose, choose_sides, match
from regard.data.formats.files import check_files
from regard.data.formats.registry import FORMATS, TEXT, Fields, format_of, read_rows
from regard.data.formats.rows import Bad, Row, excerpt, read_lines
from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, and the place they come from (in two aligned files: the first)."""

    source: str
    target: str
    file: str
    line: int


def read_pairs(files: Sequence[str | os.PathLike[str]], *, source: str = "", target: str = "") -> Iterator[Pair | Bad]:
    """Yield the pairs of `files` in their order; both sides of a pair hold text.

    Plain text files come in twos (a.en a.de b.en b.de), line by line. `source` and `target` are columns or languages,
    for files that hold more than two. Missing files and odd ones out are errors at once, not at the first pair.
    """
    names = check_files(files, "Name two aligned text files, or a file that holds both languages.")
    return _read(_grouped(names), source, target)


def header_columns(files: Sequence[str], *, source: str = "", target: str = "") -> list[tuple[str, str]]:
    """Say of each table whose first line was taken for a header which of its columns are read.

    Of a list of words this is not certain: "it" and "es" are codes of languages and words.
    """
    found = []
    for file in files:
        if format_of(file) is not TEXT and format_of(file).fields is Fields.COLUMNS:
            first = next((row for row in read_rows(file, columns=(source, target)) if isinstance(row, Row)), None)
            if first is not None and not are_numbered(first.fields):
                found.append(("columns", f"{' and '.join(_columns(first, source, target))}, by the header of {file}"))
    return found


def _grouped(files: list[str]) -> list[tuple[str, ...]]:
    """Return aligned text files as twos, the others alone."""
    groups: list[tuple[str, ...]] = []
    waiting = iter(files)
    for file in waiting:
        if format_of(file) is not TEXT:
            groups.append((file,))
            continue
        partner = next(waiting, None)
        if partner is None or format_of(partner) is not TEXT:
            found = "nothing follows it" if partner is None else f"{partner} follows it"
            raise DataError(
                f"{file}: a text file needs its translation as the next file, but {found}.",
                f"Give both sides, or one file with both: {', '.join(FORMATS)}.",
            )
        groups.append((file, partner))
    return groups


def _read(groups: list[tuple[str, ...]], source: str, target: str) -> Iterator[Pair | Bad]:
    for file, *partner in groups:
        if partner:
            yield from _aligned(file, *partner)
        else:
            read = _from_memory if format_of(file).fields is Fields.LANGUAGES else _from_records
            yield from read(file, source, target)


def _aligned(source_file: str, target_file: str) -> Iterator[Pair | Bad]:
    """Yield line by line the pairs of two text files; that one is longer is known only at its end."""
    n_source = n_target = 0
    for source, target in zip_longest(read_lines(source_file), read_lines(target_file)):
        n_source += source is not None
        n_target += target is not None
        if source is None or target is None:
            continue
        if isinstance(source, Bad):
            yield source
        elif isinstance(target, Bad):
            yield target
        else:
            yield _pair(source_file, n_source, source, target)
    if n_source != n_target:
        raise DataError(
            f"{source_file} has {n_source:,} lines, but {target_file} has {n_target:,}: they are not aligned.",
            "Make both files again from their origin: line n of one is the translation of line n of the other.",
        )


def _columns(row: Row, source: str, target: str) -> tuple[str, str]:
    names = list(row.fields)
    numbered = are_numbered(names)
    if numbered and len(names) == 2 and not source.isdecimal() and not target.isdecimal():
        # Two columns without a header: what --from and --to name can only be these, in this order.
        return "1", "2"
    shown = [f'{name} ("{excerpt(row.fields[name], characters=20)}")' for name in names] if numbered else names
    return choose_sides(row.file, names, source=source, target=target, noun="column", shown=shown)


def _from_records(file: str, source: str, target: str) -> Iterator[Pair | Bad]:
    """Yield the pairs of a file of records; one that lacks a side is bad.

    In a table the first row says which columns there are. Where records have keys of their own, names that are both given
    may stand in different ones at first; else the first record with two keys or more says which there are.
    """
    is_table = format_of(file).fields is Fields.COLUMNS
    sides: tuple[str, str] | None = None
    seen: dict[str, None] = {}  # the keys so far, in their order
    for row in read_rows(file, columns=(source, target)):
        if isinstance(row, Bad):
            yield row
            continue
        if sides is None and is_table:
            sides = _columns(row, source, target)
        elif sides is None:
            new = [name for name in row.fields if name not in seen]
            seen |= dict.fromkeys(new)
            names = list(row.fields)
            if source and target:  # only a new key can be what was missing so far
                names = list(seen) if len(seen) == 2 or match(source, new) or match(target, new) else []
            if can_choose(names, source=source, target=target):
                sides = choose_sides(file, names, source=source, target=target, noun="column")
        if sides is None:
            reason = "fewer than two columns"
            if source and target:
                reason = "no target" if match(source, row.fields) else "no source"
            yield Bad(file, row.line, reason, excerpt(next(iter(row.fields.values()), "")))
        else:
            yield _pair(file, row.line, row.fields.get(sides[0]), row.fields.get(sides[1]))
    if sides is None and seen:
        choose_sides(file, list(seen), source=source, target=target, noun="column")  # says what is missing


def _from_memory(file: str, source: str, target: str) -> Iterator[Pair | Bad]:
    """Yield the pairs of a file whose fields are languages; a unit that lacks one of the two is passed over."""
    seen: list[str] = []  # the file's languages, those of the unit that decides first
    wanted: tuple[str, str] | None = None
    sides: dict[tuple[str, ...], tuple[str, str] | str | None] = {}  # by the languages of a unit
    found = False
    for row in read_rows(file, columns=(source, target)):
        if isinstance(row, Bad):
            yield row
            continue
        if wanted is None:
            seen = list(dict.fromkeys((*row.fields, *seen)))
        new = [language for language in row.fields if language not in seen]
        if wanted is None or new:
            seen += new
            wanted = _languages(file, seen, source, target)
        if wanted is None:
            continue
        languages = tuple(row.fields)
        if languages not in sides:
            sides[languages] = _sides_of_unit(file, languages, *wanted)
        chosen = sides[languages]
        if isinstance(chosen, str):
            yield Bad(file, row.line, chosen, excerpt(next(iter(row.fields.values()))))
        elif chosen:
            found = True
            yield _pair(file, row.line, row.fields[chosen[0]], row.fields[chosen[1]])
    if not seen:
        raise DataError(
            f"{file}: no translated unit is in it.", "Check that it is the translated file, not a template."
        )
    if not found:
        first, second = choose_sides(file, seen, source=source, target=target, noun="language")
        raise DataError(f"{file}: no unit holds both {first} and {second}.", "Choose two others with --from and --to.")


def _languages(file: str, seen: list[str], source: str, target: str) -> tuple[str, str] | None:
    """Return the names of the two languages to take, None as long as the file has not shown what was not given.

    What was not given follows from all that the file has shown: without the regions of the one given, one is left.
    """
    if source and target:
        return source, target
    given = source or target
    kin = match(given, seen) if given else []
    others = [language for language in seen if language not in kin]
    if kin and len(others) == 1:
        return (source, others[0]) if source else (others[0], target)
    if len(seen) < 2 or not others:
        return None
    return choose_sides(file, seen, source=source, target=target, noun="language")


def _sides_of_unit(file: str, languages: tuple[str, ...], source: str, target: str) -> tuple[str, str] | str | None:
    """Return the two languages to take from a unit, why it cannot be told which, or None if the unit lacks one."""
    found = {name: match(name, languages) for name in (source, target)}
    if not all(found.values()):
        return None
    several = [name for name in found if len(found[name]) > 1]
    if several:
        return f"several {several[0]}"
    return choose_sides(file, languages, source=source, target=target, noun="language")


def _pair(file: str, line: int, source: str | None, target: str | None) -> Pair | Bad:
    has_source, has_target = bool(source and source.strip()), bool(target and target.strip())
    if source is None or target is None:
        reason = "no source" if source is None else "no target"
    elif not (has_source and has_target):
        reason = "empty source" if has_target else "empty target" if has_source else "empty pair"
    elif "\0" in source or "\0" in target:
        reason = "NUL byte"
    else:
        return Pair(source, target, file, line)
    return Bad(file, line, reason, excerpt((source or "").strip() or target or ""))
