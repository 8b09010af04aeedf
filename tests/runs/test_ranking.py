"""Larger is better, whatever the score."""

import math

import pytest

from regard.runs.ranking import UNRANKED, prefers_average, rank_key


@pytest.mark.parametrize(
    ("best_by", "better", "worse"),
    [
        ("loss", {"loss": 1.0, "accuracy": 10.0}, {"loss": 2.0, "accuracy": 90.0}),
        ("accuracy", {"loss": 2.0, "accuracy": 90.0}, {"loss": 1.0, "accuracy": 10.0}),
        ("bleu", {"loss": 2.0, "bleu": 30.0}, {"loss": 1.0, "bleu": 20.0}),
        ("mae", {"loss": 2.0, "mae": 0.1}, {"loss": 1.0, "mae": 0.2}),
        ("entity_f1", {"loss": 2.0, "accuracy": 97.0}, {"loss": 1.0, "accuracy": 96.0}),  # no tag names an entity
        ("spearman", {"loss": 2.0, "spearman": -0.9}, {"loss": 0.1}),  # all answers were equal
        ("loss", {"loss": 100.0}, {}),
        ("accuracy", {"loss": 1.0, "accuracy": 42.0}, {"loss": 2.0, "accuracy": 42.0}),  # few examples often tie
    ],
)
def test_which_validation_is_better(best_by: str, better: dict[str, float], worse: dict[str, float]) -> None:
    assert rank_key(better, best_by) > rank_key(worse, best_by)


def test_nothing_is_known_of_no_validation() -> None:
    assert rank_key({}, "bleu") == rank_key({"step": 3}, "loss") == UNRANKED
    assert rank_key({"loss": math.nan, "bleu": 3.0}, "bleu") == rank_key({"loss": math.inf}, "loss") == UNRANKED


def test_a_run_means_its_average_unless_the_best_is_better() -> None:
    one, other = {"loss": 1.0, "accuracy": 80.0}, {"loss": 2.0, "accuracy": 90.0}
    assert prefers_average(one, other, "loss")
    assert not prefers_average(one, other, "accuracy")
    assert prefers_average(one, one, "accuracy")
    assert prefers_average({}, one, "loss")  # nobody scored it
    assert prefers_average(one, {}, "loss")
