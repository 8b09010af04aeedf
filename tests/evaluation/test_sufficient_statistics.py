"""What each example adds to a corpus score."""

import math

import numpy as np
import pytest

from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import percentage, share_statistics

WORDS = share_statistics("accuracy", np.array([3, 1, 0]), np.array([4, 2, 2]), unit="words")


def test_counts_are_summed_before_the_share_is_taken():
    assert WORDS.value == 50
    assert WORDS.score == Score(name="accuracy", value=50, signature="words:8")
    assert WORDS.example_values.tolist() == [75, 50, 0]
    assert len(WORDS) == 3


def test_a_selection_is_scored_by_how_often_each_example_stands_in_it():
    assert WORDS.resampled(np.array([[1.0, 1, 1], [0, 0, 3], [2, 1, 0]])).tolist() == [50, 0, 70]
    assert WORDS.subset([0, 1]).value == pytest.approx(400 / 6)


def test_swapped_systems_share_out_what_both_have():
    other = share_statistics("accuracy", np.array([4, 0, 2]), np.array([4, 2, 2]), unit="words")
    first, second = WORDS.swapped(other, np.array([[True, True, True], [True, False, False]]))
    assert first.tolist() == [50, 100 * 5 / 8]
    assert second.tolist() == [75, 100 * 5 / 8]


def test_only_what_counts_once_is_right_or_wrong():
    assert WORDS.correct is None
    assert share_statistics("accuracy", np.array([True, False]), unit="rows").correct.tolist() == [True, False]


def test_of_nothing_there_is_no_share():
    assert math.isnan(percentage(np.array([0.0, 0.0])))
