"""Sequences as an encoder reads them, in batches: of tokens, one text or two, or of vectors; and a task's examples of them.

    <start> text <end>                  segments 0 0 0
    <start> text <end> second <end>     segments 0 0 0 1 1

Vectors have no special tokens. Where sequences lie, in a corpus or in memory, makes no difference here. Knows no task.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.batching import Lengths
from regard.data.pipeline.corpus import Corpus, Ragged
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.batches import CorpusExamples, pad
from regard.tasks.task import Indices

Logits = npt.NDArray[np.float32]  # of one example: (N,), or (T, N) of its tokens or words
Flags = Sequence[bool] | npt.NDArray[np.int64]  # (N,), true or not


@dataclass(frozen=True)
class SequenceBatch:
    """inputs: ids (B, T), or vectors (B, T, F), padded behind, of `lengths` (B,).

    segments:  (B, T), to which text each token belongs; None where no sequence has a second one
    targets:   what is to be predicted, as the task has it; None where nothing is known. They stay where the processor is:
               what is counted of them need not be waited for
    """

    inputs: Tensor
    lengths: Tensor
    segments: Tensor | None = None
    targets: Tensor | None = None


class Rows(Protocol):
    """Rows of numbers, by their number: a column of a corpus, or a list."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any: ...


class Sequences(Protocol):
    """Encoded sequences, how long they are, (N,), special tokens counted, and of which the end was `cut` off."""

    lengths: Lengths
    cut: Flags

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        """Put some together, padded."""
        ...


class TokenSequences:
    """Sequences of tokens: `texts` and `texts_b` are ids without special tokens; an empty one of `texts_b` is none."""

    def __init__(self, texts: Rows, texts_b: Rows | None, tokenizer: Tokenizer, *, cut: Flags = ()) -> None:
        self.texts = texts
        self.texts_b = texts_b
        self.tokenizer = tokenizer
        self.cut = cut
        self.first_lengths: Lengths = row_lengths(texts) + np.int32(2)
        self.lengths = self.first_lengths
        if texts_b is not None and (further := row_lengths(texts_b)).any():
            self.lengths = self.first_lengths + further + (further > 0)

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        tokenizer = self.tokenizer
        rows = [self._row(index) for index in indices.tolist()]
        ids = pad(rows, tokenizer.pad_id, start=tokenizer.start_id, end=tokenizer.end_id)
        first, whole = (lengths[indices].astype(np.int64) for lengths in (self.first_lengths, self.lengths))
        segments = None
        if (first < whole).any():
            places = np.arange(ids.shape[1])
            second = (places >= first[:, None]) & (places < whole[:, None])
            segments = torch.from_numpy(second.astype(np.int64)).to(device)
        return SequenceBatch(torch.from_numpy(ids).to(device), torch.from_numpy(whole).to(device), segments)

    def _row(self, index: int) -> Any:
        """The ids of a sequence between its start and its last end token."""
        text = self.texts[index]
        if self.lengths[index] == self.first_lengths[index]:
            return text
        assert self.texts_b is not None
        return np.concatenate((text, (self.tokenizer.end_id,), self.texts_b[index]))


class VectorSequences:
    """Sequences of vectors: each row is (T, F), or the same numbers end to end as the corpus keeps their bits."""

    def __init__(self, rows: Rows, n_features: int, *, cut: Flags = ()) -> None:
        self.rows = rows
        self.n_features = n_features
        self.cut = cut
        lengths = row_lengths(rows) // n_features if isinstance(rows, Ragged) else row_lengths(rows)
        self.lengths: Lengths = lengths.astype(np.int32)

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        lengths = self.lengths[indices].astype(np.int64)
        vectors = np.zeros((len(indices), int(lengths.max()), self.n_features), np.float32)
        for row, index in enumerate(indices.tolist()):
            vectors[row, : lengths[row]] = self.vectors(index)
        return SequenceBatch(torch.from_numpy(vectors).to(device), torch.from_numpy(lengths).to(device))

    def vectors(self, row: int) -> npt.NDArray[np.float32]:
        """One sequence (T, F)."""
        found: npt.NDArray[np.float32] = self.rows[row].view(np.float32).reshape(-1, self.n_features)
        return found

    def segments(self, row: int, longest: int) -> list[slice]:
        """What of a sequence is read at once: about equal stretches of at most so many vectors."""
        length = int(self.lengths[row])
        edges = np.linspace(0, length, math.ceil(length / longest) + 1).astype(int).tolist()
        return [slice(start, end) for start, end in pairwise(edges)]

    def segmented(self, longest: int) -> "tuple[list[int], VectorSequences]":
        """All segments as sequences of their own, and the number of the sequence that each is of."""
        cut = [(row, segment) for row in range(len(self.rows)) for segment in self.segments(row, longest)]
        rows = [self.vectors(row)[segment] for row, segment in cut]
        return [row for row, _ in cut], VectorSequences(rows, self.n_features)


def row_lengths(rows: Rows) -> Lengths:
    """How many numbers each row has, (N,)."""
    lengths = rows.lengths if isinstance(rows, Ragged) else [len(rows[row]) for row in range(len(rows))]
    return np.asarray(lengths, np.int32)


class SequenceExamples(CorpusExamples):
    """Labelled sequences of a corpus, in batches under a budget of tokens.

    targets: from the numbers of examples, and the length T of the longest, to what is to be predicted of them.
    """

    def __init__(
        self,
        corpus: Corpus,
        files: Sequence[str],
        sequences: Sequences,
        *,
        targets: Callable[[Indices, int], Tensor],
        batch_tokens: int,
        seed: int,
    ) -> None:
        super().__init__(corpus, files, batch_tokens=batch_tokens, seed=seed)
        self.sequences = sequences
        self.targets = targets
        self.lengths = sequences.lengths

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        batch = self.sequences.batch(indices, device)
        return replace(batch, targets=self.targets(indices, batch.inputs.shape[1]))

    def text(self, row: int) -> str:
        """An example as it was written, a second text behind a bar; of vectors, where they come from."""
        columns = [self.corpus.ragged[name] for name in ("text", "text_b") if name in self.corpus.ragged]
        written = " | ".join(filter(None, (column.text(row) for column in columns)))
        return written or self.places(np.array([row]))[0]
