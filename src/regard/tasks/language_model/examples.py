"""Running text as a task's examples: windows of one length over a stream of tokens, without gaps and without padding.

A window is known by the place in the stream of the first token that it reads. Each epoch cuts the stream at other
places, and learns every token of it once. Knows no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.pipeline.corpus import Corpus, Integers
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.batches import pad, stream_locations
from regard.tasks.task import Indices


@dataclass(frozen=True)
class WindowBatch:
    """ids (B, T) and what follows each of them, `targets` (B, T).

    mask:       (B, T), which of them are real and to be predicted: the ends of the stream may be shorter than a window, and
                what stands in front of every document is given; None for all
    documents:  (B, T), which document of its window each token belongs to; None where no window has several
    """

    ids: Tensor
    targets: Tensor
    mask: Tensor | None
    documents: Tensor | None


class WindowExamples:
    """Windows of `context` tokens over an encoded corpus, in batches under a budget of tokens."""

    def __init__(
        self, corpus: Corpus, files: Sequence[str], *, tokenizer: Tokenizer, context: int, batch_tokens: int, seed: int
    ) -> None:
        self.corpus = corpus
        self.files = files
        # Before the first document there is none whose end would have to be read.
        self._skipped = len(tokenizer.boundary) - len(tokenizer.opening)
        self.stream: Integers = corpus.ragged["ids"].values[self._skipped :]
        self.end_id = tokenizer.end_id
        self.begin_id = tokenizer.opening[0]
        # What stands in front of every document is given, and not predicted; but for the end of the one before.
        self.given = [id for id in tokenizer.prefix if id != tokenizer.end_id]
        self._last = len(self.stream) - 1
        n_given = int(np.isin(self.stream[1:], self.given).sum()) if self.given else 0
        self.n_tokens = self._last - n_given  # which are predicted
        self.context = context
        self.batch_size = max(1, batch_tokens // context)
        self.seed = seed

    def __len__(self) -> int:
        """How many windows there are."""
        return -(-self._last // self.context)

    def about_size(self) -> str:
        return f"{self.corpus.facts['n_bytes']:,} bytes"

    def about_batches(self) -> str:
        return f"{len(self.order(0)):,} per epoch, {self.batch_size:,} windows of {self.context:,} tokens"

    def order(self, epoch: int) -> list[Indices]:
        random = np.random.default_rng([self.seed, epoch])
        # The first window begins before the stream, and is cut to what lies inside it.
        first = int(random.integers(*self._shifts())) - self.context
        starts = np.arange(first, self._last, self.context, dtype=np.int64)
        return self._batches(random.permutation(starts))

    def _shifts(self) -> tuple[int, int]:
        """From where to below where the first window may end, so that every epoch has equally many windows.

        With a shift below the rest of the last window there is one window more than with others: the larger half is taken.
        """
        rest = self._last % self.context
        return (1, rest) if rest > self.context / 2 and rest > 1 else (max(rest, 1), max(self.context, 2))

    def fixed_order(self) -> list[Indices]:
        return self._batches(np.arange(0, self._last, self.context, dtype=np.int64))

    def _batches(self, starts: Indices) -> list[Indices]:
        return [starts[first : first + self.batch_size] for first in range(0, len(starts), self.batch_size)]

    def batch(self, indices: Indices, device: torch.device) -> WindowBatch:
        rows = [self.stream[max(0, start) : start + self.context + 1] for start in indices.tolist()]
        lengths = np.array([len(row) - 1 for row in rows])
        whole = torch.from_numpy(pad(rows, self.end_id)).to(device)
        ids, targets = whole[:, :-1], whole[:, 1:]
        mask = None
        if lengths.min() < lengths.max():
            mask = torch.arange(ids.shape[1], device=device) < torch.from_numpy(lengths).to(device)[:, None]
        if self.given:
            predicted = ~torch.isin(targets, torch.tensor(self.given, device=device))
            mask = predicted if mask is None else mask & predicted
        begins = ids == self.begin_id
        documents = begins.cumsum(1) if bool(begins[:, 1:].any()) else None
        return WindowBatch(ids, targets, mask, documents)

    def size(self, indices: Indices) -> int:
        return len(indices) * self.context

    def places(self, indices: Indices) -> list[str]:
        return stream_locations(self.corpus, self.files, np.maximum(indices, 0) + self._skipped)
