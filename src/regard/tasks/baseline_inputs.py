"""What baselines read of a task's examples: a bounded number of them, in equal distances, as sequences of tokens."""

from collections.abc import Iterator

import numpy as np

from regard.data.pipeline.corpus import Integers, Ragged
from regard.evaluation.baselines.ngrams import Sequences
from regard.tasks.task import Indices

MOST_TOKENS = 2_000_000  # that are learned from: a few seconds
SMALL = 512  # tokens: a vocabulary that is no larger is one of characters or bytes
_CHUNK = 200_000  # tokens that are scored at once


def ngram_order(vocab_size: int, *, few: int, many: int) -> int:
    """How many tokens an n-gram has: of a vocabulary of characters or bytes, `many`, of others, `few`."""
    return many if vocab_size <= SMALL else few


def evenly(n: int, most: int) -> Indices:
    """At most so many of n numbers, in equal distances."""
    return np.arange(n) if n <= most else np.arange(most) * n // most


def bounded_rows(lengths: Indices, most: int) -> Indices:
    """Rows in equal distances, that have together about `most` tokens at most, or one row."""
    total = int(lengths.sum())
    return evenly(len(lengths), len(lengths) if total <= most else max(1, len(lengths) * most // total))


def sequences(rows: Ragged, chosen: Indices) -> Sequences:
    """Some rows of a corpus."""
    taken = rows.take(chosen)
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in taken], dtype=np.int64)))
    return Sequences(np.concatenate([rows.values[:0], *taken]), offsets.astype(np.int64))


def in_chunks(lengths: Indices) -> Iterator[Indices]:
    """All rows in order, so many at a time as have a bounded number of tokens."""
    which = np.cumsum(lengths) // _CHUNK
    edges = np.flatnonzero(np.diff(which)) + 1
    yield from np.split(np.arange(len(lengths)), edges)


def in_parts(rows: Indices, size: int = 256) -> list[Indices]:
    """Numbers of images, so many as are read at once."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def stretches(stream: Integers, most: int) -> Integers:
    """At most so many tokens of a stream: a hundred stretches in equal distances where there are more."""
    if len(stream) <= most:
        return np.asarray(stream)
    length = most // 100
    return np.concatenate([stream[start : start + length] for start in (np.arange(100) * len(stream) // 100).tolist()])
