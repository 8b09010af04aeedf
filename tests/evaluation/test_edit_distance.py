"""The Levenshtein distance, against the table of cells that defines it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.edit_distance import edit_distance


def by_table(first: Sequence[str], second: Sequence[str]) -> int:
    row = list(range(len(second) + 1))
    for above, one in enumerate(first):
        corner, row[0] = above, above + 1
        for place, other in enumerate(second):
            corner, row[place + 1] = row[place + 1], min(row[place] + 1, row[place + 1] + 1, corner + (one != other))
    return row[-1]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("kitten", "sitting", 3),
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("intention", "execution", 5),
        ("ab", "ba", 2),  # no transpositions
        (["the", "red", "house"], ["red", "house"], 1),
        ("ɐ̃", "ɐ", 1),  # a code point each
    ],
)
def test_known_distances(first: Sequence[str], second: Sequence[str], distance: int) -> None:
    assert edit_distance(first, second) == distance


@given(st.text("abc", max_size=80), st.text("abc", max_size=80))
def test_the_distance_is_that_of_the_table(first: str, second: str) -> None:
    assert edit_distance(first, second) == by_table(first, second)
