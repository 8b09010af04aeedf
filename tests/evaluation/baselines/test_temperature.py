"""The temperature of logits."""

import numpy as np
import pytest

from regard.evaluation.baselines.temperature import best_temperature, is_held_out, log_softmax


def test_logits_that_are_too_sure_are_cooled() -> None:
    # Right in three cases of four, so that a difference of log 3 is as sure as it should be.
    gold = np.array([0, 0, 0, 1] * 10)
    logits = np.tile(np.array([10.0, 0.0], np.float32), (40, 1))
    assert best_temperature(logits, gold) == pytest.approx(10 / np.log(3), rel=0.2)
    assert best_temperature(logits / 100, gold) == pytest.approx(0.1)  # the lowest that is tried


def test_without_examples_nothing_changes() -> None:
    assert best_temperature(np.empty((0, 2), np.float32), np.empty(0, np.int64)) == 1.0


def test_every_tenth_is_held_out() -> None:
    assert np.flatnonzero(is_held_out(31)).tolist() == [9, 19, 29]


def test_large_logits_have_log_probabilities() -> None:
    assert log_softmax(np.array([[1e6, 1e6]])) == pytest.approx(np.log([[0.5, 0.5]]))
