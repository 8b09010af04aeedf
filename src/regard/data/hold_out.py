"""Which sentences are held out for validation: those of the smallest hashes, an exact number of pairs.

The hash is of the source sentence as `pair_index.py` compares them, so all pairs of a sentence fall on one side. Which
sentences these are does not depend on their order, and finding them takes no more memory than there are to be held out.
"""

import heapq

from regard.data.pair_index import sentence_hash
from regard.errors import DataError

MOST = 2000


class HoldOut:
    """Sees the source of every pair; then knows the largest hash that is held out. `wanted` is a number of pairs, or 0."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._smallest: list[int] = []  # a heap of the negatives, so that the largest is on top
        self._largest = -1
        self._n_pairs = 0

    def add(self, source: str) -> None:
        """Take note of one pair."""
        self._n_pairs += 1
        hash = sentence_hash(source)
        self._largest = max(self._largest, hash)
        if len(self._smallest) < (self._wanted or MOST):
            heapq.heappush(self._smallest, -hash)
        elif -hash > self._smallest[0]:
            heapq.heapreplace(self._smallest, -hash)

    def limit(self) -> int:
        """Return the largest hash to hold out: for as many pairs as asked, or 1 %, 100 to 2,000, at most a tenth."""
        if self._wanted >= self._n_pairs:
            raise DataError(
                f"data.hold_out asks for {self._wanted:,} pairs, and there are {self._n_pairs:,}.",
                "Hold out fewer, or give validation files with --valid.",
            )
        chosen = min(MOST, max(100, self._n_pairs // 100), max(1, self._n_pairs // 10))
        limit = -sorted(self._smallest, reverse=True)[(self._wanted or chosen) - 1]
        if limit >= self._largest:
            raise DataError(
                "Nearly all pairs have one and the same source: held out by sentence, none is left for training.",
                "Give validation files with --valid.",
            )
        return limit


def is_held_out(source: str, limit: int) -> bool:
    """Say whether the pairs of this source are held out."""
    return sentence_hash(source) <= limit
