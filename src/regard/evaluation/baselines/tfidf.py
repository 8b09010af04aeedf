"""Cosine of tf-idf: two texts are alike as far as they share words, rare ones more than frequent ones."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, Floats, require_numbers, sum_by
from regard.evaluation.baselines.ngrams import Bags, Hashes, find, keys_in_rows, most_frequent, require_hashes

MOST_FEATURES = 200_000

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TfIdf(Baseline):
    """known: hashes (M,) with their inverse document frequencies `idf` (M + 1,), the last that of all others.

    line: (2,), from a cosine to a number: slope and intercept
    """

    name: ClassVar = "cosine of tf-idf"

    known: Hashes
    idf: Floats
    line: Floats

    def __post_init__(self) -> None:
        require_hashes(self.known)
        require_numbers(self.idf, len(self.known) + 1)
        require_numbers(self.line, 2)

    @property
    def n_outputs(self) -> int:
        return 1

    @classmethod
    def fit(cls, first: Bags, second: Bags, numbers: Numbers) -> Self:
        """Learn from N pairs of texts and their numbers (N,)."""
        hashes, n_texts = np.concatenate((first.hashes, second.hashes)), first.n_rows + second.n_rows
        known = most_frequent(hashes, MOST_FEATURES)
        counts = np.bincount(find(known, hashes) + 1, minlength=len(known) + 1)[1:]
        idf = np.log((n_texts + 1) / (np.append(counts, 0) + 1)).astype(np.float32)
        found = cls(known, idf, np.array((1.0, 0.0), np.float32))
        cosines = found.cosines(first, second)
        spread, mean = cosines.var(), numbers.mean()
        slope = ((cosines - cosines.mean()) * (numbers - mean)).mean() / spread if spread > 0 else 0.0
        return replace(found, line=np.array((slope, mean - slope * cosines.mean()), np.float32))

    def predict(self, first: Bags, second: Bags) -> Numbers:
        """The numbers (N,) of N pairs of texts."""
        slope, intercept = self.line.tolist()
        found: Numbers = slope * self.cosines(first, second) + intercept
        return found

    def cosines(self, first: Bags, second: Bags) -> Numbers:
        """The cosines (N,) of N pairs of texts; 0 where one is empty."""
        weights, others = self._weights(first), self._weights(second)
        keys = keys_in_rows(second.rows, second.hashes)
        order = np.argsort(keys)
        places = find(keys[order], keys_in_rows(first.rows, first.hashes))
        shared = places >= 0
        rows = first.rows[shared]
        products = sum_by(rows, weights[shared] * others[order][places[shared]], first.n_rows)
        norm, other = (
            sum_by(bags.rows, np.square(own), bags.n_rows) for bags, own in ((first, weights), (second, others))
        )
        cosines: Numbers = products / np.sqrt(np.maximum(norm * other, 1e-12))
        return cosines

    def _weights(self, bags: Bags) -> Numbers:
        idf = self.idf[find(self.known, bags.hashes)]  # -1 names the last
        weights: Numbers = (1 + np.log(bags.counts)) * idf
        return weights
