"""Length penalty: what the sum of log-probabilities is divided by, so that long hypotheses compete with short ones."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


class LengthPenalty(ABC):
    """A divisor that grows, or shrinks, steadily with the length. Lengths count the written tokens with the end token."""

    @abstractmethod
    def divisor(self, length: int) -> float:
        """What the sum of a hypothesis of this length is divided by; positive, monotone in the length."""

    def score(self, total: float, *, length: int) -> float:
        return total / self.divisor(length)

    def largest_divisor(self, *, length: int, limit: int) -> float:
        """The largest divisor of the lengths after `length` up to `limit`; a monotone one is largest at either end.

        A hypothesis of `length` tokens and sum S scores at most S over this when it is complete. For log-probabilities
        are never positive: its final sum is at most S, S is at most 0, and the larger the divisor, the nearer to 0.
        """
        return max(self.divisor(min(length + 1, limit)), self.divisor(limit))


@dataclass(frozen=True)
class LengthPower(LengthPenalty):
    """length**alpha, as transformers and CTranslate2 have it. 0 compares plain sums, 1 the mean log-probability."""

    alpha: float = 1.0

    def divisor(self, length: int) -> float:
        return float(length**self.alpha)


@dataclass(frozen=True)
class GNMT(LengthPenalty):
    """((5 + length) / 6)**alpha: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14."""

    alpha: float = 0.6

    def divisor(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.alpha)


DEFAULT_PENALTY: LengthPenalty = LengthPower()
