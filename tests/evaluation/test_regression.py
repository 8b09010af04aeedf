"""Scores of numbers, worked out by hand."""

import math

import numpy as np
import pytest

from regard.evaluation.regression import (
    mean_absolute_error,
    pearson,
    r_squared,
    ranks,
    regression_statistics,
    root_mean_squared_error,
    spearman,
)

SCORES = (spearman, pearson, r_squared, mean_absolute_error, root_mean_squared_error)


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


def test_pearson_sees_a_straight_line():
    gold = [1.0, 2.0, 3.0, 4.0]
    assert pearson(gold, [5.0, 7.0, 9.0, 11.0]).value == pytest.approx(1)
    assert pearson(gold, [1.0, 3.0, 2.0, 4.0]).value == pytest.approx(0.8)
    assert (pearson(gold, gold).label, pearson(gold, gold).signature) == ("Pearson", "examples:4")


def test_the_root_of_the_mean_squared_error_minds_large_errors():
    score = root_mean_squared_error([1.0, 2.0], [1.0, 5.0])
    assert score.value == pytest.approx(math.sqrt(4.5))
    assert (score.label, score.signature) == ("RMSE", "examples:2|unit:of gold")


def test_what_is_not_defined_is_no_number():
    assert math.isnan(pearson([1.0, 1.0], [1.0, 2.0]).value)
    assert math.isnan(root_mean_squared_error([], []).value)
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]).value)
    assert math.isnan(spearman([1.0], [1.0]).value)
    assert math.isnan(r_squared([2.0, 2.0], [1.0, 2.0]).value)
    assert math.isnan(mean_absolute_error([], []).value)
    assert math.isnan(r_squared([], []).value)


def test_lists_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="2 gold numbers, 1 predicted"):
        spearman([1.0, 2.0], [1.0])


# -- statistics ---------------------------------------------------------------------------------------------------------


def numbers(seed, n=30):
    """Gold, and the predictions of two systems on scales of their own; with ties."""
    random = np.random.default_rng(seed)
    gold = random.integers(0, 6, n).astype(float)
    return gold, np.round(gold + random.normal(size=n), 1), np.round(100 + 7 * (gold + random.normal(size=n)))


def test_statistics_give_the_scores_of_the_whole():
    gold, found, _ = numbers(0)
    for statistics, score in zip(regression_statistics(gold, found), SCORES, strict=True):
        expected = score(gold, found)
        assert (statistics.metric, statistics.signature) == (expected.name, expected.signature)
        assert statistics.value == pytest.approx(expected.value)
        assert statistics.resampled(np.ones((1, len(gold))))[0] == pytest.approx(expected.value)


def test_a_selection_has_the_scores_of_its_examples():
    gold, found, _ = numbers(1)
    times = np.random.default_rng(2).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=20)
    for statistics, score in zip(regression_statistics(gold, found), SCORES, strict=True):
        chosen = [np.repeat(np.arange(len(gold)), row) for row in times]
        expected = [score(gold[rows], found[rows]).value for rows in chosen]
        assert statistics.resampled(times.astype(float)).tolist() == pytest.approx(expected)


def test_a_selection_of_one_example_has_no_correlation():
    gold, found, _ = numbers(1, n=5)
    correlation, linear, explained, *_ = regression_statistics(gold, found)
    once = np.array([[5.0, 0, 0, 0, 0]])
    assert all(math.isnan(one.resampled(once)[0]) for one in (correlation, linear, explained))


def test_systems_swap_ranks_where_scales_do_not_count():
    gold, one, other = numbers(3)
    coins = np.random.default_rng(4).integers(2, size=(10, len(gold))).astype(bool)
    mine, theirs = regression_statistics(gold, one), regression_statistics(gold, other)
    first, second = mine[0].swapped(theirs[0], coins)
    mixed = [np.where(row, ranks(one), ranks(other)) for row in coins]
    rest = [np.where(row, ranks(other), ranks(one)) for row in coins]
    assert first.tolist() == pytest.approx([spearman(gold, row).value for row in mixed])
    assert second.tolist() == pytest.approx([spearman(gold, row).value for row in rest])
    scaled, _ = regression_statistics(gold, 3 * one - 8)[1].swapped(theirs[1], coins)
    assert scaled.tolist() == pytest.approx(mine[1].swapped(theirs[1], coins)[0].tolist())


def test_systems_swap_numbers_where_scales_count():
    gold, one, other = numbers(5)
    coins = np.random.default_rng(6).integers(2, size=(10, len(gold))).astype(bool)
    for place in (2, 3, 4):
        found = regression_statistics(gold, one)[place].swapped(regression_statistics(gold, other)[place], coins)[0]
        expected = [SCORES[place](gold, np.where(row, one, other)).value for row in coins]
        assert found.tolist() == pytest.approx(expected)
