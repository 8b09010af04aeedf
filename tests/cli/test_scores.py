from typing import Any

import pytest

from regard.cli.scores import score_cell, scores_text, telling_score


def test_every_score_has_its_digits() -> None:
    scores = {"step": 40, "loss": 0.12345, "accuracy": 91.256, "macro_f1": 90.04, "spearman": 0.81234, "mae": 0.5}
    assert scores_text(scores) == "loss 0.123, accuracy 91.3, macro F1 90.0, Spearman 0.812, MAE 0.500"


def test_an_interval_is_written_where_it_is_asked_for() -> None:
    scores = {"loss": 0.4, "accuracy": 81.25, "accuracy_low": 78.6, "accuracy_high": 83.54, "macro_f1": 80.0}
    assert scores_text(scores) == "loss 0.400, accuracy 81.2, macro F1 80.0"
    told = "loss 0.400, accuracy 81.2 (95 % interval 78.6 to 83.5), macro F1 80.0"
    assert scores_text(scores, intervals=True) == told


def test_a_score_that_is_not_there() -> None:
    assert score_cell({"loss": 1.0}, "bleu") == ""
    assert score_cell({"loss": None}, "loss") == "—"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"step": 4, "loss": 1.0, "perplexity": 2.7, "bleu": 23.14, "chrf": 40.0}, "BLEU 23.1"),
        ({"loss": 1.0, "accuracy": 91.0, "entity_f1": 40.25}, "entity F1 40.2"),
        ({"loss": 1.0, "spearman": 0.81}, "Spearman 0.810"),
        ({"loss": 1.0}, ""),
    ],
)
def test_the_score_that_says_most(scores: dict[str, Any], expected: str) -> None:
    assert telling_score(scores) == expected
