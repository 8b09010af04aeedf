"""Is one system better than another, or was the test set lucky? Two paired tests over the counts of each sentence.

Of running text a stretch takes the place of a sentence.

Bootstrap: Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004.
Approximate randomisation: Riezler and Maxwell, "On Some Pitfalls in Automatic Evaluation", 2005.

Both p-values are two-sided and count ties as chance, so that a system against itself has p = 1. (sacreBLEU's own tests
give it the smallest p there is, and its bootstrap takes the absolute value before it centres, which about halves p.)
Means and intervals are sacreBLEU's, with the same seed also to the digit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.evaluation.statistics import Counts, Statistics, score_sums

SEED = 12345
# Drawing so many numbers at a time bounds the memory on large test sets.
_CHUNK = 2_000_000
# Sums of counts are exact, but a mean length of several references is not, nor what a text costs.
_TIE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Significance:
    """One system by one metric: its score, the bootstrap's mean and 95 % interval, and how it stands to the baseline.

    The last three are None for the baseline itself.
    """

    metric: str
    score: float
    mean: float
    low: float
    high: float
    delta: float | None = None
    bootstrap_p: float | None = None
    randomisation_p: float | None = None


def compare_to_baseline(
    systems: Mapping[str, Sequence[Statistics]],
    *,
    n_resamples: int = 1000,
    n_shuffles: int = 10_000,
    seed: int = SEED,
) -> dict[str, list[Significance]]:
    """Test every system against the first; all must have the same metrics in the same order, of the same sentences."""
    names = list(systems)
    baseline = systems[names[0]]
    resampled = [_resample(found, n_resamples=n_resamples, seed=seed) for found in baseline]
    results = {names[0]: [_describe(*pair) for pair in zip(baseline, resampled, strict=True)]}
    for name in names[1:]:
        results[name] = []
        for base, base_scores, other in zip(baseline, resampled, systems[name], strict=True):
            scores = _resample(other, n_resamples=n_resamples, seed=seed)
            shuffled = _shuffle(base, other, n_shuffles=n_shuffles, seed=seed)
            differences = scores - base_scores
            results[name].append(
                _describe(
                    other,
                    scores,
                    delta=other.score - base.score,
                    bootstrap_p=_p_value(differences - differences.mean(), other.score - base.score),
                    randomisation_p=_p_value(shuffled, other.score - base.score),
                )
            )
    return results


def _describe(statistics: Statistics, resampled: Counts, **against_baseline: float) -> Significance:
    ordered = np.sort(resampled)
    n_outside = len(ordered) // 40
    return Significance(
        metric=statistics.metric,
        score=statistics.score,
        mean=float(ordered.mean()),
        low=float(ordered[n_outside]),
        high=float(ordered[len(ordered) - n_outside - 1]),
        **against_baseline,
    )


def _p_value(by_chance: Counts, observed: float) -> float:
    """The share of differences by chance that are as large as the observed one (which counts as one of them)."""
    n_as_large = int((np.abs(by_chance) >= abs(observed) - _TIE).sum())
    return (n_as_large + 1) / (len(by_chance) + 1)


def _resample(statistics: Statistics, *, n_resamples: int, seed: int) -> Counts:
    """Scores (n_resamples,) of test sets drawn with replacement: the same draws for every system of that length."""
    generator = np.random.default_rng(seed)
    n_sentences = len(statistics.counts)
    scores = []
    for n_rows in _chunks(n_resamples, n_sentences):
        chosen = generator.choice(n_sentences, size=(n_rows, n_sentences), replace=True)
        # How often each sentence was drawn, by row: one product with the counts then sums all resamples.
        flat = chosen + n_sentences * np.arange(n_rows)[:, None]
        times = np.bincount(flat.ravel(), minlength=n_rows * n_sentences).reshape(n_rows, n_sentences)
        scores.append(score_sums(statistics.metric, times.astype(np.float64) @ statistics.counts))
    return np.concatenate(scores)


def _shuffle(base: Statistics, other: Statistics, *, n_shuffles: int, seed: int) -> Counts:
    """Differences (n_shuffles,) of two systems between which each sentence's outputs are swapped by a coin."""
    generator = np.random.default_rng(seed)
    n_sentences = len(base.counts)
    total = base.counts.sum(axis=0) + other.counts.sum(axis=0)
    differences = []
    for n_rows in _chunks(n_shuffles, n_sentences):
        from_base = generator.integers(2, size=(n_rows, n_sentences), dtype=bool)
        mixed = other.counts.sum(axis=0) + from_base.astype(np.float64) @ (base.counts - other.counts)
        differences.append(score_sums(base.metric, mixed) - score_sums(base.metric, total - mixed))
    return np.concatenate(differences)


def _chunks(n_rows: int, n_columns: int) -> Iterator[int]:
    """Split rows into groups of bounded size."""
    largest = max(1, _CHUNK // n_columns)
    for start in range(0, n_rows, largest):
        yield min(largest, n_rows - start)
