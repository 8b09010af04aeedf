"""Cosine of tf-idf."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines.ngrams import bags_of_ngrams
from regard.evaluation.baselines.tfidf import TfIdf


def test_rare_words_count_more_than_frequent_ones() -> None:
    # Token 1 stands in every text. Texts that share only that are not alike.
    first = bags_of_ngrams(sequences([1, 2], [1, 3], [1, 4], [1, 5]), order=1)
    second = bags_of_ngrams(sequences([1, 2], [1, 9], [1, 4], [1, 8]), order=1)
    model = TfIdf.fit(first, second, np.array([1.0, 0.0, 1.0, 0.0]))
    cosines = model.cosines(first, second)
    assert cosines[[0, 2]] == pytest.approx([1, 1])
    assert (cosines[[1, 3]] < 0.1).all()
    assert model.predict(first, second) == pytest.approx([1, 0, 1, 0], abs=0.05)


def test_the_cosine_by_hand() -> None:
    first, second = bags_of_ngrams(sequences([1, 2]), order=1), bags_of_ngrams(sequences([2, 3, 3]), order=1)
    model = TfIdf.fit(first, second, np.array([0.5]))
    one, two = np.log(3 / 2), np.log(3 / 3)  # in one of two texts, or in both
    assert two == 0
    assert model.cosines(first, second) == pytest.approx([0])
    other = TfIdf(model.known, np.ones(4, np.float32), model.line)
    assert other.cosines(first, second) == pytest.approx([1 / np.sqrt(2 * (1 + (1 + np.log(2)) ** 2))])
    assert one > 0


def test_empty_texts_and_equal_cosines() -> None:
    nothing = bags_of_ngrams(sequences([], []), order=1)
    model = TfIdf.fit(nothing, nothing, np.array([2.0, 4.0]))
    assert model.predict(nothing, nothing).tolist() == [3.0, 3.0]
