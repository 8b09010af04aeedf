"""Ridge regression: a number as a weighted sum of what a sequence holds, the squares of the weights kept small.

Solved by conjugate gradients on sparse rows, so that there may be very many features. How much the squares cost is chosen
on every tenth example.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, Floats, require_numbers, sum_by
from regard.evaluation.baselines.ngrams import Bags, Hashes, find, most_frequent, require_hashes
from regard.evaluation.baselines.temperature import is_held_out

MOST_FEATURES = 200_000
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
N_ITERATIONS = 20

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ridge(Baseline):
    """known: hashes (M,) of what is counted; weights (M,) and intercept (1,)."""

    name: ClassVar = "ridge regression"

    known: Hashes
    weights: Floats
    intercept: Floats

    def __post_init__(self) -> None:
        require_hashes(self.known)
        require_numbers(self.weights, len(self.known))
        require_numbers(self.intercept, 1)

    @property
    def n_outputs(self) -> int:
        return 1

    @classmethod
    def fit(cls, bags: Bags, numbers: Numbers) -> Self:
        """Learn from N sequences and their numbers (N,)."""
        known = _varying(bags, most_frequent(bags.hashes, MOST_FEATURES))
        features = _Features.of(bags, known)
        held_out = is_held_out(bags.n_rows)
        penalty = PENALTIES[-1]
        if held_out.any():
            errors = []
            for tried in PENALTIES:
                weights, intercept = features.solve(numbers, tried, used=~held_out)
                errors.append(np.square(features.dot(weights) + intercept - numbers)[held_out].mean())
            penalty = PENALTIES[int(np.argmin(errors))]
        weights, intercept = features.solve(numbers, penalty, used=np.ones(bags.n_rows, np.bool_))
        return cls(known, weights.astype(np.float32), np.array([intercept], np.float32))

    def predict(self, bags: Bags) -> Numbers:
        """The numbers (N,) of N sequences."""
        return _Features.of(bags, self.known).dot(self.weights.astype(np.float64)) + float(self.intercept[0])


@dataclass(frozen=True, eq=False)
class RidgeByPosition(Ridge):
    """The same of which token stands where: for sequences of one length, such as aligned proteins."""

    name: ClassVar = "ridge regression by position"


def _varying(bags: Bags, known: Hashes) -> Hashes:
    """Those of which not every sequence has equally many, which would tell nothing: of aligned proteins nearly all."""
    columns = find(known, bags.hashes)
    kept, n = columns >= 0, len(known)
    sums, squares = (sum_by(columns[kept], np.power(bags.counts[kept], power), n) for power in (1, 2))
    return known[bags.n_rows * squares > np.square(sums)]


@dataclass(frozen=True, eq=False)
class _Features:
    """A sparse matrix (N, M), its rows of length 1."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    values: Numbers
    shape: tuple[int, int]

    @classmethod
    def of(cls, bags: Bags, known: Hashes) -> Self:
        columns = find(known, bags.hashes)
        kept = columns >= 0
        rows, values = bags.rows[kept], np.log1p(bags.counts[kept].astype(np.float64))
        norms = np.sqrt(sum_by(rows, np.square(values), bags.n_rows))
        return cls(rows, columns[kept], values / norms[rows], (bags.n_rows, len(known)))

    def dot(self, weights: Numbers) -> Numbers:
        return sum_by(self.rows, self.values * weights[self.columns], self.shape[0])

    def transposed_dot(self, numbers: Numbers) -> Numbers:
        return sum_by(self.columns, self.values * numbers[self.rows], self.shape[1])

    def solve(self, numbers: Numbers, penalty: float, *, used: npt.NDArray[np.bool_]) -> tuple[Numbers, float]:
        """The weights and the intercept with the least squared error on the used rows, by conjugate gradients."""
        intercept = float(numbers[used].mean())
        weights = np.zeros(self.shape[1])
        residual = self.transposed_dot(np.where(used, numbers - intercept, 0.0))
        direction, size = residual, float(residual @ residual)
        enough = 1e-8 * size
        for _ in range(N_ITERATIONS):
            if size <= enough:
                break
            image = self.transposed_dot(np.where(used, self.dot(direction), 0.0)) + penalty * direction
            step = size / float(direction @ image)
            weights, residual = weights + step * direction, residual - step * image
            before, size = size, float(residual @ residual)
            direction = residual + (size / before) * direction
        return weights, intercept
