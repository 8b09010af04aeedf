"""Metrics of regression and similarity: Spearman's and Pearson's correlation, R², mean absolute and root mean squared error.

Knows numbers, no model. What is not defined, as the correlation with numbers that are all the same, is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.evaluation import intervals
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Formula, Statistics, SummedCounts

Numbers = Sequence[float] | NDArray[np.floating]  # (N,)
Integers = NDArray[np.int64]

_ROUNDING = 1e-12  # below it a variance of standardised numbers is nothing


def spearman(gold: Numbers, predicted: Numbers) -> Score:
    """How well the order of the predictions is that of gold, from -1 to 1: the correlation of their ranks.

    Equal numbers share the mean of their ranks.
    """
    wanted, found = _as_arrays(gold, predicted)
    value = _correlation(ranks(wanted), ranks(found))
    interval = intervals.correlation(value, len(wanted), of_ranks=True)
    return Score(name="spearman", value=value, signature=f"examples:{len(wanted)}|ties:mean rank", interval=interval)


def pearson(gold: Numbers, predicted: Numbers) -> Score:
    """How well the predictions follow gold along a straight line, from -1 to 1."""
    wanted, found = _as_arrays(gold, predicted)
    value = _correlation(wanted, found)
    interval = intervals.correlation(value, len(wanted), of_ranks=False)
    return Score(name="pearson", value=value, signature=f"examples:{len(wanted)}", interval=interval)


def r_squared(gold: Numbers, predicted: Numbers) -> Score:
    """The share of gold's variance that the predictions explain: 1 at best, 0 for its mean, below for worse."""
    wanted, found = _as_arrays(gold, predicted)
    spread = float(np.square(wanted - wanted.mean()).sum()) if len(wanted) else 0.0
    value = 1 - float(np.square(wanted - found).sum()) / spread if spread else float("nan")
    return Score(name="r_squared", value=value, signature=f"examples:{len(wanted)}|against:mean of gold")


def mean_absolute_error(gold: Numbers, predicted: Numbers) -> Score:
    """How far the predictions are off, on average, in the unit of gold."""
    wanted, found = _as_arrays(gold, predicted)
    errors = np.abs(wanted - found)
    value = float(errors.mean()) if len(wanted) else float("nan")
    signature = f"examples:{len(wanted)}|unit:of gold"
    return Score(name="mae", value=value, signature=signature, interval=intervals.mean(errors))


def root_mean_squared_error(gold: Numbers, predicted: Numbers) -> Score:
    """How far the predictions are off, large errors counting more, in the unit of gold."""
    wanted, found = _as_arrays(gold, predicted)
    value = float(np.sqrt(np.square(wanted - found).mean())) if len(wanted) else float("nan")
    return Score(name="rmse", value=value, signature=f"examples:{len(wanted)}|unit:of gold")


def ranks(numbers: Floats) -> Floats:
    """The rank of each number, from 1 for the smallest; equal ones have the mean of theirs."""
    _, group, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group], np.float64)


