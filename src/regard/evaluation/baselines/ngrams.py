"""Bags of n-grams: which n-grams of tokens a sequence holds, by hashes of eight bytes, so that any vocabulary serves."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Array, Integers

Hashes = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio, as splitmix64 has it
_FACTORS = np.arange(1, 5, dtype=np.uint64) * _FACTOR  # one for each salt
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of tokens: `values` end to end, and `offsets` (N + 1,) that say where each begins."""

    values: Integers
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def row_of(self) -> npt.NDArray[np.int64]:
        """To which sequence each token belongs."""
        return np.repeat(np.arange(len(self)), self.lengths)


@dataclass(frozen=True, eq=False)
class Bags:
    """What N sequences hold, each thing once: it stands in sequence `rows`, is called `hashes` and occurs `counts` times."""

    rows: npt.NDArray[np.int64]
    hashes: Hashes
    counts: npt.NDArray[np.int64]
    n_rows: int

    def joined(self, other: "Bags") -> "Bags":
        """What the same sequences hold beside it, none of which is called the same."""
        return Bags(
            rows=np.concatenate((self.rows, other.rows)),
            hashes=np.concatenate((self.hashes, other.hashes)),
            counts=np.concatenate((self.counts, other.counts)),
            n_rows=self.n_rows,
        )


def mixed(values: Array, *, salt: int = 0) -> Hashes:
    """Hash each value (the finaliser of splitmix64, Steele et al. 2014); each `salt`, 0 to 3, in its own way."""
    x = values.astype(np.uint64) + _FACTORS[salt]
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    hashes: Hashes = x ^ (x >> np.uint64(31))
    return hashes


def bags_of_ngrams(tokens: Sequences, *, order: int, salt: int = 0) -> Bags:
    """All n-grams of at most `order` tokens; with another `salt` the same ones have other hashes."""
    own, row_of = mixed(tokens.values, salt=salt), tokens.row_of
    found, rows, hashes = [own], [row_of], own
    for n in range(2, min(order, len(own)) + 1):
        whole = row_of[: 1 - n] == row_of[n - 1 :]  # what begins and ends in one sequence
        hashes = mixed(hashes[:-1] * _FACTOR + own[n - 1 :])
        found.append(hashes[whole])
        rows.append(row_of[: 1 - n][whole])
    return counted(np.concatenate(rows), np.concatenate(found), len(tokens))


def bags_of_places(tokens: Sequences, *, salt: int = 0) -> Bags:
    """Which token stands at which place: for sequences of one length, whose places mean the same."""
    places = np.arange(len(tokens.values)) - np.repeat(tokens.offsets[:-1], tokens.lengths)
    hashes = mixed(mixed(tokens.values, salt=salt) + mixed(places, salt=1))
    return Bags(tokens.row_of, hashes, np.ones(len(hashes), np.int64), len(tokens))


def counted(rows: npt.NDArray[np.int64], hashes: Hashes, n_rows: int) -> Bags:
    """Count equal things in each row."""
    _, first, counts = np.unique(keys_in_rows(rows, hashes), return_index=True, return_counts=True)
    order = np.argsort(first)  # as they came: neighbours are of one row, which is quicker to add up
    return Bags(rows[first[order]], hashes[first[order]], counts[order], n_rows)


def keys_in_rows(rows: npt.NDArray[np.int64], hashes: Hashes) -> Hashes:
    """What is called the same in one row has one key, in another row another."""
    return hashes ^ mixed(rows, salt=3)  # which nothing else has: a token and a row of the same number are two things


def most_frequent(hashes: Hashes, most: int) -> Hashes:
    """Return the hashes that occur most often, at most so many, each once, sorted."""
    known, counts = np.unique(hashes, return_counts=True)
    if len(known) <= most:
        return known
    return np.sort(known[np.lexsort((known, -counts))[:most]])


def find(known: Hashes, hashes: Hashes) -> npt.NDArray[np.int64]:
    """Return the place of each hash among the known ones, which are sorted; -1 for one that is not known."""
    if not len(known):
        return np.full(len(hashes), -1, np.int64)
    places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.where(known[places] == hashes, places, -1)


def require_hashes(hashes: Array) -> None:
    """Refuse what are no sorted hashes."""
    if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] <= hashes[:-1]).any():
        raise ValueError("sorted hashes were expected")
