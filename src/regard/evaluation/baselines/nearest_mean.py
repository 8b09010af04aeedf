"""The nearest class mean: of the class whose mean is nearest, in features that are given."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from regard.evaluation.baselines.baseline import Baseline, Floats, Integers, as_logits, require_numbers
from regard.evaluation.baselines.temperature import best_temperature, is_held_out

NOWHERE = 1e6  # from a class without examples, everything is so far away in squared deviations


@dataclass(frozen=True, eq=False)
class NearestMean(Baseline):
    """means (K, D) of K classes, by which features are divided first, `deviations` (D,); `far` (K,); temperature (1,)."""

    name: ClassVar = "nearest class mean"

    means: Floats
    deviations: Floats
    far: Floats
    temperature: Floats

    def __post_init__(self) -> None:
        require_numbers(self.means, None, None)
        require_numbers(self.deviations, self.means.shape[1])
        require_numbers(self.far, len(self.means))
        require_numbers(self.temperature, 1)
        if (self.deviations <= 0).any() or self.temperature[0] <= 0:
            raise ValueError("a deviation and a temperature are above 0")

    @property
    def n_inputs(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_outputs(self) -> int:
        return len(self.means)

    @classmethod
    def fit(cls, features: Floats, classes: Integers, n_classes: int) -> Self:
        """Learn from features (N, D) of classes (N,)."""
        held_out = is_held_out(len(features))
        part = cls._fit(features[~held_out], classes[~held_out], n_classes)
        temperature = best_temperature(part.logits(features[held_out]), classes[held_out])
        return replace(cls._fit(features, classes, n_classes), temperature=np.array([temperature], np.float32))

    @classmethod
    def _fit(cls, features: Floats, classes: Integers, n_classes: int) -> Self:
        deviations = np.maximum(features.std(axis=0, dtype=np.float64), 1e-6).astype(np.float32)
        counts = np.bincount(classes, minlength=n_classes)
        means = np.zeros((n_classes, features.shape[1]), np.float32)
        order, occurring = np.argsort(classes, kind="stable"), np.flatnonzero(counts)
        if len(occurring):
            sums = np.add.reduceat((features / deviations)[order], (np.cumsum(counts) - counts)[occurring], axis=0)
            means[occurring] = sums / counts[occurring, None]
        far = np.where(counts > 0, 0.0, NOWHERE).astype(np.float32)
        return cls(means, deviations, far, np.ones(1, np.float32))

    def logits(self, features: Floats) -> Floats:
        """The logits (N, K) of features (N, D): minus half the squared distances."""
        scaled = features.astype(np.float64) / self.deviations
        # Of a squared distance, what is the same for all classes is left out.
        found = scaled @ self.means.T - np.square(self.means, dtype=np.float64).sum(axis=1) / 2 - self.far
        return as_logits(found / float(self.temperature[0]))