def regression_statistics(gold: Numbers, predicted: Numbers) -> list[Statistics]:
    """What each example adds to Spearman, Pearson, R², MAE and RMSE."""
    wanted, found = _as_arrays(gold, predicted)
    once, error = np.ones(len(wanted)), wanted - found
    # A correlation does not see the scale of predictions: they are given one, so that two systems' can be swapped.
    x, y = _standardised(wanted), _standardised(found)
    moments = (once, x, y, x * x, y * y, x * y)
    return [
        _Ranks.of(spearman(wanted, found), ranks(wanted), ranks(found)),
        _summed(pearson(wanted, found), moments, _pearson),
        _summed(r_squared(wanted, found), (once, x, x * x, np.square(error / _deviation(wanted))), _r_squared),
        _summed(mean_absolute_error(wanted, found), (once, np.abs(error)), _mean),
        _summed(root_mean_squared_error(wanted, found), (once, np.square(error)), _root_mean),
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ranks(Statistics):
    """The ranks of gold and predicted numbers (N,), doubled, which makes whole numbers of the means that equal ones have.

    Spearman is no function of sums: in each selection the examples have other ranks.
    """

    whole: float  # the score of all examples
    gold: Integers
    predicted: Integers

    @classmethod
    def of(cls, score: Score, gold: Floats, predicted: Floats) -> Self:
        doubled = ((2 * own).astype(np.int64) for own in (gold, predicted))
        return cls(
            metric=score.name, signature=score.signature, whole=score.value, gold=next(doubled), predicted=next(doubled)
        )

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def value(self) -> float:
        return self.whole

    def resampled(self, times: Floats) -> Floats:
        gold, predicted = (
            selected_ranks(np.broadcast_to(own, times.shape), times) for own in (self.gold, self.predicted)
        )
        return _rank_correlation(gold, predicted, times)

    def swapped(self, other: Self, mine: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        once = np.broadcast_to(1.0, mine.shape)
        first, second = (
            _rank_correlation(self.gold / 2, selected_ranks(np.where(mine, one, another), once), once)
            for one, another in ((self.predicted, other.predicted), (other.predicted, self.predicted))
        )
        return first, second


def selected_ranks(order: Integers, times: Floats) -> Floats:
    """The ranks (R, N) of whole numbers (R, N) that stand so many times (R, N) each, as `ranks` has them."""
    n_rows, n_values = len(order), int(order.max(initial=0)) + 1
    places = order + n_values * np.arange(n_rows)[:, None]
    counts = np.bincount(places.ravel(), times.ravel(), minlength=n_rows * n_values).reshape(n_rows, n_values)
    found: Floats = np.take_along_axis(np.cumsum(counts, axis=1) - (counts - 1) / 2, order, axis=1)
    return found


def _rank_correlation(gold: Floats, predicted: Floats, times: Floats) -> Floats:
    middle = (times.shape[1] + 1) / 2  # the mean of all ranks
    x, y = gold - middle, predicted - middle
    spread = np.sqrt((times * x * x).sum(axis=1) * (times * y * y).sum(axis=1))
    return _ratio((times * x * y).sum(axis=1), spread)


def _summed(score: Score, columns: Sequence[Floats], formula: Formula) -> SummedCounts:
    return SummedCounts(metric=score.name, signature=score.signature, counts=np.stack(columns, axis=1), formula=formula)


def _pearson(sums: Floats) -> Floats:
    _, x, y, xx, yy, xy = np.moveaxis(sums / sums[..., :1], -1, 0)
    return _ratio(xy - x * y, np.sqrt(np.maximum(xx - x * x, 0) * np.maximum(yy - y * y, 0)))


def _r_squared(sums: Floats) -> Floats:
    _, x, xx, squared_error = np.moveaxis(sums / sums[..., :1], -1, 0)
    return 1 - _ratio(squared_error, xx - x * x)


def _mean(sums: Floats) -> Floats:
    mean: Floats = sums[..., 1] / sums[..., 0]
    return mean


def _root_mean(sums: Floats) -> Floats:
    root: Floats = np.sqrt(_mean(sums))
    return root


def _ratio(part: Floats, whole: Floats) -> Floats:
    """A quotient; NaN where the divisor is nothing but rounding."""
    defined = whole > _ROUNDING
    return np.where(defined, part / np.where(defined, whole, 1), np.nan)


def _standardised(numbers: Floats) -> Floats:
    """Numbers of mean 0 and deviation 1; all 0 where they are all the same."""
    centred = numbers - numbers.mean() if len(numbers) else numbers
    standardised: Floats = centred / _deviation(numbers)
    return standardised


def _deviation(numbers: Floats) -> float:
    """The standard deviation; 1 where there is none to divide by."""
    return float(numbers.std() if len(numbers) else 1) or 1.0


def _correlation(first: Floats, second: Floats) -> float:
    if len(first) < 2:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return float(first @ second) / spread if spread else float("nan")


def _as_arrays(gold: Numbers, predicted: Numbers) -> tuple[Floats, Floats]:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold numbers, {len(predicted)} predicted")
    return np.asarray(gold, np.float64), np.asarray(predicted, np.float64)
