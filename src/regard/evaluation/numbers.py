"""How good numbers are: Spearman's rank correlation, R², the mean absolute error.

Knows numbers, no model. What is not defined, as the correlation with numbers that are all the same, is no number (NaN).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.scores import Score

Numbers = Sequence[float] | NDArray[np.floating]  # (N,)


def spearman(gold: Numbers, predicted: Numbers) -> Score:
    """How well the order of the predictions is that of gold, from -1 to 1: the correlation of their ranks.

    Equal numbers share the mean of their ranks.
    """
    wanted, found = _as_arrays(gold, predicted)
    value = _correlation(ranks(wanted), ranks(found))
    return Score(name="spearman", value=value, signature=f"examples:{len(wanted)}|ties:mean rank")


def r_squared(gold: Numbers, predicted: Numbers) -> Score:
    """The share of gold's variance that the predictions explain: 1 at best, 0 for its mean, below for worse."""
    wanted, found = _as_arrays(gold, predicted)
    spread = float(np.square(wanted - wanted.mean()).sum()) if len(wanted) else 0.0
    value = 1 - float(np.square(wanted - found).sum()) / spread if spread else float("nan")
    return Score(name="r_squared", value=value, signature=f"examples:{len(wanted)}|against:mean of gold")


def mean_absolute_error(gold: Numbers, predicted: Numbers) -> Score:
    """How far the predictions are off, on average, in the unit of gold."""
    wanted, found = _as_arrays(gold, predicted)
    value = float(np.abs(wanted - found).mean()) if len(wanted) else float("nan")
    return Score(name="mae", value=value, signature=f"examples:{len(wanted)}|unit:of gold")


def ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each number, from 1 for the smallest; equal ones have the mean of theirs."""
    _, group, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group], np.float64)


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    if len(first) < 2:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return float(first @ second) / spread if spread else float("nan")


def _as_arrays(gold: Numbers, predicted: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold numbers, {len(predicted)} predicted")
    return np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
