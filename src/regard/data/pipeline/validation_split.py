"""Which examples are held out for validation: those of the smallest hashes, an exact number of them.

The hash is of the source sentence as `pair_index.py` compares them, or of the beginning of a document, so all pairs of a
sentence fall on one side, and equal documents. Which examples these are does not depend on their order, and finding
them takes no more memory than there are to be held out.
"""

import heapq

from regard.data.pairs.index import sentence_hash
from regard.errors import DataError

MOST = 2000


class ValidationSplit:
    """Sees the source of every example; then knows the largest hash that is held out. `wanted` is their number, or 0.

    noun, source: what the examples and their sources are called
    """

    def __init__(self, wanted: int, *, noun: str = "pairs", source: str = "source") -> None:
        self._wanted = wanted
        self._noun = noun
        self._source = source
        self._smallest: list[int] = []  # a heap of the negatives, so that the largest is on top
        self._largest = -1
        self._count = 0

    def add(self, source: str) -> None:
        """Take note of one example."""
        self._count += 1
        hash = sentence_hash(source)
        self._largest = max(self._largest, hash)
        if len(self._smallest) < (self._wanted or MOST):
            heapq.heappush(self._smallest, -hash)
        elif -hash > self._smallest[0]:
            heapq.heapreplace(self._smallest, -hash)

    def limit(self) -> int:
        """Return the largest hash to hold out: for as many as asked, or 1 %, 100 to 2,000, at most a tenth."""
        if self._wanted >= self._count:
            raise DataError(
                f"data.valid_size asks for {self._wanted:,} {self._noun}, and there are {self._count:,}.",
                "Hold out fewer, or give validation files with --valid.",
            )
        if self._count < 2:
            raise DataError(
                f"Of fewer than two {self._noun} none can be held out for validation.",
                "Give more, or give validation files with --valid.",
            )
        chosen = min(MOST, max(100, self._count // 100), max(1, self._count // 10))
        limit = -sorted(self._smallest, reverse=True)[(self._wanted or chosen) - 1]
        if limit >= self._largest:
            raise DataError(
                f"Nearly all {self._noun} have one and the same {self._source}: held out by it, none is left for training.",
                "Give validation files with --valid.",
            )
        return limit


def is_held_out(source: str, limit: int) -> bool:
    """Say whether the examples of this source are held out."""
    return sentence_hash(source) <= limit
