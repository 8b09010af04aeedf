"""Naive Bayes: the class whose texts hold such n-grams of tokens, each as if it stood alone.

Multinomial, of which n-grams a text holds and not how often: better for short texts (Wang and Manning 2012, "Baselines and
Bigrams").
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import (
    MOST_ENTRIES,
    Baseline,
    Floats,
    Integers,
    as_logits,
    require_numbers,
    sum_by,
)
from regard.evaluation.baselines.ngrams import Bags, Hashes, find, most_frequent, require_hashes
from regard.evaluation.baselines.temperature import best_temperature, is_held_out

SMOOTHING = 0.5  # added to each count


@dataclass(frozen=True, eq=False)
class NaiveBayes(Baseline):
    """known: hashes (M,); log_likelihoods (K, M) and log_priors (K,) of K classes; temperature (1,)."""

    name: ClassVar = "naive Bayes"

    known: Hashes
    log_likelihoods: Floats
    log_priors: Floats
    temperature: Floats

    def __post_init__(self) -> None:
        require_hashes(self.known)
        require_numbers(self.log_priors, None)
        require_numbers(self.log_likelihoods, len(self.log_priors), len(self.known))
        require_numbers(self.temperature, 1)
        if self.temperature[0] <= 0:
            raise ValueError("a temperature is above 0")

    @property
    def n_outputs(self) -> int:
        return len(self.log_priors)

    @classmethod
    def fit(cls, bags: Bags, classes: Integers, n_classes: int) -> Self:
        """Learn from N texts and their classes (N,)."""
        held_out = is_held_out(bags.n_rows)
        part = cls._fit(bags, classes, n_classes, weights=(~held_out).astype(np.float64))
        temperature = best_temperature(part.logits(bags)[held_out], classes[held_out])
        whole = cls._fit(bags, classes, n_classes, weights=np.ones(bags.n_rows))
        return replace(whole, temperature=np.array([temperature], np.float32))

    @classmethod
    def _fit(cls, bags: Bags, classes: Integers, n_classes: int, *, weights: npt.NDArray[np.float64]) -> Self:
        known = most_frequent(bags.hashes, MOST_ENTRIES // max(1, n_classes))
        columns = find(known, bags.hashes)
        kept = columns >= 0
        keys = classes[bags.rows[kept]].astype(np.int64) * len(known) + columns[kept]
        counts = sum_by(keys, weights[bags.rows[kept]], n_classes * len(known)) + SMOOTHING
        table = counts.reshape(n_classes, len(known))
        table /= table.sum(axis=1, keepdims=True)
        priors = sum_by(classes, weights, n_classes) + SMOOTHING
        return cls(
            known,
            np.log(table).astype(np.float32),
            np.log(priors / priors.sum()).astype(np.float32),
            np.ones(1, np.float32),
        )

    def logits(self, bags: Bags) -> Floats:
        """The logits (N, K) of N texts."""
        columns = find(self.known, bags.hashes)
        rows, columns = bags.rows[columns >= 0], columns[columns >= 0]
        found = [
            prior + sum_by(rows, own[columns], bags.n_rows)
            for own, prior in zip(self.log_likelihoods, self.log_priors, strict=True)
        ]
        return as_logits(np.stack(found, axis=1) / float(self.temperature[0]))
