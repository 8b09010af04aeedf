"""Sufficient statistics: what each example of a test set adds to a corpus score, as its n-gram counts do to BLEU.

A corpus score is seldom the mean of its examples' scores. From these statistics follows the score of any selection of the
examples, at once and over whole arrays: paired bootstrap and approximate randomisation need some ten thousand of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.intervals import clustered_share
from regard.evaluation.scores import Score

Floats = NDArray[np.float64]
Formula = Callable[[Floats], Floats]  # from summed counts (…, K) to scores (…)


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics(ABC):
    """What N examples add to one metric of one system. Two systems are compared over the same examples."""

    metric: str
    signature: str

    @abstractmethod
    def __len__(self) -> int:
        """The number of examples N."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The score of the whole test set."""

    @abstractmethod
    def resampled(self, times: Floats) -> Floats:
        """The scores (R,) of test sets in which each example stands `times` (R, N) times."""

    @abstractmethod
    def swapped(self, other: Self, mine: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """The scores (R,) of two mixed systems: one has my outputs where `mine` (R, N) and the other's elsewhere, the
        other the rest."""

    @property
    def correct(self) -> NDArray[np.bool_] | None:
        """Which examples (N,) are right; None where an example is not simply right or wrong."""
        return None

    @property
    def score(self) -> Score:
        """The score of the whole test set, with its signature."""
        return Score(name=self.metric, value=self.value, signature=self.signature)


@dataclass(frozen=True, kw_only=True, eq=False)
class SummedCounts(Statistics):
    """Statistics (N, K) that are summed over the examples before a formula turns them into the score."""

    counts: Floats
    formula: Formula

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def value(self) -> float:
        return float(self.formula(self.counts.sum(axis=0)))

    @property
    def example_values(self) -> Floats:
        """The score of each example alone, (N,)."""
        return self.formula(self.counts)

    def subset(self, examples: Sequence[int]) -> Self:
        """The statistics of some of the examples."""
        return replace(self, counts=self.counts[list(examples)])

    def resampled(self, times: Floats) -> Floats:
        return self.formula(times @ self.counts)

    def swapped(self, other: Self, mine: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        total = self.counts.sum(axis=0) + other.counts.sum(axis=0)
        mixed = other.counts.sum(axis=0) + mine.astype(np.float64) @ (self.counts - other.counts)
        return self.formula(mixed), self.formula(total - mixed)

    @property
    def score(self) -> Score:
        shares = self.formula is percentage
        return replace(
            super().score, interval=clustered_share(self.counts[:, 0], self.counts[:, 1]) if shares else None
        )

    @property
    def correct(self) -> NDArray[np.bool_] | None:
        alone = self.formula is percentage and bool((self.counts[:, 1] == 1).all())
        return self.counts[:, 0] > 0 if alone else None


def percentage(sums: Floats) -> Floats:
    """The share of the first count in the second, in percent; NaN of nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = 100 * sums[..., 0] / sums[..., 1]
    return share


def share_statistics(
    metric: str, n_correct: NDArray[Any], n: NDArray[Any] | None = None, *, unit: str, signature: str = ""
) -> SummedCounts:
    """The statistics of an accuracy: how much is correct (N,), of how much in each example (N,), by default of one."""
    whole = np.ones(len(n_correct)) if n is None else np.asarray(n, np.float64)
    counts = np.stack((np.asarray(n_correct, np.float64), whole), axis=1)
    signature = signature or f"{unit}:{whole.sum():.0f}"
    return SummedCounts(metric=metric, signature=signature, counts=counts, formula=percentage)
