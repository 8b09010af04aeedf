"""What is held out: an exact number of pairs, whatever their order."""

import random

import pytest

from regard.data.pipeline.validation_split import ValidationSplit
from regard.errors import DataError


def held_out(sources: list[str], wanted: int = 0) -> list[str]:
    choice = ValidationSplit(wanted)
    for source in sources:
        choice.add(source)
    held_out = choice.held_out()
    return [source for source in sources if held_out.holds(source)]


@pytest.mark.parametrize(
    ("wanted", "n_pairs", "expected"),
    [
        (0, 2, 1),
        (0, 5, 1),
        (0, 50, 5),
        (0, 5_000, 500),
        (0, 9_545, 954),
        (0, 20_000, 1000),
        (0, 150_000, 1500),
        (0, 210_000, 2000),
        (7, 1000, 7),
        (3000, 4000, 3000),
    ],
)
def test_how_many_are_held_out(wanted: int, n_pairs: int, expected: int) -> None:
    assert len(held_out([f"sentence {n}" for n in range(n_pairs)], wanted)) == expected


def test_the_choice_does_not_depend_on_the_order() -> None:
    sources = [f"sentence {n}" for n in range(500)]
    shuffled = random.Random(1).sample(sources, 500)
    assert sorted(held_out(sources)) == sorted(held_out(shuffled))


def test_more_than_there_is() -> None:
    with pytest.raises(DataError) as caught:
        held_out(["a", "b"], 2)
    assert caught.value.problem == "data.valid_size asks for 2 pairs, and there are 2."
    assert caught.value.remedy == "Hold out fewer, or give validation files with --valid."


def test_one_alone() -> None:
    with pytest.raises(DataError) as caught:
        held_out(["a dog"])
    assert caught.value.problem == "Of fewer than two pairs none can be held out for validation."
    assert caught.value.remedy == "Give more, or give validation files with --valid."


def test_one_source_in_all_pairs() -> None:
    with pytest.raises(DataError) as caught:
        held_out(["a dog"] * 50)
    assert caught.value.problem.startswith("Nearly all pairs have one and the same source")


def test_fewer_may_be_enough() -> None:
    split, asked = ValidationSplit(0), ValidationSplit(7)
    for number in range(3_000):
        split.add(f"document {number}")
        asked.add(f"document {number}")
    found, as_asked = split.held_out(enough=120), asked.held_out(enough=5)
    assert sum(found.holds(f"document {number}") for number in range(3_000)) == 120
    assert sum(as_asked.holds(f"document {number}") for number in range(3_000)) == 7
