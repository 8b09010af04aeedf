"""Which class was taken for which."""

import json

import numpy as np
import pytest

from regard.evaluation.confusion_matrix import ConfusionMatrix, confusion_counts, confusion_matrix

GOLD = [0, 0, 0, 1, 1, 2]
PREDICTED = [0, 0, 1, 1, 2, 2]


@pytest.fixture
def matrix() -> ConfusionMatrix:
    return confusion_matrix(GOLD, PREDICTED, ["ant", "bee", "cat", "dog"])


def test_there_is_a_row_for_each_gold_class(matrix: ConfusionMatrix) -> None:
    counts = confusion_counts(GOLD, PREDICTED, 4)
    assert counts.dtype == np.int64
    assert counts.tolist() == [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert matrix.counts == tuple(map(tuple, counts.tolist()))


def test_shares_are_of_the_row(matrix: ConfusionMatrix) -> None:
    shares = matrix.shares()
    np.testing.assert_allclose(shares[:2], [[2 / 3, 1 / 3, 0, 0], [0, 0.5, 0.5, 0]])
    assert np.isnan(shares[3]).all()  # no dog was there to be found


def test_the_commonest_mistakes_come_first() -> None:
    matrix = ConfusionMatrix(labels=("a", "b"), counts=((9, 1), (3, 5)))
    assert matrix.most_confused() == [
        {"expected": "b", "predicted": "a", "count": 3},
        {"expected": "a", "predicted": "b", "count": 1},
    ]
    assert len(matrix.most_confused(1)) == 1


def test_it_is_shown_as_a_table(matrix: ConfusionMatrix) -> None:
    assert matrix.lines()[:3] == [
        "expected \\ predicted  ant  bee  cat  dog",
        "ant                     2    1    0    0",
        "bee                     0    1    1    0",
    ]
    assert "<table>" in matrix._repr_html_()


def test_it_is_data(matrix: ConfusionMatrix) -> None:
    assert json.loads(json.dumps(matrix.to_json())) == {
        "labels": ["ant", "bee", "cat", "dog"],
        "confusion": [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
    }
    assert len(matrix.records()) == 16
    assert matrix.records()[1] == {"expected": "ant", "predicted": "bee", "count": 1}


def test_lists_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="6 gold labels, 5 predicted"):
        confusion_counts(GOLD, PREDICTED[:5], 3)
