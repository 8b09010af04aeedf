"""A score as people and programs read it."""

import math

import pytest

from regard.evaluation.scores import Score, score_table, scores_to_json


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("bleu", 23.456, "BLEU 23.46"),
        ("accuracy", 91.256, "accuracy 91.26 %"),
        ("loss", 0.123456, "loss 0.1235"),
        ("spearman", math.nan, "Spearman —"),
        ("my_own", 2.0, "my_own 2.00"),
    ],
)
def test_a_score_is_written_as_its_metric_has_it(name, value, written):
    assert str(Score(name=name, value=value, signature="")) == written


def test_scores_have_a_table_and_a_json():
    scores = [
        Score(name="bleu", value=23.456, signature="tok:13a"),
        Score(name="loss", value=1.0, signature="unit:word"),
    ]
    assert score_table(scores).lines() == [
        "score   value  signature",
        "BLEU    23.46  tok:13a",
        "loss   1.0000  unit:word",
    ]
    assert scores_to_json(scores)["bleu"] == {"value": 23.456, "signature": "tok:13a"}


def test_others_stand_beside_scores():
    scores = [Score(name="accuracy", value=80.0, signature="n:4"), Score(name="loss", value=1.0, signature="u")]
    assert score_table(scores, beside={"naive Bayes": {"accuracy": 78.4}}).lines() == [
        "score      value  naive Bayes  signature",
        "accuracy   80.00        78.40  n:4",
        "loss      1.0000               u",
    ]
