"""Distributions of lengths."""

import pytest

from regard.data.pairs.lengths import LengthCounter, Lengths


def summary(lengths: list[int]) -> Lengths:
    counter = LengthCounter()
    for length in lengths:
        counter.add(length)
    return counter.summary()


def test_a_summary_of_known_numbers() -> None:
    assert summary(list(range(100, 0, -1))) == Lengths(mean=50.5, median=50, percentile_95=95, maximum=100)
    assert summary([3, 3, 3, 400]) == Lengths(mean=102.25, median=3, percentile_95=400, maximum=400)
    assert summary([7]) == Lengths(mean=7.0, median=7, percentile_95=7, maximum=7)


def test_nothing_has_no_lengths() -> None:
    with pytest.raises(ZeroDivisionError):
        summary([])
