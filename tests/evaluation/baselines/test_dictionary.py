"""The dictionary: what EM finds in pairs that a count of pairs would not."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines import dictionary
from regard.evaluation.baselines.dictionary import UNKNOWN, Dictionary

# the house, the book, a book, a car: as in "the mathematics of statistical machine translation" told in lectures.
THE, HOUSE, BOOK, A, CAR = range(5)
DAS, HAUS, BUCH, EIN, AUTO = 5, 6, 7, 8, 9


def test_words_are_told_apart_by_pairs_that_share_them() -> None:
    sources = sequences([THE, HOUSE], [THE, BOOK], [A, BOOK], [A, CAR], [THE, CAR])
    targets = sequences([DAS, HAUS], [DAS, BUCH], [EIN, BUCH], [EIN, AUTO], [DAS, AUTO])
    found = Dictionary.fit(sources, targets, n_sources=7, n_targets=10)
    assert found.translate([THE, HOUSE, BOOK, A, CAR]).tolist() == [DAS, HAUS, BUCH, EIN, AUTO]
    assert found.translate([5, 6]).tolist() == [UNKNOWN, UNKNOWN]
    assert (found.n_inputs, found.n_outputs) == (7, 10)


def test_the_first_iteration_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "N_ITERATIONS", 1)
    links = dictionary._Links.of(sequences([0, 1], [0]), sequences([2, 3], [2]), none=4)
    kinds = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
    found = dict(zip(kinds, links.expectation_maximisation(5).tolist(), strict=True))
    # Of token 0: a third of 2 and of 3 in the first pair, half of 2 in the second.
    assert found[0, 2] == pytest.approx((1 / 3 + 1 / 2) / (2 / 3 + 1 / 2))
    assert found[1, 2] == found[1, 3] == pytest.approx(1 / 2)
    assert found[4, 3] == pytest.approx((1 / 3) / (2 / 3 + 1 / 2))  # from none


def test_pairs_without_tokens() -> None:
    found = Dictionary.fit(sequences([], [1]), sequences([2], []), n_sources=3, n_targets=4)
    assert found.targets.tolist() == [UNKNOWN] * 3
    assert found.translate([]).tolist() == []


def test_translations_that_are_no_tokens_are_refused() -> None:
    for wrong in (4, -2):
        with pytest.raises(ValueError, match="a number is outside its range"):
            Dictionary(np.array([wrong], np.int32), np.array([4]))
