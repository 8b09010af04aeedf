"""Linear regression on features that are given, standardised, with a small penalty on squared weights."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, Floats, require_numbers

PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class LinearRegression(Baseline):
    """weights (D,) and intercept (1,)."""

    name: ClassVar = "linear regression"

    weights: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        require_numbers(self.weights, None)
        require_numbers(self.intercept, 1)

    @property
    def n_inputs(self) -> int:
        return len(self.weights)

    @property
    def n_outputs(self) -> int:
        return 1

    @classmethod
    def fit(cls, features: Floats, numbers: npt.NDArray[np.float64]) -> Self:
        """Learn from features (N, D) and numbers (N,)."""
        given = features.astype(np.float64)
        means, deviations = given.mean(axis=0), np.maximum(given.std(axis=0), 1e-6)
        scaled = (given - means) / deviations
        gram = scaled.T @ scaled + PENALTY * np.eye(given.shape[1])
        weights = np.linalg.solve(gram, scaled.T @ (numbers - numbers.mean())) / deviations
        return cls(weights, np.array([numbers.mean() - means @ weights]))

    def predict(self, features: Floats) -> npt.NDArray[np.float64]:
        """The numbers (N,) of features (N, D)."""
        found: npt.NDArray[np.float64] = features @ self.weights + self.intercept[0]
        return found
