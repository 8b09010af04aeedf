"""The constant answer: the most frequent class, or the mean, whatever is read."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Array, Baseline, Floats, require_numbers


@dataclass(frozen=True, eq=False)
class Constant(Baseline):
    """logits (K,): the same for all."""

    name: ClassVar = "constant"

    logits: Floats

    def __post_init__(self) -> None:
        require_numbers(self.logits, None)

    @property
    def n_outputs(self) -> int:
        return len(self.logits)

    def repeated(self, n: int) -> Array:
        """The logits (n, K) of n examples."""
        return np.broadcast_to(self.logits, (n, len(self.logits)))


@dataclass(frozen=True, eq=False)
class MajorityClass(Constant):
    """Each class as likely as it is frequent."""

    name: ClassVar = "majority class"

    @classmethod
    def fit(cls, counts: npt.ArrayLike) -> Self:
        """Learn from how often each class (K,) occurs."""
        smoothed = np.asarray(counts, np.float64) + 0.5
        return cls(np.log(smoothed / smoothed.sum()).astype(np.float32))


@dataclass(frozen=True, eq=False)
class MajorityTag(MajorityClass):
    """The same of tags."""

    name: ClassVar = "most frequent tag"


@dataclass(frozen=True, eq=False)
class Mean(Constant):
    """The mean of the numbers that were learned from."""

    name: ClassVar = "mean"

    @classmethod
    def fit(cls, numbers: npt.NDArray[np.floating]) -> Self:
        """Learn from numbers (N,)."""
        return cls(np.array([numbers.mean() if len(numbers) else 0.0], np.float32))
