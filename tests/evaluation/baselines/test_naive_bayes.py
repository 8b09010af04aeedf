"""Naive Bayes: the formula by hand, and what it does with what it has not seen."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines import naive_bayes
from regard.evaluation.baselines.naive_bayes import NaiveBayes
from regard.evaluation.baselines.ngrams import bags_of_ngrams


def test_the_formula_by_hand() -> None:
    bags = bags_of_ngrams(sequences([1, 2], [1], [3]), order=1)
    model = NaiveBayes.fit(bags, np.array([0, 0, 1]), 2)
    assert model.temperature.tolist() == [1.0]  # too few to hold any out
    # Of class 0, tokens 1, 2 and 3 occur in 2, 1 and 0 texts; of class 1, in 0, 0 and 1. Half a text is added to each.
    first, second = np.array([2.5, 1.5, 0.5]) / 4.5, np.array([0.5, 0.5, 1.5]) / 2.5
    prior = np.log(np.array([2.5, 1.5]) / 4)
    expected = prior + np.log([first[0] * first[1], second[0] * second[1]])
    [logits] = model.logits(bags_of_ngrams(sequences([1, 2, 1]), order=1))  # how often does not matter
    assert logits == pytest.approx(expected, abs=1e-5)


def test_what_was_never_seen_leaves_the_prior() -> None:
    bags = bags_of_ngrams(sequences([1], [1], [2]), order=1)
    model = NaiveBayes.fit(bags, np.array([0, 0, 1]), 2)
    [unknown, empty] = model.logits(bags_of_ngrams(sequences([9], []), order=1))
    assert unknown.tolist() == empty.tolist() == model.log_priors.tolist()


def test_a_temperature_is_found_on_examples_that_were_held_out() -> None:
    # The same ten tokens say the same ten times: sure of what is right in nine cases of ten.
    rows, classes = [], []
    for number in range(400):
        truth = number % 2
        rows.append([10 * truth + place for place in range(10)] if number % 20 < 18 else [10 * (1 - truth) + 1] * 10)
        classes.append(truth)
    model = NaiveBayes.fit(bags_of_ngrams(sequences(*rows), order=1), np.array(classes), 2)
    assert model.temperature[0] > 1


def test_only_so_many_ngrams_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive_bayes, "MOST_ENTRIES", 6)
    model = NaiveBayes.fit(bags_of_ngrams(sequences([1, 2, 3, 4], [1, 2, 3, 5]), order=1), np.array([0, 1]), 2)
    assert model.log_likelihoods.shape == (2, 3)


def test_a_temperature_that_is_none_is_refused() -> None:
    model = NaiveBayes.fit(bags_of_ngrams(sequences([1], [2]), order=1), np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="a temperature is above 0"):
        NaiveBayes.of_arrays({**model.arrays, "temperature": np.zeros(1, np.float32)}, n_inputs=0, n_outputs=2)
