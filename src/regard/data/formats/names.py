"""Which of a file's columns or languages somebody means by a name. Knows names only, no files' content."""

from collections.abc import Iterable, Sequence

from regard.errors import DataError, did_you_mean


def match(name: str, names: Iterable[str]) -> list[str]:
    """Return what `name` may mean: itself; else other spellings of it (en_us: en-US); else its regions (en: en-US)."""
    names = list(names)
    if name in names:
        return [name]
    wanted = _plain(name)
    same = [other for other in names if _plain(other) == wanted]
    return same or [other for other in names if _plain(other).startswith(wanted + "-")]


def find(file: str, name: str, names: Sequence[str]) -> str | None:
    """Return the one of `names` that `name` means, None if there is none; DataError if it may be several."""
    found = match(name, names)
    if len(found) > 1:
        raise DataError(
            f"{file}: '{name}' may be {_listed(found, last='or')}.", f"Write the full name, for example {found[0]}."
        )
    return found[0] if found else None


def choose_sides(
    file: str, names: Sequence[str], *, source: str, target: str, noun: str, shown: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the names of the source and the target among `names`.

    With neither given (""), two names are taken in their order; with one given, the other of two is the other.
    `noun` says what the names are ("column", "language"), `shown` how to show them where the names alone say little.
    """
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
        raise DataError(f"{file} holds {count}: {_listed(shown or names)}.", remedy)
    if not source and not target:
        return names[0], names[1]
    given = _require(file, source or target, names, noun=noun)
    other = names[1] if given == names[0] else names[0]
    return (given, other) if source else (other, given)


def _require(file: str, name: str, names: Sequence[str], *, noun: str) -> str:
    found = find(file, name, names)
    if found is None:
        raise DataError(f"{file} has no {noun} '{name}'.", did_you_mean(name, names))
    return found


def _plain(name: str) -> str:
    return name.strip().replace("_", "-").casefold()


def _listed(names: Sequence[str], *, last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
