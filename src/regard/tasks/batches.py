"""Batches: padding, where examples come from, reading in batches, the mean loss over a corpus; for every task."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.pipeline.corpus import Corpus, Integers

Rows = Sequence[Sequence[int] | Integers]
Floats = npt.NDArray[np.float32]
Loss = Callable[[Any], tuple[Tensor, float]]  # from a batch to its summed loss and the weight of it


def pad(rows: Rows, pad_id: int, *, start: int | None = None, end: int | None = None) -> npt.NDArray[np.int64]:
    """Return ids (B, T), padded behind, each row between the start and the end token where there are such."""
    first, last = int(start is not None), int(end is not None)
    width = max((len(row) for row in rows), default=0) + first + last
    ids = np.full((len(rows), width), pad_id, np.int64)
    if start is not None:
        ids[:, 0] = start
    for number, row in enumerate(rows):
        ids[number, first : first + len(row)] = row
        if end is not None:
            ids[number, first + len(row)] = end
    return ids


def padded(rows: Rows, pad_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids (B, T), padded behind, and their lengths (B,)."""
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return torch.from_numpy(pad(rows, pad_id)).to(device), lengths


def locations(corpus: Corpus, files: Sequence[str], rows: npt.ArrayLike) -> list[str]:
    """Where rows of a corpus come from, as FILE:LINE."""
    file, line = corpus.numbers["file"], corpus.numbers["line"]
    return [f"{files[file[row]]}:{line[row]}" for row in np.asarray(rows).tolist()]


def read_in_batches(
    batches: Iterable[npt.NDArray[np.int64]],
    read: Callable[[npt.NDArray[np.int64]], Iterable[Floats]],
    *,
    progress: Callable[[int], None] = lambda done: None,
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


def summed_loss(
    loss: Loss, batches: Iterable[Any], *, progress: Callable[[int], None] = lambda done: None
) -> tuple[float, float]:
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
