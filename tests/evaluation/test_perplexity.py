"""Loss, perplexity and bits per byte."""

import math

import numpy as np
import pytest

from regard.evaluation.perplexity import cross_entropy_statistics, perplexity, text_scores


def test_perplexity_is_the_exponential_of_the_loss():
    assert perplexity(math.log(37)).value == pytest.approx(37)
    assert perplexity(1000.0).value == math.inf


def test_text_is_scored_by_its_tokens_and_by_its_bytes():
    loss, per_token, bits = text_scores(2 * 30 * math.log(2), n_tokens=30, n_bytes=120)
    assert loss.value == pytest.approx(2 * math.log(2))
    assert per_token.value == pytest.approx(4)
    assert bits.value == pytest.approx(0.5)
    assert [score.signature for score in (loss, per_token, bits)] == [
        *("unit:nats per token", "unit:token", "tokens:30|bytes:120")
    ]
    assert [score.name for score in text_scores(30.0, n_tokens=30, n_bytes=None)] == ["loss", "perplexity"]
    assert text_scores(30_000.0, n_tokens=30, n_bytes=None)[1].value == math.inf


def test_a_stretch_adds_its_cost_its_tokens_and_its_bytes():
    nats, n_tokens, n_bytes = np.array([10.0, 30.0]), np.array([5.0, 5.0]), np.array([20.0, 60.0])
    loss, per_token, bits = cross_entropy_statistics(nats, n_tokens, n_bytes)
    assert loss.example_values.tolist() == [2, 6]
    assert (loss.value, per_token.value) == (4, pytest.approx(math.exp(4)))
    assert bits.value == pytest.approx(40 / 80 / math.log(2))
