"""Batches: of like lengths, padded; where examples come from, reading in batches, the mean loss over a corpus."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.data import batching
from regard.data.batching import Lengths
from regard.data.pipeline.corpus import Corpus, Integers
from regard.tasks.offers import device_of
from regard.tasks.options import Count, no_count
from regard.tasks.task import Examples, Indices

Rows = Sequence[Sequence[int] | Integers]
Floats = npt.NDArray[np.float32]
Loss = Callable[[Any], tuple[Tensor, float]]  # from a batch to its summed loss and the weight of it


def pad(rows: Rows, pad_id: int, *, start: int | Sequence[int] = (), end: int | None = None) -> npt.NDArray[np.int64]:
    """Return ids (B, T), padded behind, each row between the start tokens and the end token where there are such."""
    before = (start,) if isinstance(start, int) else tuple(start)
    first, last = len(before), int(end is not None)
    width = max((len(row) for row in rows), default=0) + first + last
    ids = np.full((len(rows), width), pad_id, np.int64)
    ids[:, :first] = before
    for number, row in enumerate(rows):
        ids[number, first : first + len(row)] = row
        if end is not None:
            ids[number, first + len(row)] = end
    return ids


def padded(rows: Rows, pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids (B, T), padded behind, and their lengths (B,)."""
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return torch.from_numpy(pad(rows, pad_id)).to(device), lengths


class CorpusExamples:
    """Examples of an encoded corpus, in batches of like `lengths`, (N,) or (N, 2) of pairs, under a budget of tokens."""

    lengths: Lengths

    def __init__(self, corpus: Corpus, files: Sequence[str], *, batch_tokens: int, seed: int) -> None:
        self.corpus = corpus
        self.files = files
        self.batch_tokens = batch_tokens
        self.seed = seed

    def __len__(self) -> int:
        return len(self.lengths)

    def order(self, epoch: int) -> list[Indices]:
        return batching.plan(self.lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def fixed_order(self) -> list[Indices]:
        return batching.fixed_batches(self.lengths, self.batch_tokens)

    def size(self, indices: Indices) -> int:
        return len(indices) * int(self.lengths[indices].max())

    def places(self, indices: Indices) -> list[str]:
        return locations(self.corpus, self.files, indices)

    def about_batches(self) -> str:
        """What the report says of the batches of an epoch."""
        order = self.order(0)
        return f"{len(order):,} per epoch, {batching.padding_share(self.lengths, order):.1%} padding"


def fixed_batches(model: nn.Module, examples: Examples) -> Iterator[Any]:
    """All examples in batches, where the model is."""
    device = device_of(model)
    return (examples.batch(indices, device) for indices in examples.fixed_order())


def locations(corpus: Corpus, files: Sequence[str], rows: npt.ArrayLike) -> list[str]:
    """Where rows of a corpus come from, as FILE:LINE."""
    file, line = corpus.numbers["file"], corpus.numbers["line"]
    return [f"{files[file[row]]}:{line[row]}" for row in np.asarray(rows).tolist()]


def stream_locations(corpus: Corpus, files: Sequence[str], starts: npt.ArrayLike) -> list[str]:
    """Where tokens of a stream come from: behind which line of a file, and how many tokens behind it."""
    offsets = corpus.ragged["ids"].offsets
    rows = np.searchsorted(offsets, starts, side="right") - 1
    behind = (np.asarray(starts) - offsets[rows]).tolist()
    places = zip(locations(corpus, files, rows), behind, strict=True)
    return [f"{place} + {count:,} tokens" if count > 1 else place for place, count in places]  # 1: the document's start


def read_in_batches(
    batches: Iterable[Indices],
    read: Callable[[Indices], Iterable[Floats]],
    *,
    progress: Count = no_count,
) -> list[Floats]:
    """What a model says of each of N examples, in the order of their numbers.

    batches:   the numbers of examples that are read together, from 0 to below N, each once
    read:      from such numbers to what is said of each; without gradients
    progress:  told how many examples are read
    """
    found: dict[int, Floats] = {}
    with torch.inference_mode():
        for numbers in batches:
            found |= zip(numbers.tolist(), read(numbers), strict=True)
            progress(len(found))
    return [found[number] for number in range(len(found))]


def summed_loss(loss: Loss, batches: Iterable[Any], *, progress: Count = no_count) -> tuple[float, float]:
    """The sum of the losses of all batches, and their weight; `progress` is told the weight so far."""
    total, weight = 0.0, 0.0
    with torch.inference_mode():
        for batch in batches:
            summed, own = loss(batch)
            total, weight = total + float(summed), weight + own
            progress(int(weight))
    return total, weight


def mean_loss(loss: Loss, batches: Iterable[Any]) -> float:
    """The loss per unit of weight over all batches: never a mean of means; NaN without any."""
    total, weight = summed_loss(loss, batches)
    return total / weight if weight else math.nan
