"""The validation split: which examples are held out, an exact number of them, those of the smallest hashes.

The hash is of what decides (the source of a pair, a text, the beginning of a document, the pixels of an image), so
examples that are the same fall on one side, and nothing leaks. Which these are does not depend on the order of examples,
and finding them takes no more memory than there are to be held out.

How many suit: the best checkpoint is chosen by its score on them, and a score is known only up to its standard error. An
accuracy p over n examples has sqrt(p (1 - p) / n): around 80 % the 95 % interval is 7.8 points to either side for 100
examples, 2.5 for 1,000, 1.8 for 2,000. Checkpoints of one run differ by a point or two: by 100 examples chance would choose
among them. The interval shrinks with the root only, while every example takes time at each validation: beyond 2,000 little
is won. And where there are few examples they are dear: a tenth less to learn from cost a classifier of 1,000 to 9,545 film
reviews 0.0 to 0.8 points, a fifth 0.5 to 1.5 (docs/LOG.md), for an interval that is only 1.4 times narrower. So: 1,000, of
more than 100,000 examples 1 % up to 2,000, but never more than a tenth.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from regard.data.pipeline.hashes import sentence_hash
from regard.errors import DataError

ENOUGH = 1000  # examples for a score
MOST = 2000
SHARE = 10  # of all examples at most one in so many


def suited_size(n_examples: int) -> int:
    """Return how many of so many examples are held out where nobody says it."""
    return min(MOST, max(ENOUGH, n_examples // 100), max(1, n_examples // SHARE))


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What of the training files is held out for validation; nothing by default.

    limit:  the largest hash of an example that is held out
    kept:   labels of which all examples would be held out: they stay in training, so that no class is lost
    tail:   the character from which on a text is held out, where it is not examples
    """

    limit: int = -1
    kept: frozenset[str] = frozenset()
    tail: int = -1

    def holds(self, key: str, labels: Iterable[str] = ()) -> bool:
        """Say whether the examples of this key are held out; `labels` are those of the example."""
        return self.limit >= 0 and sentence_hash(key) <= self.limit and self.kept.isdisjoint(labels)

    def to_facts(self) -> dict[str, Any]:
        """Return what `from_facts` reads, as JSON."""
        return {"limit": self.limit, "kept": sorted(self.kept), "tail": self.tail}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "HeldOut":
        return cls(limit=facts["limit"], kept=frozenset(facts["kept"]), tail=facts["tail"])


class ValidationSplit:
    """Sees every example; then knows what is held out. `wanted` is the number of examples, or 0 for what suits.

    noun, source: what an example is called, and what of it decides
    """

    def __init__(self, wanted: int, *, noun: str = "pair", source: str = "source") -> None:
        self._wanted = wanted
        self._noun = noun
        self._source = source
        self._smallest: list[int] = []  # a heap of the negatives, so that the largest is on top
        self._largest = -1
        self._largest_of: dict[str, int] = {}  # by label
        self._count = 0

    def add(self, key: str, labels: Iterable[str] = ()) -> None:
        """Take note of one example."""
        self._count += 1
        hash = sentence_hash(key)
        self._largest = max(self._largest, hash)
        for label in labels:
            self._largest_of[label] = max(self._largest_of.get(label, -1), hash)
        if len(self._smallest) < (self._wanted or MOST):
            heapq.heappush(self._smallest, -hash)
        elif -hash > self._smallest[0]:
            heapq.heapreplace(self._smallest, -hash)

    def held_out(self, *, enough: int = MOST) -> HeldOut:
        """Return what is held out: as many as asked, or as suit; `enough`: no more than so many then."""
        if self._wanted >= self._count:
            raise DataError(
                f"data.valid_size asks for {self._wanted:,} {self._noun}s, and there are {self._count:,}.",
                "Hold out fewer, or give validation files with --valid.",
            )
        if self._count < 2:
            raise DataError(
                f"Of fewer than two {self._noun}s none can be held out for validation.",
                "Give more, or give validation files with --valid.",
            )
        wanted = self._wanted or min(suited_size(self._count), enough)
        limit = -sorted(self._smallest, reverse=True)[wanted - 1]
        if limit >= self._largest:
            raise DataError(
                f"Nearly all {self._noun}s have one and the same {self._source}: held out by it, none is left for training.",
                "Give validation files with --valid.",
            )
        kept = frozenset(label for label, hash in self._largest_of.items() if hash <= limit)
        return HeldOut(limit=limit, kept=kept)
