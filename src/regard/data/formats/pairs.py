"""Pairs of source and target, from aligned text files or from any format that holds both."""

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from regard.data.formats.endings import FORMATS, TEXT, format_of, read_rows
from regard.data.formats.files import check_file
from regard.data.formats.names import choose_sides, find
from regard.data.formats.rows import Bad, Pair, Row, excerpt, read_lines
from regard.errors import DataError


def read_pairs(files: Sequence[str | os.PathLike[str]], *, source: str = "", target: str = "") -> Iterator[Pair | Bad]:
    """Yield the pairs of `files` in their order; both sides of a pair hold text.

    Plain text files come in twos (a.en a.de b.en b.de), line by line. `source` and `target` are columns or languages,
    for files that hold more than two. Missing files and odd ones out are errors at once, not at the first pair.
    """
    names = [os.fspath(file) for file in files]
    if not names:
        raise DataError("No file was given.", "Name two aligned text files, or a file that holds both languages.")
    for name in names:
        check_file(name)
    return _read(_grouped(names), source, target)


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
    for group in groups:
        if len(group) == 2:
            yield from _aligned(*group)
        elif format_of(group[0]).is_memory:
            yield from _from_memory(group[0], source, target)
        else:
            yield from _from_table(group[0], source, target)


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


def _from_table(file: str, source: str, target: str) -> Iterator[Pair | Bad]:
    """Yield the pairs of a file with columns; its first good row says which there are."""
    sides: tuple[str, str] | None = None
    for row in read_rows(file, columns=(source, target)):
        if isinstance(row, Bad):
            yield row
            continue
        if sides is None:
            sides = _columns(row, source, target)
        yield _pair(file, row.line, row.fields.get(sides[0]), row.fields.get(sides[1]))


def _columns(row: Row, source: str, target: str) -> tuple[str, str]:
    names = list(row.fields)
    numbered = names == [str(number) for number in range(1, len(names) + 1)]
    if numbered and len(names) == 2 and not source.isdecimal() and not target.isdecimal():
        # Two columns without a header: what --from and --to name can only be these, in this order.
        return "1", "2"
    shown = [f'{name} ("{excerpt(row.fields[name], characters=20)}")' for name in names] if numbered else names
    return choose_sides(row.file, names, source=source, target=target, noun="column", shown=shown)


def _from_memory(file: str, source: str, target: str) -> Iterator[Pair | Bad]:
    """Yield the pairs of a file whose fields are languages; a unit that lacks one of the two is passed over."""
    seen: dict[str, None] = {}  # the file's languages in their order
    sides: dict[tuple[str, ...], tuple[str, str] | None] = {}
    found = False
    for row in read_rows(file):
        if isinstance(row, Bad):
            yield row
            continue
        languages = tuple(row.fields)
        if languages not in sides:
            seen |= dict.fromkeys(languages)
            sides[languages] = _languages(file, languages, list(seen), source, target)
        chosen = sides[languages]
        if chosen is not None:
            found = True
            yield _pair(file, row.line, row.fields[chosen[0]], row.fields[chosen[1]])
    if not seen:
        raise DataError(
            f"{file}: no translated unit is in it.", "Check that it is the translated file, not a template."
        )
    if not found:
        first, second = choose_sides(file, list(seen), source=source, target=target, noun="language")
        raise DataError(f"{file}: no unit holds both {first} and {second}.", "Choose two others with --from and --to.")


def _languages(
    file: str, languages: tuple[str, ...], seen: list[str], source: str, target: str
) -> tuple[str, str] | None:
    """Return the two languages to take from a unit that holds `languages`, None if it lacks one."""
    if source and target:
        if find(file, source, languages) is None or find(file, target, languages) is None:
            return None
        return choose_sides(file, languages, source=source, target=target, noun="language")
    if len(seen) < 2:
        return None
    # What was not named follows from all that the file has shown: it must be two.
    sides = choose_sides(file, seen, source=source, target=target, noun="language")
    return sides if set(sides) <= set(languages) else None


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
