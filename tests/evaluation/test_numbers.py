"""Scores of numbers, worked out by hand."""

import math

import numpy as np
import pytest

from regard.evaluation.numbers import mean_absolute_error, r_squared, ranks, spearman


def test_equal_numbers_share_the_mean_of_their_ranks():
    assert ranks(np.array([30.0, 10.0, 20.0, 20.0, 40.0])).tolist() == [4, 1, 2.5, 2.5, 5]


def test_spearman_without_ties_is_the_formula_of_squared_rank_differences():
    gold, found = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 50.0]
    score = spearman(gold, found)
    assert score.value == pytest.approx(1 - 6 * (1 + 1 + 1 + 1 + 0) / (5 * (25 - 1)))
    assert score.signature == "examples:5|ties:mean rank"
    assert score.label == "Spearman"


def test_spearman_with_ties_is_the_correlation_of_the_mean_ranks():
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3.5, 3.5: covariance 3.75, both variances 4.5 (sums of squares).
    assert spearman([1.0, 2.0, 2.0, 3.0], [10.0, 20.0, 30.0, 30.0]).value == pytest.approx(3.75 / 4.5)


def test_spearman_sees_the_order_alone():
    gold = [0.1, 0.4, 2.0, 9.0]
    assert spearman(gold, [math.exp(value) for value in gold]).value == pytest.approx(1)
    assert spearman(gold, [-value for value in gold]).value == pytest.approx(-1)


def test_spearman_is_that_of_scipy():
    statistics = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(3)
    gold, found = random.integers(0, 20, 200).astype(float), random.integers(0, 20, 200).astype(float)
    assert spearman(gold, found).value == pytest.approx(statistics.spearmanr(gold, found).statistic)


def test_r_squared_is_one_for_gold_zero_for_its_mean_and_below_for_worse():
    gold = [1.0, 2.0, 3.0, 6.0]
    assert r_squared(gold, gold).value == 1
    assert r_squared(gold, [3.0] * 4).value == 0
    assert r_squared(gold, [1.0, 2.0, 3.0, 2.0]).value == pytest.approx(1 - 16 / 14)
    assert r_squared(gold, gold).signature == "examples:4|against:mean of gold"
    assert r_squared(gold, gold).label == "R²"


def test_the_mean_absolute_error_is_in_the_unit_of_gold():
    score = mean_absolute_error([1.0, 2.0, 3.0], [2.0, 2.0, 1.0])
    assert score.value == pytest.approx(1)
    assert (score.label, score.signature) == ("MAE", "examples:3|unit:of gold")


def test_what_is_not_defined_is_no_number():
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]).value)
    assert math.isnan(spearman([1.0], [1.0]).value)
    assert math.isnan(r_squared([2.0, 2.0], [1.0, 2.0]).value)
    assert math.isnan(mean_absolute_error([], []).value)
    assert math.isnan(r_squared([], []).value)


def test_lists_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="2 gold numbers, 1 predicted"):
        spearman([1.0, 2.0], [1.0])
