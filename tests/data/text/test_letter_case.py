"""Letter case: lower-cased corpora are told from others, by all their text and by every side of it."""

from collections.abc import Iterator

import pytest

from regard.data.text import letter_case
from regard.data.text.letter_case import LetterCase

SMALL = "a dog runs across the grass"  # 22 letters
CAPITALS = "A Dog Runs Across The Grass"


def is_lower_cased(*examples: tuple[str, ...]) -> bool:
    letters = LetterCase()
    return letters.of_all(letters.watched(examples))


@pytest.mark.parametrize(
    ("examples", "expected"),
    [
        ([(SMALL,)] * 100, True),
        ([(CAPITALS,)] * 100, False),
        ([(SMALL,)] * 100 + [("A",)] * 2, True),  # 2 of 2,202 letters
        ([(SMALL,)] * 100 + [("A",)] * 3, False),
        ([(SMALL,)] * 10, False),  # too few letters to tell
        ([("一只狗跑过草地",)] * 1000, False),
        ([("über die straße läuft ein käfer",)] * 100, True),
        ([("ΜΕΓΑΛΟ",)] * 1000, False),
        ([], False),
    ],
)
def test_one_side(examples: list[tuple[str, ...]], expected: bool) -> None:
    assert is_lower_cased(*examples) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (SMALL, "ein hund läuft über das gras", True),
        (SMALL, "Ein Hund läuft über das Gras", False),
        (CAPITALS, "ein hund läuft über das gras", False),
        (SMALL, "一只狗跑过草地", True),
    ],
)
def test_every_side_must_be(source: str, target: str, expected: bool) -> None:
    assert is_lower_cased(*[(source, target)] * 100) == expected


def test_one_side_does_not_outweigh_the_other() -> None:
    assert not is_lower_cased(*[(SMALL, "")] * 10_000, ("", "Gras"))


def test_capitals_far_behind_are_seen() -> None:
    assert not is_lower_cased(*[(SMALL,)] * 20_000, *[(CAPITALS,)] * 200)  # 1,200 of 444,400 letters


def test_reading_stops_where_capitals_abound() -> None:
    n_read = 0

    def examples() -> Iterator[tuple[str]]:
        nonlocal n_read
        while True:
            n_read += 1
            yield (CAPITALS,)

    letters = LetterCase()
    assert not letters.of_all(letters.watched(examples()))
    assert n_read == letter_case.MOST_CAPITALS // 6 + 1


def test_what_was_read_before_counts() -> None:
    letters = LetterCase()
    watched = letters.watched([*[(CAPITALS,)] * 100, *[(SMALL,)] * 100])
    assert [next(watched) for _ in range(100)] == [CAPITALS] * 100
    assert not letters.of_all(watched)


def test_many_capitals_are_not_few_however_long_the_text() -> None:
    assert not is_lower_cased(*[("x" * 20_000_000,)], ("X" * 10_001,))
