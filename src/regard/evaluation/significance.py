"""Significance: paired bootstrap, approximate randomisation, McNemar. Is one system better, or was the test set lucky?

Bootstrap: Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004.
Approximate randomisation: Riezler and Maxwell, "On Some Pitfalls in Automatic Evaluation", 2005.
McNemar's exact test, where each example is right or wrong: Dietterich, "Approximate Statistical Tests for Comparing
Supervised Classification Learning Algorithms", 1998.

All p-values are two-sided and count ties as chance, so that a system against itself has p = 1. (sacreBLEU's own tests
give it the smallest p there is, and its bootstrap takes the absolute value before it centres, which about halves p.)
Means and intervals are sacreBLEU's, with the same seed also to the digit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import DataError
from regard.evaluation.sufficient_statistics import Floats, Statistics

Systems = Mapping[str, Sequence[Statistics]]

SEED = 12345
# Drawing so many numbers at a time bounds the memory on large test sets.
_CHUNK = 2_000_000
# Sums of counts are exact, but a mean length of several references is not, nor what a text costs.
_TIE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Significance:
    """One system by one metric: its score, the bootstrap's mean and 95 % interval, and how it stands to the baseline.

    The difference, its paired 95 % interval and the p-values are None for the baseline itself, McNemar's wherever examples
    are not right or wrong.
    """

    metric: str
    score: float
    mean: float
    low: float
    high: float
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    bootstrap_p: float | None = None
    randomisation_p: float | None = None
    mcnemar_p: float | None = None


def compare_to_baseline(
    systems: Systems,
    *,
    n_resamples: int = 1000,
    n_shuffles: int = 10_000,
    seed: int = SEED,
) -> dict[str, list[Significance]]:
    """Test every system against the first; all must have the same metrics in the same order, of the same examples."""
    names = list(systems)
    baseline = systems[names[0]]
    if not all(map(len, baseline)):
        raise DataError("There are no examples to compare systems on.", "Give a test set that holds some.")
    for name in names[1:]:
        _check_paired(baseline, systems[name])
    resampled = _resample(systems, n_resamples=n_resamples, seed=seed)
    shuffled = _shuffle(systems, n_shuffles=n_shuffles, seed=seed)
    results = {names[0]: [_describe(*pair) for pair in zip(baseline, resampled[names[0]], strict=True)]}
    for name in names[1:]:
        results[name] = []
        for number, (base, other) in enumerate(zip(baseline, systems[name], strict=True)):
            delta = other.value - base.value
            differences = np.sort(_numbers(resampled[name][number] - resampled[names[0]][number]))
            low, high = _interval(differences)
            results[name].append(
                _describe(
                    other,
                    resampled[name][number],
                    delta=delta,
                    delta_low=low,
                    delta_high=high,
                    bootstrap_p=_p_value(differences - differences.sum() / max(1, len(differences)), delta),
                    randomisation_p=_p_value(_numbers(shuffled[name][number]), delta),
                    mcnemar_p=_mcnemar(base, other),
                )
            )
    return results


def mcnemar_exact(n_first: int, n_second: int) -> float:
    """The p-value of two systems of which `n_first` examples only the first has right, `n_second` only the second.

    A fair coin decides each such example if the systems are equally good: the binomial test, two-sided.
    """
    n = n_first + n_second
    ways = tail = 1  # to choose k of n, and at most k of n; whole numbers, so that nothing is lost
    for k in range(min(n_first, n_second)):
        ways = ways * (n - k) // (k + 1)
        tail += ways
    return float(min(1.0, 2 * tail / 2**n))


def _describe(statistics: Statistics, resampled: Floats, **against_baseline: float | None) -> Significance:
    ordered = np.sort(_numbers(resampled))
    low, high = _interval(ordered)
    return Significance(
        metric=statistics.metric,
        score=statistics.value,
        mean=float(ordered.mean()) if len(ordered) else float("nan"),
        low=low,
        high=high,
        **against_baseline,
    )


def _interval(ordered: Floats) -> tuple[float, float]:
    """The interval that holds 95 % of resampled scores or differences, which are in order."""
    n_outside = len(ordered) // 40
    if not len(ordered):
        return float("nan"), float("nan")
    return float(ordered[n_outside]), float(ordered[len(ordered) - n_outside - 1])


def _p_value(by_chance: Floats, observed: float) -> float:
    """The share of differences by chance that are as large as the observed one (which counts as one of them).

    Of a score that is not defined there is no p-value: NaN.
    """
    if np.isnan(observed):
        return float("nan")
    n_as_large = int((np.abs(by_chance) >= abs(observed) - _TIE).sum())
    return (n_as_large + 1) / (len(by_chance) + 1)


def _resample(systems: Systems, *, n_resamples: int, seed: int) -> dict[str, list[Floats]]:
    """Scores (n_resamples,) of test sets drawn with replacement: the same draws for every system and metric."""
    generator = np.random.default_rng(seed)
    n = _n_examples(systems)
    chunks = []
    for n_rows in _chunk_sizes(n_resamples, n):
        chosen = generator.choice(n, size=(n_rows, n), replace=True)
        # How often each example was drawn, by row: one product with the counts then sums all resamples.
        flat = chosen + n * np.arange(n_rows)[:, None]
        times = np.bincount(flat.ravel(), minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)
        chunks.append({name: [found.resampled(times) for found in own] for name, own in systems.items()})
    return _joined(chunks)


def _shuffle(systems: Systems, *, n_shuffles: int, seed: int) -> dict[str, list[Floats]]:
    """Differences (n_shuffles,) to the baseline where the same coins swap each example's outputs, for all metrics."""
    generator = np.random.default_rng(seed)
    n = _n_examples(systems)
    baseline, *others = systems
    chunks = []
    for n_rows in _chunk_sizes(n_shuffles if others else 1, n):
        from_base = generator.integers(2, size=(n_rows, n), dtype=bool)
        differences = {}
        for name in others:
            pairs = zip(systems[baseline], systems[name], strict=True)
            differences[name] = [first - second for first, second in (a.swapped(b, from_base) for a, b in pairs)]
        chunks.append(differences)
    return _joined(chunks)


def _joined(chunks: Sequence[Mapping[str, Sequence[Floats]]]) -> dict[str, list[Floats]]:
    return {
        name: [np.concatenate(own) for own in zip(*(chunk[name] for chunk in chunks), strict=True)]
        for name in chunks[0]
    }


def _n_examples(systems: Systems) -> int:
    return len(next(iter(systems.values()))[0])


def _numbers(values: Floats) -> Floats:
    """Without the samples that have no score, as a correlation among equal numbers."""
    return values[~np.isnan(values)]


def _mcnemar(base: Statistics, other: Statistics) -> float | None:
    first, second = base.correct, other.correct
    if first is None or second is None:
        return None
    return mcnemar_exact(int((first & ~second).sum()), int((second & ~first).sum()))


def _check_paired(baseline: Sequence[Statistics], other: Sequence[Statistics]) -> None:
    ours, theirs = ([f"{len(found):,} of {found.metric}" for found in own] for own in (baseline, other))
    if ours != theirs:
        raise DataError(
            "Systems are compared over the same examples by the same metrics, but the first has "
            f"{', '.join(ours)}, and another {', '.join(theirs)}.",
            "Score every system on the whole test set by the same metrics.",
        )


def _chunk_sizes(n_rows: int, n_columns: int) -> Iterator[int]:
    """Split rows into groups of bounded size."""
    largest = max(1, _CHUNK // n_columns)
    for start in range(0, n_rows, largest):
        yield min(largest, n_rows - start)
