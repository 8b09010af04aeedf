"""Scores of classes, by numbers worked out by hand."""

import math

import numpy as np
import pytest

from regard.evaluation.classification import (
    accuracy,
    class_statistics,
    classification_report,
    macro_f1,
    share_correct,
    top_accuracy,
    top_statistics,
)

GOLD = [0, 0, 0, 1, 1, 2]
PREDICTED = [0, 0, 1, 1, 2, 2]


def test_accuracy_is_the_share_of_right_labels_in_percent():
    score = accuracy(GOLD, PREDICTED)
    assert (score.name, score.label) == ("accuracy", "accuracy")
    assert score.value == pytest.approx(100 * 4 / 6)
    assert score.signature == "examples:6"
    assert accuracy(np.array(GOLD), np.array(GOLD), unit="words").signature == "words:6"
    assert accuracy(GOLD, GOLD).value == 100


def test_what_was_counted_on_the_way_has_an_accuracy_too():
    score = share_correct(3, 12, unit="tokens", name="masked_accuracy")
    assert (score.label, score.value, score.signature) == ("masked accuracy", 25, "tokens:12")
    assert math.isnan(share_correct(0, 0, unit="tokens").value)


def test_macro_f1_is_the_mean_over_classes():
    # Class 0: precision 2/2, recall 2/3; class 1: 1/2, 1/2; class 2: 1/2, 1/1.
    score = macro_f1(GOLD, PREDICTED, 3)
    assert score.value == pytest.approx(100 * (0.8 + 0.5 + 2 / 3) / 3)
    assert score.signature == "examples:6|averaging:macro|classes:3 of 3"


def test_a_class_that_nobody_met_does_not_count_and_one_that_was_only_predicted_does():
    score = macro_f1([0, 0, 1], [0, 0, 3], 5)
    assert score.value == pytest.approx(100 * (1 + 0 + 0) / 3)  # classes 0, 1 and 3; 2 and 4 occur nowhere
    assert score.signature == "examples:3|averaging:macro|classes:3 of 5"
    assert math.isnan(macro_f1([], [], 2).value)


def test_lists_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="6 gold labels, 5 predicted"):
        accuracy(GOLD, PREDICTED[:5])


def test_top_accuracy_counts_the_likeliest_classes():
    outputs = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4], [0.2, 0.1, 0.7]])
    assert top_accuracy([2, 0, 1], outputs, 2).value == pytest.approx(100 * 2 / 3)  # of equal ones the first counts
    assert top_accuracy([2, 1, 1], outputs, 2).value == pytest.approx(100 / 3)
    assert top_statistics([2, 0, 1], outputs, 2).correct.tolist() == [True, True, False]


def test_the_report_has_every_class():
    report = classification_report(GOLD, PREDICTED, ["a", "b", "c"])
    a, b, c = report.classes
    assert (a.precision, a.recall, a.f1, a.support) == (100, pytest.approx(200 / 3), pytest.approx(80), 3)
    assert (b.precision, b.recall, b.f1, b.support) == (50, 50, 50, 2)
    assert (c.precision, c.recall, c.f1, c.support) == (50, 100, pytest.approx(200 / 3), 1)


def test_its_averages_are_the_scores():
    micro, macro, weighted = classification_report(GOLD, PREDICTED, ["a", "b", "c"]).averages
    assert micro.f1 == micro.precision == micro.recall == accuracy(GOLD, PREDICTED).value
    assert macro.f1 == pytest.approx(macro_f1(GOLD, PREDICTED, 3).value)
    assert weighted.recall == pytest.approx(micro.recall)


def test_statistics_give_the_scores_of_the_whole():
    found = class_statistics(GOLD, PREDICTED, 4)
    assert [one.score for one in found] == [accuracy(GOLD, PREDICTED), macro_f1(GOLD, PREDICTED, 4)]
    assert found[0].correct.tolist() == [True, True, False, True, False, True]
    assert found[1].correct is None


def test_macro_f1_of_a_selection_is_that_of_its_examples():
    _, statistics = class_statistics(GOLD, PREDICTED, 4)
    times = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 2, 1, 0, 3], [6, 0, 0, 0, 0, 0]], dtype=float)
    expected = []
    for row in times.astype(int):
        chosen = np.repeat(np.arange(6), row)
        expected.append(macro_f1(np.array(GOLD)[chosen], np.array(PREDICTED)[chosen], 4).value)
    assert statistics.resampled(times).tolist() == pytest.approx(expected)


def test_macro_f1_of_swapped_outputs_is_that_of_the_mixed_systems():
    other = [0, 1, 0, 2, 1, 2]
    (_, mine), (_, theirs) = class_statistics(GOLD, PREDICTED, 4), class_statistics(GOLD, other, 4)
    coins = np.array([[True, False, True, False, False, True], [False] * 6])
    first, second = mine.swapped(theirs, coins)
    assert first.tolist() == pytest.approx([macro_f1(GOLD, np.where(row, PREDICTED, other), 4).value for row in coins])
    assert second.tolist() == pytest.approx([macro_f1(GOLD, np.where(row, other, PREDICTED), 4).value for row in coins])
