"""A dictionary learned from sentence pairs: each token by its likeliest translation, in the order of the source.

Translation probabilities are those of IBM Model 1 (Brown et al. 1993, "The mathematics of statistical machine
translation"), by expectation maximisation: a target token comes from one of the source's tokens, or from none of them.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, require_integers, sum_by
from regard.evaluation.baselines.ngrams import Sequences

N_ITERATIONS = 5
UNKNOWN = -1  # the translation of a token that was not learned from

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """How likely source tokens become target tokens: which, (M,) each, by source, and their probabilities (M,)."""

    sources: Ids
    targets: Ids
    probabilities: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, sources: Sequences, targets: Sequences, *, n_sources: int) -> Self:
        """Learn from pairs of sequences, of so many source tokens; what comes from none of them is left out."""
        links = _Links.of(sources, targets, none=n_sources)
        probabilities = links.expectation_maximisation(n_sources + 1)
        real = links.sources < n_sources
        return cls(links.sources[real], links.targets[real], probabilities[real])

    def likeliest(self, most: int, *, least: float) -> Self:
        """At most so many target tokens of each source token, the likeliest first, none that is less likely than `least`."""
        order = np.lexsort((self.targets, -self.probabilities, self.sources))
        sources = self.sources[order]
        place = np.arange(len(order)) - np.searchsorted(sources, sources)  # among those of the same source token
        kept = order[(place < most) & (self.probabilities[order] >= least)]
        return type(self)(self.sources[kept], self.targets[kept], self.probabilities[kept])


@dataclass(frozen=True, eq=False)
class Dictionary(Baseline):
    """targets (V,): the translation of each source token, or UNKNOWN; n_targets (1,): of how many tokens."""

    name: ClassVar = "word-for-word dictionary"

    targets: npt.NDArray[np.int32]
    n_targets: Ids

    def __post_init__(self) -> None:
        require_integers(self.n_targets, 1, least=1)
        require_integers(self.targets, None, least=UNKNOWN, below=int(self.n_targets[0]))

    @property
    def n_inputs(self) -> int:
        return len(self.targets)

    @property
    def n_outputs(self) -> int:
        return int(self.n_targets[0])

    @classmethod
    def fit(cls, sources: Sequences, targets: Sequences, *, n_sources: int, n_targets: int) -> Self:
        """Learn from pairs of sequences, of so many source and target tokens."""
        table = TranslationTable.fit(sources, targets, n_sources=n_sources)
        found = np.full(n_sources, UNKNOWN, np.int32)
        order = np.argsort(table.probabilities, kind="stable")
        found[table.sources[order]] = table.targets[order]  # the last that is written is the likeliest
        return cls(found, np.array([n_targets]))

    def translate(self, ids: npt.ArrayLike) -> Ids:
        """The translations (S,) of source tokens (S,), each by itself; UNKNOWN where there is none."""
        return self.targets[np.asarray(ids, np.int64)].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Links:
    """Links between each target token of a pair and each token of its source, or none of them.

    sources, targets:  the M kinds of links: between which tokens, (M,) each
    kind, occurrence:  of which kind each link (L,) is, and to which occurrence of a target token it leads
    """

    sources: Ids
    targets: Ids
    kind: Ids
    occurrence: Ids

    @classmethod
    def of(cls, sources: Sequences, targets: Sequences, *, none: int) -> Self:
        n_links = (sources.lengths + 1) * targets.lengths  # the last of each source is none of its tokens
        width = np.repeat(sources.lengths + 1, n_links)
        place = np.arange(n_links.sum()) - np.repeat(np.cumsum(n_links) - n_links, n_links)  # in the pair
        column, row = place % width, place // width
        tokens = np.append(sources.values.astype(np.int64), none)
        source = np.where(column == width - 1, none, tokens[np.repeat(sources.offsets[:-1], n_links) + column])
        occurrence = np.repeat(targets.offsets[:-1], n_links) + row
        target = targets.values.astype(np.int64)[occurrence]
        size = int(target.max(initial=0)) + 1
        kinds, kind = np.unique(source * size + target, return_inverse=True)
        return cls(kinds // size, kinds % size, kind, occurrence)

    def expectation_maximisation(self, n_sources: int) -> npt.NDArray[np.float64]:
        """The probability (M,) of each kind's target token given its source token."""
        probabilities = np.ones(len(self.sources))
        for _ in range(N_ITERATIONS):
            expected = probabilities[self.kind]
            expected /= sum_by(self.occurrence, expected, 0)[self.occurrence]
            counts = sum_by(self.kind, expected, len(self.sources))
            probabilities = counts / sum_by(self.sources, counts, n_sources)[self.sources]
        return probabilities
