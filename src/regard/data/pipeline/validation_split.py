"""The validation split: which examples are held out, an exact number of them, those of the smallest hashes.

The hash is of what decides (the source of a pair, a text, the beginning of a document, the pixels of an image), so
examples that are the same fall on one side, and nothing leaks. Which these are does not depend on the order of examples,
and finding them takes no more memory than there are to be held out.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from regard.data.pipeline.hashes import sentence_hash
from regard.errors import DataError

MOST = 2000


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

    def held_out(self) -> HeldOut:
        """Return what is held out: as many as asked, or 1 %, 100 to 2,000, at most a tenth."""
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
        chosen = min(MOST, max(100, self._count // 100), max(1, self._count // 10))
        limit = -sorted(self._smallest, reverse=True)[(self._wanted or chosen) - 1]
        if limit >= self._largest:
            raise DataError(
                f"Nearly all {self._noun}s have one and the same {self._source}: held out by it, none is left for training.",
                "Give validation files with --valid.",
            )
        kept = frozenset(label for label, hash in self._largest_of.items() if hash <= limit)
        return HeldOut(limit=limit, kept=kept)
