"""Captions without reading the image well: that of the nearest training image, and the most typical one for every image."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Array, Baseline, Floats, Integers, require_integers
from regard.evaluation.baselines.ngrams import Sequences, bags_of_ngrams, find, most_frequent


@dataclass(frozen=True, eq=False)
class TypicalCaption(Baseline):
    """tokens (T,) of the caption that shares most with all others; n_tokens (1,): of how many."""

    name: ClassVar = "most typical caption"

    tokens: npt.NDArray[np.int64]
    n_tokens: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        require_integers(self.n_tokens, 1, least=1)
        require_integers(self.tokens, None, below=int(self.n_tokens[0]))

    @property
    def n_outputs(self) -> int:
        return int(self.n_tokens[0])

    @classmethod
    def fit(cls, captions: Sequences, n_tokens: int) -> Self:
        """Learn from captions, of so many tokens: the one whose words and pairs of words are nearest to their mean."""
        bags = bags_of_ngrams(captions, order=2)
        known = most_frequent(bags.hashes, len(bags.hashes))
        places = find(known, bags.hashes)
        shared = np.bincount(bags.rows, np.bincount(places, minlength=len(known))[places], minlength=len(captions))
        lengths = np.bincount(bags.rows, minlength=len(captions))
        best = int(np.argmax(shared / np.sqrt(np.maximum(lengths, 1))))
        start, end = captions.offsets[best : best + 2]
        return cls(captions.values[start:end].astype(np.int64), np.array([n_tokens]))

    def captions(self, features: Floats) -> list[Array]:
        """The tokens of a caption for each of features (N, D)."""
        return [self.tokens] * len(features)


@dataclass(frozen=True, eq=False)
class NearestCaption(Baseline):
    """features (N, D) of images as bytes; their captions: `tokens` end to end, `offsets` (N + 1,); n_tokens (1,)."""

    name: ClassVar = "caption of the nearest image"

    features: npt.NDArray[np.uint8]
    tokens: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    n_tokens: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        require_integers(self.n_tokens, 1, least=1)
        require_integers(self.features, None, None, below=256)
        require_integers(self.tokens, None, below=int(self.n_tokens[0]))
        require_integers(self.offsets, len(self.features) + 1, below=len(self.tokens) + 1)
        if not len(self.features) or (np.diff(self.offsets) < 0).any():
            raise ValueError("captions are not in order")

    @property
    def n_inputs(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.n_tokens[0])

    @classmethod
    def fit(cls, features: Floats, captions: Sequences, n_tokens: int) -> Self:
        """Learn from features (N, D) from 0 to 1, and the caption of each image."""
        tokens, offsets = captions.values.astype(np.int64), captions.offsets.astype(np.int64)
        return cls(np.round(255 * features).astype(np.uint8), tokens, offsets, np.array([n_tokens]))

    def captions(self, features: Floats) -> list[Array]:
        """The tokens of a caption for each of features (N, D)."""
        known = self.features.astype(np.float32) / 255
        nearest: Integers = (features @ known.T - np.square(known).sum(axis=1) / 2).argmax(axis=1)
        return [self.tokens[self.offsets[row] : self.offsets[row + 1]] for row in nearest.tolist()]
