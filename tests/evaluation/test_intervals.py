"""Confidence intervals by formulas: published values, coverage where examples come in clusters, records of validations."""

import numpy as np
import pytest

from regard.evaluation import intervals
from regard.evaluation.classification import accuracy, top_accuracy
from regard.evaluation.generated_text import text_statistics
from regard.evaluation.intervals import clustered_share, correlation, from_record, is_interval_end, to_record, wilson
from regard.evaluation.regression import mean_absolute_error, pearson, spearman


@pytest.mark.parametrize(
    ("n_correct", "n", "expected"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3.
        (81, 263, (25.53, 36.62)),
        (15, 148, (6.24, 16.05)),
        (0, 20, (0.0, 16.11)),
        (1, 29, (0.61, 17.18)),
        (20, 20, (83.89, 100.0)),
    ],
)
def test_wilson(n_correct: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(n_correct, n) == pytest.approx(expected, abs=0.006)


def test_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None
    assert clustered_share(np.array([3.0]), np.array([4.0])) is None
    assert correlation(0.5, 3, of_ranks=False) is None
    assert correlation(float("nan"), 30, of_ranks=False) is None
    assert correlation(1.0, 30, of_ranks=True) is None
    assert intervals.mean(np.array([1.0])) is None


def test_words_of_a_sentence_count_less_than_words_drawn_one_by_one() -> None:
    random = np.random.default_rng(1)
    n_covered, n_covered_by_words, n_samples = 0, 0, 500
    for _ in range(n_samples):
        sizes = random.integers(5, 30, 300)
        correct = random.binomial(
            sizes, random.beta(18, 2, 300)
        )  # sentences are easy or hard; 90 % of all words are right
        low, high = clustered_share(correct, sizes) or (0, 0)
        n_covered += low <= 90 <= high
        low, high = wilson(correct.sum(), sizes.sum()) or (0, 0)
        n_covered_by_words += low <= 90 <= high
    assert 0.92 < n_covered / n_samples < 0.98
    assert n_covered_by_words / n_samples < 0.9


def test_clusters_of_one_are_examples() -> None:
    correct = np.array([1.0, 0.0, 1.0, 1.0])
    assert clustered_share(correct, np.ones(4)) == wilson(3, 4)
    assert clustered_share(np.array([4.0, 4.0]), np.array([4.0, 4.0])) == wilson(2, 2)  # two sentences, all words right


def test_a_rate_above_100_percent_has_no_interval() -> None:
    assert clustered_share(np.array([5.0, 1.0]), np.array([2.0, 4.0])) is None


def test_correlations() -> None:
    # Fisher (1921): r = 0.6, n = 28: 0.6931 ± 0.3920 in the transformed scale.
    assert correlation(0.6, 28, of_ranks=False) == pytest.approx((0.2923, 0.7952), abs=1e-3)
    low, high = correlation(0.6, 28, of_ranks=True) or (0, 0)
    assert low < 0.2923 and high > 0.7952


def test_scores_bring_their_intervals() -> None:
    gold = np.array([0, 1, 1, 0, 2, 2, 1, 1])
    found = np.array([0, 1, 1, 1, 2, 2, 1, 1])
    assert accuracy(gold, found).interval == wilson(7, 8)
    outputs = np.eye(3)[found]
    assert top_accuracy(gold, outputs, 1).interval == wilson(7, 8)
    [exact] = text_statistics(["a", "b"], ["a", "c"], metrics=("exact_match",))
    assert exact.score.interval == wilson(1, 2)
    [bleu] = text_statistics(["a", "b"], ["a", "c"], metrics=("bleu",))
    assert bleu.score.interval is None
    values = np.arange(10.0)
    noisy = values + np.array([0, 2, 0, -2, 0, 1, 0, 0, -1, 0])
    for score, of_ranks in ((spearman(values, noisy), True), (pearson(values, noisy), False)):
        assert score.interval == correlation(score.value, 10, of_ranks=of_ranks)
    error = mean_absolute_error(values, noisy)
    assert error.interval is not None and error.interval[0] < error.value < error.interval[1]


def test_intervals_stand_in_a_record_beside_their_scores() -> None:
    record = {"step": 4.0, "accuracy": 80.0, **to_record({"accuracy": (70.0, 90.0)})}
    assert record == {"step": 4.0, "accuracy": 80.0, "accuracy_low": 70.0, "accuracy_high": 90.0}
    assert from_record(record, "accuracy") == (70.0, 90.0)
    assert from_record(record, "step") is None
    assert [name for name in record if not is_interval_end(name)] == ["step", "accuracy"]
