"""Pairs of sentences as a task's examples: encoded, batched under a budget of tokens, padded.

For every task that learns one sequence from another; knows no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data import batching
from regard.data.pairs.dataset import PairDataset, Vocabulary
from regard.data.pipeline.corpus import Corpus, Integers
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.task import Indices

N_EXAMPLES = 2  # of bad pairs that the report shows for each reason
Rows = Sequence[Sequence[int] | Integers]


@dataclass(frozen=True)
class PairBatch:
    """source (B, S) with its end token, of `source_lengths` (B,); target (B, T) from the start token to the end token."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor

    def teacher_forced(self) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
        """What a model reads, the tokens (B, T) that it is to predict, and the mask (B, T) without padding."""
        read, targets = self.target[:, :-1], self.target[:, 1:]
        mask = torch.arange(targets.shape[1], device=targets.device) < self.target_lengths[:, None]
        return (self.source, self.source_lengths, read), targets, mask


class PairExamples:
    """Encoded pairs, in batches under a budget of tokens."""

    def __init__(
        self, corpus: Corpus, files: Sequence[str], vocabulary: Vocabulary, *, batch_tokens: int, seed: int
    ) -> None:
        self.corpus = corpus
        self.files = files
        self.vocabulary = vocabulary
        self.batch_tokens = batch_tokens
        self.seed = seed
        # One more on each side: the end token of the source, the start or the end token of the target.
        sides = corpus.ragged["source"].lengths, corpus.ragged["target"].lengths
        self.lengths = np.stack(sides, axis=1, dtype=np.int32, casting="same_kind") + np.int32(1)

    def __len__(self) -> int:
        return len(self.corpus)

    def order(self, epoch: int) -> list[Indices]:
        return batching.plan(self.lengths, batch_tokens=self.batch_tokens, seed=self.seed, epoch=epoch)

    def fixed_order(self) -> list[Indices]:
        return batching.fixed_batches(self.lengths, self.batch_tokens)

    def batch(self, indices: Indices, device: torch.device) -> PairBatch:
        sources, targets = self.corpus.ragged["source"].take(indices), self.corpus.ragged["target"].take(indices)
        return pair_batch(sources, targets, self.vocabulary, device)

    def places(self, indices: Indices) -> list[str]:
        files, lines = self.corpus.numbers["file"], self.corpus.numbers["line"]
        return [f"{self.files[files[index]]}:{lines[index]}" for index in indices]

    def texts(self, n: int) -> tuple[list[str], list[str]]:
        """The first n pairs as they were written; for validation corpora, which keep their text."""
        columns = self.corpus.ragged["source_text"], self.corpus.ragged["target_text"]
        source, target = ([column.text(row) for row in range(min(n, len(self)))] for column in columns)
        return source, target


def pair_batch(sources: Rows, targets: Rows, vocabulary: Vocabulary, device: torch.device) -> PairBatch:
    """Put encoded pairs together, padded behind, with their start and end tokens."""
    source, source_lengths = _padded(sources, vocabulary.source, start=False)
    target, target_lengths = _padded(targets, vocabulary.target, start=True)
    return PairBatch(*(tensor.to(device) for tensor in (source, source_lengths, target, target_lengths)))


def _padded(rows: Rows, tokenizer: Tokenizer, *, start: bool) -> tuple[Tensor, Tensor]:
    """Return ids (B, T), each row with the end token behind and, if asked for, the start token in front.

    The lengths (B,) count the end token, but not the start token.
    """
    lengths = np.fromiter((len(ids) + 1 for ids in rows), np.int64, len(rows))
    first = 1 if start else 0
    padded = np.full((len(rows), first + int(lengths.max())), tokenizer.pad_id, np.int64)
    if start:
        padded[:, 0] = tokenizer.start_id
    for row, ids in enumerate(rows):
        padded[row, first : first + len(ids)] = ids
        padded[row, first + len(ids)] = tokenizer.end_id
    return torch.from_numpy(padded), torch.from_numpy(lengths)


def pair_facts(data: PairDataset, train: PairExamples) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of the data."""
    order = train.order(0)
    held_out = f"{data.n_held_out:,} held out by source sentence" if data.n_held_out else f"{len(data.valid):,} pairs"
    vocabulary = data.vocabulary
    sizes = f"{vocabulary.source.vocab_size:,} shared"
    if not vocabulary.shared:
        sizes = f"{vocabulary.source.vocab_size:,} source, {vocabulary.target.vocab_size:,} target"
    facts = [
        ("training", f"{len(data.train):,} pairs"),
        ("validation", held_out),
        ("vocabulary", f"{sizes} tokens ({vocabulary.source.kind})"),
        ("batches", f"{len(order):,} per epoch, {batching.padding_share(train.lengths, order):.1%} padding"),
    ]
    facts += data.notes
    if not vocabulary.target.lossless:
        facts.append(("lost", vocabulary.target.loss))
    return tuple(facts)
