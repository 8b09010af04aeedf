"""A hidden token by its neighbours."""

import numpy as np

from regard.evaluation.baselines.neighbours import Neighbours, neighbours


def test_the_tokens_behind_and_before() -> None:
    ids = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert neighbours(ids, np.array([0, 1]), np.array([1, 2])).tolist() == [[3, 1], [8, 6]]


def test_both_neighbours_tell_more_than_one() -> None:
    # Between 1 and 2 stands 5, between 1 and 3 stands 6: the left one alone cannot tell.
    stream = np.array([0, *[1, 5, 2, 1, 6, 3] * 40, 0])
    places = np.arange(1, len(stream) - 1)
    before = neighbours(stream[None], np.zeros_like(places), places)
    model = Neighbours.fit(stream[places], before, 9)
    assert model.guesses(np.array([[2, 1], [3, 1]])).tolist() == [5, 6]
    # A right one that was never seen leaves the left one.
    assert model.guesses(np.array([[8, 1]])).tolist()[0] in (5, 6)
