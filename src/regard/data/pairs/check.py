"""A check of sentence pairs before training on them: bad pairs, duplicates, lengths, test sentences that stand in training.

Everything streams: the files may be larger than memory. Which sentences are the same says `sentence_hash`.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.config import DataConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import PairSource
from regard.data.pairs.index import PairIndex
from regard.data.pairs.rows import read_pairs
from regard.data.pipeline.bad_rows import N_EXAMPLES, BadRows

PROGRESS_EVERY = 1000


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """A distribution of lengths; a percentile is the smallest that so many do not exceed: always one that occurs."""

    mean: float
    median: int
    percentile_95: int
    maximum: int

    @classmethod
    def of(cls, counts: Counter[int]) -> "Lengths":
        """Summarise how often each length occurs."""
        lengths = sorted(counts)
        reached = np.cumsum([counts[length] for length in lengths])
        median, percentile_95 = (
            lengths[np.searchsorted(100 * reached, percent * counts.total())] for percent in (50, 95)
        )
        mean = sum(length * count for length, count in counts.items()) / counts.total()
        return cls(mean=mean, median=median, percentile_95=percentile_95, maximum=lengths[-1])


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A sentence of the test set that stands in training too, and both places as FILE:LINE."""

    source: str
    place: str
    train_place: str
    same_target: bool


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How much of a test set stands in training: whole pairs, and sources with whatever target."""

    bad_rows: BadRows
    n_pairs: int
    n_shared_pairs: int
    n_shared_sources: int
    examples: tuple[Shared, ...]

    @property
    def pair_share(self) -> float:
        """Share of the test pairs that stand in training."""
        return self.n_shared_pairs / self.n_pairs

    @property
    def source_share(self) -> float:
        """Share of the test sources that stand in training."""
        return self.n_shared_sources / self.n_pairs


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """What `check` found. Everything but `bad_rows` is about the good pairs."""

    bad_rows: BadRows
    n_pairs: int
    n_duplicates: int  # pairs that stood before
    n_ambiguous_sources: int  # distinct sources with several distinct targets
    n_copied: int  # pairs whose target is the source
    source_characters: Lengths
    source_words: Lengths  # words are what stands between spaces
    target_characters: Lengths
    target_words: Lengths
    overlap: Overlap | None


def check(
    files: Sequence[str | os.PathLike[str]],
    *,
    against: Sequence[str | os.PathLike[str]] | None = None,
    source: str = "",
    target: str = "",
    progress: Callable[[int], None] = lambda done: None,
) -> DataReport:
    """Read files and report what a person should know before training on them; `against` is the test set.

    `progress` is called now and then with the number of good pairs read.
    """
    data = DataConfig(source=source, target=target, on_bad="keep-going")
    pairs, test_pairs = (
        PairSource(files=tuple(os.fspath(file) for file in own), data=data) for own in (files, against or ())
    )
    for own in (pairs, test_pairs) if against else (pairs,):
        read_pairs(own.files)  # what is missing is known before anything is read
    bad_rows, index, n_copied = BadRows(pairs.noun), PairIndex(), 0
    counts = [Counter[int]() for _ in range(4)]
    for done, pair in enumerate(pairs.good(bad_rows)):
        if done % PROGRESS_EVERY == 0:
            progress(done)
        index.add(pair)
        n_copied += pair.source.strip() == pair.target.strip()
        lengths = (len(pair.source), len(pair.source.split()), len(pair.target), len(pair.target.split()))
        for own_counts, length in zip(counts, lengths, strict=True):
            own_counts[length] += 1
    n_duplicates, n_ambiguous_sources = index.duplicates()
    source_characters, source_words, target_characters, target_words = map(Lengths.of, counts)
    return DataReport(
        bad_rows=bad_rows,
        n_pairs=bad_rows.n_good,
        n_duplicates=n_duplicates,
        n_ambiguous_sources=n_ambiguous_sources,
        n_copied=n_copied,
        source_characters=source_characters,
        source_words=source_words,
        target_characters=target_characters,
        target_words=target_words,
        overlap=_overlap(index, test_pairs) if against else None,
    )


def _overlap(index: PairIndex, test_pairs: PairSource) -> Overlap:
    bad_rows, finder = BadRows(test_pairs.noun), index.finder()
    n_shared_pairs = n_shared_sources = 0
    examples: list[Shared] = []
    for pair in test_pairs.good(bad_rows):
        same_source, same_pair = finder.find(pair)
        if same_source is None:
            continue
        n_shared_sources += 1
        n_shared_pairs += same_pair is not None
        if len(examples) < N_EXAMPLES:
            shared = Shared(
                source=excerpt(pair.source),
                place=f"{pair.file}:{pair.line}",
                train_place=index.place(same_source if same_pair is None else same_pair),
                same_target=same_pair is not None,
            )
            examples.append(shared)
    return Overlap(
        bad_rows=bad_rows,
        n_pairs=bad_rows.n_good,
        n_shared_pairs=n_shared_pairs,
        n_shared_sources=n_shared_sources,
        examples=tuple(examples),
    )
