"""Duplicate pairs, found without keeping their texts: hashes of eight bytes in arrays.

Which sentences are the same says `sentence_hash`. A pair takes 24 bytes.
That two different ones among a hundred million meet in one hash has a probability of n²/2 / 2**64, or 0.03 %.
"""

import hashlib
from array import array
from bisect import bisect_right

import numpy
from numpy.typing import NDArray

from regard.data.pairs.rows import Pair
from regard.data.pipeline.hashes import sentence_hash


def pair_hash(source_hash: int, target_hash: int) -> int:
    """Return 64 bits that are equal for pairs whose two sides are the same."""
    both = source_hash.to_bytes(8, "little") + target_hash.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "little")


class PairIndex:
    """The pairs of a corpus, in the order in which they were added, to be found again."""

    def __init__(self) -> None:
        self._sources = array("Q")
        self._pairs = array("Q")
        self._lines = array("Q")
        self._files: list[str] = []
        self._first_of_file: list[int] = []  # the number of each file's first pair

    def add(self, pair: Pair) -> None:
        """Add a pair; those of a file come together."""
        if not self._files or self._files[-1] != pair.file:
            self._files.append(pair.file)
            self._first_of_file.append(len(self._lines))
        source = sentence_hash(pair.source)
        self._sources.append(source)
        self._pairs.append(pair_hash(source, sentence_hash(pair.target)))
        self._lines.append(pair.line)

    def duplicates(self) -> tuple[int, int]:
        """Return how many pairs stood before, and how many distinct sources have several distinct targets."""
        _, first = numpy.unique(_values(self._pairs), return_index=True)
        _, n_targets = numpy.unique(_values(self._sources)[first], return_counts=True)
        return len(self._pairs) - len(first), int((n_targets > 1).sum())

    def finder(self) -> "PairFinder":
        """Return what finds sentences and pairs among those added so far."""
        return PairFinder(_values(self._sources), _values(self._pairs))

    def place(self, number: int) -> str:
        """Return FILE:LINE of a pair by its number."""
        file = self._files[bisect_right(self._first_of_file, number) - 1]
        return f"{file}:{self._lines[number]}"


class PairFinder:
    """Finds the first pair that has the same source, or the same source and target."""

    def __init__(self, sources: NDArray[numpy.uint64], pairs: NDArray[numpy.uint64]) -> None:
        self._sources = numpy.unique(sources, return_index=True)
        self._pairs = numpy.unique(pairs, return_index=True)

    def find(self, pair: Pair) -> tuple[int | None, int | None]:
        """Return the numbers of the first pair with this source and of the first such pair, None where there is none."""
        source = sentence_hash(pair.source)
        same_source = _look_up(self._sources, source)
        if same_source is None:
            return None, None
        return same_source, _look_up(self._pairs, pair_hash(source, sentence_hash(pair.target)))


def _look_up(table: tuple[NDArray[numpy.uint64], NDArray[numpy.intp]], value: int) -> int | None:
    values, numbers = table
    position = int(numpy.searchsorted(values, numpy.uint64(value)))
    if position == len(values) or int(values[position]) != value:
        return None
    return int(numbers[position])


def _values(numbers: "array[int]") -> NDArray[numpy.uint64]:
    # A view, not to be kept: an array that numpy looks into can no longer grow.
    return numpy.frombuffer(numbers, dtype=numpy.uint64)
