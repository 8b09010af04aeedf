"""How long sentences are: counted exactly, in memory that does not grow with their number."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """A distribution of lengths."""

    mean: float
    median: int
    percentile_95: int
    maximum: int


class LengthCounter:
    """Counts how often each length occurs."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one sentence."""
        self._counts[length] += 1

    def summary(self) -> Lengths:
        """Return the distribution of what was counted, which is at least one sentence.

        A percentile is the smallest length that so many of the sentences do not exceed: always one that occurs.
        """
        total = sum(length * count for length, count in self._counts.items())
        return Lengths(
            mean=total / self._counts.total(),
            median=self._percentile(50),
            percentile_95=self._percentile(95),
            maximum=max(self._counts),
        )

    def _percentile(self, percent: int) -> int:
        reached = 0
        for length in sorted(self._counts):
            reached += self._counts[length]
            if 100 * reached >= percent * self._counts.total():
                return length
        raise ValueError("no sentence was counted")
