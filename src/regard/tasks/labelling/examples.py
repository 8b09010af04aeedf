"""Sequences as an encoder reads them, in batches: of tokens, one text or two, or of vectors; and a task's examples of them.

    <start> text <end>                  segments 0 0 0
    <start> text <end> second <end>     segments 0 0 0 1 1

Vectors have no special tokens. Where sequences lie, in a corpus or in memory, makes no difference here. Knows no task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data import batching
from regard.data.batching import Lengths
from regard.data.pipeline.corpus import Corpus, Ragged
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.task import Indices

Outputs = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SequenceBatch:
    """inputs: ids (B, T), or vectors (B, T, F), padded behind, of `lengths` (B,).

    segments:  (B, T), to which text each token belongs; None where no sequence has a second one
    labels:    what is asked, as the task has it; None where nothing is known. They stay where the processor is: what is
               counted of them need not be waited for
    """

    inputs: Tensor
    lengths: Tensor
    segments: Tensor | None
    labels: Tensor | None = None


class Rows(Protocol):
    """Rows of numbers, by their number: a column of a corpus, or a list."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any: ...


class Sequences(Protocol):
    """Encoded sequences and how long they are, (N,), special tokens counted."""

    lengths: Lengths

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        """Put some together, padded."""
        ...


class TokenSequences:
    """Sequences of tokens: `texts` and `texts_b` are ids without special tokens; an empty one of `texts_b` is none."""

    def __init__(self, texts: Rows, texts_b: Rows | None, tokenizer: Tokenizer) -> None:
        self.texts = texts
        self.texts_b = texts_b
        self.tokenizer = tokenizer
        self.lengths: Lengths = _row_lengths(texts) + np.int32(2)
        if texts_b is not None:
            further = _row_lengths(texts_b)
            self.lengths += further + (further > 0)

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        lengths = self.lengths[indices].astype(np.int64)
        ids = np.full((len(indices), int(lengths.max())), self.tokenizer.pad_id, np.int64)
        segments = np.zeros_like(ids)
        start, end = self.tokenizer.start_id, self.tokenizer.end_id
        for row, index in enumerate(indices.tolist()):
            text = self.texts[index]
            between = len(text) + 1
            ids[row, 0], ids[row, 1:between], ids[row, between] = start, text, end
            last = int(lengths[row]) - 1
            if self.texts_b is not None and last > between:
                ids[row, between + 1 : last], ids[row, last] = self.texts_b[index], end
                segments[row, between + 1 : last + 1] = 1
        inputs, counts = (torch.from_numpy(array).to(device) for array in (ids, lengths))
        return SequenceBatch(inputs, counts, torch.from_numpy(segments).to(device) if segments.any() else None)


class VectorSequences:
    """Sequences of vectors: each row is (T, F), or the same numbers end to end as the corpus keeps their bits."""

    def __init__(self, rows: Rows, n_features: int) -> None:
        self.rows = rows
        self.n_features = n_features
        end_to_end = _row_lengths(rows) // n_features if isinstance(rows, Ragged) else _row_lengths(rows)
        self.lengths: Lengths = end_to_end.astype(np.int32)

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        lengths = self.lengths[indices].astype(np.int64)
        vectors = np.zeros((len(indices), int(lengths.max()), self.n_features), np.float32)
        for row, index in enumerate(indices.tolist()):
            vectors[row, : lengths[row]] = self.rows[index].view(np.float32).reshape(-1, self.n_features)
        return SequenceBatch(torch.from_numpy(vectors).to(device), torch.from_numpy(lengths).to(device), None)


def _row_lengths(rows: Rows) -> Lengths:
    lengths = rows.lengths if isinstance(rows, Ragged) else [len(rows[row]) for row in range(len(rows))]
    return np.asarray(lengths, np.int32)


def corpus_sequences(corpus: Corpus, tokenizer: Tokenizer | None) -> Sequences:
    """The sequences of a corpus of labelled text, or without a tokenizer of vectors."""
    if tokenizer is None:
        return VectorSequences(corpus.ragged["vectors"], int(corpus.facts["n_features"]))
    return TokenSequences(corpus.ragged["ids"], corpus.ragged.get("ids_b"), tokenizer)


class SequenceExamples:
    """Labelled sequences of a corpus, in batches under a budget of tokens.

    labels: from the numbers of examples, and the length T of the longest, to what is asked of them.
    """

    def __init__(
        self,
        corpus: Corpus,
        files: Sequence[str],
        sequences: Sequences,
        *,
        labels: Callable[[Indices, int], Tensor],
        batch_tokens: int,
        seed: int,
    ) -> None:
        self.corpus = corpus
        self.files = files
        self.sequences = sequences
        self.labels = labels
        self.batch_tokens = batch_tokens
        self.seed = seed

    def __len__(self) -> int:
        return len(self.corpus)

    def order(self, epoch: int) -> list[Indices]:
        return batching.plan(self.sequences.lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def fixed_order(self) -> list[Indices]:
        return batching.fixed_batches(self.sequences.lengths, self.batch_tokens)

    def batch(self, indices: Indices, device: torch.device) -> SequenceBatch:
        batch = self.sequences.batch(indices, device)
        return replace(batch, labels=self.labels(indices, batch.inputs.shape[1]))

    def places(self, indices: Indices) -> list[str]:
        files, lines = self.corpus.numbers["file"], self.corpus.numbers["line"]
        return [f"{self.files[files[index]]}:{lines[index]}" for index in indices]

    def text(self, row: int) -> str:
        """An example as it was written, a second text behind a bar; of vectors, where they come from."""
        columns = [self.corpus.ragged[name] for name in ("text", "text_b") if name in self.corpus.ragged]
        written = " | ".join(filter(None, (column.text(row) for column in columns)))
        return written or self.places(np.array([row]))[0]


def read_in_batches(
    sequences: Sequences,
    read: Callable[[SequenceBatch], Tensor],
    *,
    batch_tokens: int,
    device: torch.device,
    progress: Callable[[int], None] | None = None,
) -> list[Outputs]:
    """What is read of each sequence, (N,) or (T, N), in their order; what is said of padding is left out.

    Sequences of like length are read together. progress: called with how many are done.
    """
    found: dict[int, Outputs] = {}
    for indices in batching.fixed_batches(sequences.lengths, batch_tokens):
        batch = sequences.batch(indices, device)
        with torch.inference_mode():
            outputs = read(batch).float().cpu().numpy()
        for index, length, own in zip(indices.tolist(), sequences.lengths[indices].tolist(), outputs, strict=True):
            found[index] = own if own.ndim == 1 else own[:length].copy()  # a view would keep the padding
        if progress is not None:
            progress(len(found))
    return [found[index] for index in range(len(found))]
