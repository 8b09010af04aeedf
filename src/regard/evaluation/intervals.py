"""Confidence intervals of scores, 95 %, by formulas: how far a score of so many examples may be from that of all there are.

Wilson's interval of a share: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927. Unlike
the normal one it stays within 0 and 100 %, and is no point where all examples are right. Where examples come together, as
words in sentences, sentences are what was drawn (the variance of a ratio: Cochran, "Sampling Techniques", 1977, 6.4).
Correlations by Fisher's transformation; of ranks with the variance of Bonett and Wright, "Sample Size Requirements for
Estimating Pearson, Kendall and Spearman Correlations", 2000. BLEU and F1 have no formula: `significance.py` resamples.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # lists of runs, which show intervals, need no arrays
    from numpy.typing import NDArray

Interval = tuple[float, float]

Z = 1.959964  # standard deviations of the normal distribution that hold 95 %
# How records of a validation call the two ends of a score's interval: accuracy_low, accuracy_high.
LOW, HIGH = "_low", "_high"


def wilson(n_correct: float, n: float) -> Interval | None:
    """The interval of a share, in percent; None of nothing."""
    if n <= 0:
        return None
    share, square = n_correct / n, Z * Z
    centre = (share + square / (2 * n)) / (1 + square / n)
    margin = Z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return max(0.0, 100 * (centre - margin)), min(100.0, 100 * (centre + margin))


def clustered_share(n_correct: "NDArray[Any]", n: "NDArray[Any]") -> Interval | None:
    """The interval of a share over clusters (N,), such as sentences of `n` words, in percent; None of fewer than two.

    Wilson's, with as many examples as would vary as much if they were drawn one by one.
    """
    total, n_clusters = float(n.sum()), int((n > 0).sum())
    if bool((n == 1).all()):
        return wilson(float(n_correct.sum()), total)
    if n_clusters < 2 or bool((n_correct > n).any()):  # an error rate may be above 100 %
        return None
    share = float(n_correct.sum()) / total
    variance = float(((n_correct - share * n) ** 2).sum()) / total**2 * n_clusters / (n_clusters - 1)
    # Never more than there are. Where all are right or all wrong, nothing says how alike those of a cluster are.
    effective = min(total, share * (1 - share) / variance) if variance else n_clusters
    return wilson(share * effective, effective)


def correlation(value: float, n: int, *, of_ranks: bool) -> Interval | None:
    """The interval of a correlation over n examples; None of fewer than four, or where it is not defined."""
    if n < 4 or not abs(value) < 1:
        return None
    margin = Z * math.sqrt((1 + value * value / 2 if of_ranks else 1.0) / (n - 3))
    return math.tanh(math.atanh(value) - margin), math.tanh(math.atanh(value) + margin)


def mean(values: "NDArray[Any]") -> Interval | None:
    """The interval of the mean of values (N,); None of fewer than two."""
    if len(values) < 2:
        return None
    middle, margin = float(values.mean()), Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return middle - margin, middle + margin


def to_record(intervals: Mapping[str, Interval]) -> dict[str, float]:
    """Intervals by the names of their scores as a record of a validation has them, beside the scores."""
    return {name + end: value for name, own in intervals.items() for end, value in zip((LOW, HIGH), own, strict=True)}


def from_record(record: Mapping[str, float | None], name: str) -> Interval | None:
    """The interval of a score in such a record; None where it has none."""
    low, high = record.get(name + LOW), record.get(name + HIGH)
    return None if low is None or high is None else (low, high)


def is_interval_end(name: str) -> bool:
    """Whether a key of such a record is the end of an interval, and no score."""
    return name.endswith((LOW, HIGH))
