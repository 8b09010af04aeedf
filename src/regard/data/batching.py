"""Batching by length under a token budget: pure functions of the lengths, which know no text and no tensor.

A batch is padded to its longest example on each side, so examples of like length go together. The budget counts padded
tokens of the longer side: examples × longest ≤ batch_tokens. `lengths` is (n,) or (n, sides); a batch is an array of
indices. This is what grows in memory with the corpus: 8 bytes an example for an epoch's order, 4 a side for the lengths.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError

Indices = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]

# By how much of its length an example may change places. Shuffling equal lengths is enough where sentences are short
# and many; among long documents, of which hardly two are equal, each epoch would see the same batches.
_MIXING = 0.05


def plan(lengths: npt.ArrayLike, *, batch_tokens: int, seed: int, epoch: int) -> list[Indices]:
    """Return the batches of one epoch, in order of use; each example is in exactly one.

    The order is a function of the arguments alone. Examples are sorted by their longer side, nearly equal ones at
    random, and cut into batches, which are then shuffled. Sorting by one side or by the sum of both, with as much
    chance in it, wastes more: it is the longer side that fills the budget. An example longer than the budget is a
    batch of its own.
    """
    longest = _longest(lengths, batch_tokens)
    random = np.random.default_rng([seed, epoch])
    places = random.random(len(longest), dtype=np.float32)
    places *= np.maximum(np.float32(1), np.float32(_MIXING) * longest)
    places += longest
    batches = _cut(np.argsort(places, kind="stable"), longest, batch_tokens)
    return [batches[i] for i in random.permutation(len(batches))]


def fixed_batches(lengths: npt.ArrayLike, batch_tokens: int) -> list[Indices]:
    """Return batches from short to long, always the same: for validation, where no order has to be random."""
    longest = _longest(lengths, batch_tokens)
    sides = _as_sides(lengths)
    return _cut(np.lexsort([*sides.T, longest]), longest, batch_tokens)


def padding_share(lengths: npt.ArrayLike, batches: Sequence[npt.NDArray[np.integer]]) -> float:
    """Return which share of all positions in the batches, both sides counted, is padding: 0 to 1."""
    sides = _as_sides(lengths)
    padded = sum(len(batch) * int(sides[batch].max(axis=0).sum()) for batch in batches)
    real = sum(int(sides[batch].sum()) for batch in batches)
    return 1 - real / padded if padded else 0.0


def _as_sides(lengths: npt.ArrayLike) -> Lengths:
    """Return lengths as (n, sides)."""
    array = np.asarray(lengths, dtype=np.int32)
    return array[:, None] if array.ndim == 1 else array


def _longest(lengths: npt.ArrayLike, batch_tokens: int) -> Lengths:
    if batch_tokens < 1:
        raise UsageError(f"A batch needs room for at least 1 token, not {batch_tokens}.", "Set training.batch_tokens.")
    return np.asarray(_as_sides(lengths).max(axis=1, initial=0), dtype=np.int32)


def _cut(order: Indices, longest: Lengths, batch_tokens: int) -> list[Indices]:
    """Cut an order into batches, each as large as the budget allows."""
    batches = []
    start = 0
    while start < len(order):
        most = max(1, batch_tokens // max(1, int(longest[order[start]])))
        candidates = order[start : start + most]
        padded = np.maximum.accumulate(longest[candidates]) * np.arange(1, len(candidates) + 1, dtype=np.int64)
        size = max(1, int(np.searchsorted(padded, batch_tokens, side="right")))
        batches.append(candidates[:size])
        start += size
    return batches
