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
from regard.data.pairs.rows import Pair
from regard.data.pipeline.corpus import Corpus
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.batches import CorpusExamples, Rows, pad
from regard.tasks.task import Indices


@dataclass(frozen=True)
class PairBatch:
    """source (B, S) with its end token, of `source_lengths` (B,); target (B, T) from the start token to the end token.

    n_given: how many tokens behind the start token stand in front of every target, and are not predicted
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    n_given: int = 0

    def teacher_forced(self) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
        """What a model reads, the tokens (B, T) that it is to predict, and the mask (B, T) without padding."""
        read, targets = self.target[:, :-1], self.target[:, 1:]
        places = torch.arange(targets.shape[1], device=targets.device)
        mask = places < self.target_lengths[:, None]
        if self.n_given:
            mask &= places >= self.n_given
        return (self.source, self.source_lengths, read), targets, mask


class PairExamples(CorpusExamples):
    """Encoded pairs, in batches under a budget of tokens."""

    def __init__(
        self, corpus: Corpus, files: Sequence[str], vocabulary: Vocabulary, *, batch_tokens: int, seed: int
    ) -> None:
        super().__init__(corpus, files, batch_tokens=batch_tokens, seed=seed)
        self.vocabulary = vocabulary
        # One more on each side: the end token of the source, the start or the end token of the target.
        sides = corpus.ragged["source"].lengths, corpus.ragged["target"].lengths
        around = np.array([1 + len(vocabulary.source.prefix), 1 + len(vocabulary.target.prefix)], np.int32)
        self.lengths = np.stack(sides, axis=1, dtype=np.int32, casting="same_kind") + around

    def batch(self, indices: Indices, device: torch.device) -> PairBatch:
        sources, targets = self.corpus.ragged["source"].take(indices), self.corpus.ragged["target"].take(indices)
        return pair_batch(sources, targets, self.vocabulary, device)

    def texts(self, n: int) -> tuple[list[str], list[str]]:
        """The first n pairs as they were written; for validation corpora, which keep their text."""
        rows = np.arange(min(n, len(self)))
        return self.inputs(rows), self.references(rows)[0]

    def inputs(self, indices: Indices) -> list[str]:
        """Some sources as they were written, likewise."""
        return [self.corpus.ragged["source_text"].text(row) for row in indices.tolist()]

    def references(self, indices: Indices) -> list[list[str]]:
        """What these are to become."""
        return [[self.corpus.ragged["target_text"].text(row) for row in indices.tolist()]]


class PairList:
    """Pairs in memory, as those of a test set, in batches under a budget of tokens."""

    def __init__(self, pairs: Sequence[Pair], vocabulary: Vocabulary, *, batch_tokens: int) -> None:
        self.pairs = pairs
        self.vocabulary = vocabulary
        self.batch_tokens = batch_tokens
        self.sources = vocabulary.source.encode_batch([pair.source for pair in pairs])
        self.targets = vocabulary.target.encode_batch([pair.target for pair in pairs])
        around = [1 + len(vocabulary.source.prefix), 1 + len(vocabulary.target.prefix)]
        sides = [[len(source), len(target)] for source, target in zip(self.sources, self.targets, strict=True)]
        self.lengths = np.array(sides, np.int32).reshape(-1, 2) + np.array(around, np.int32)

    def __len__(self) -> int:
        return len(self.pairs)

    def order(self, epoch: int) -> list[Indices]:
        return self.fixed_order()

    def fixed_order(self) -> list[Indices]:
        return batching.fixed_batches(self.lengths, self.batch_tokens)

    def size(self, indices: Indices) -> int:
        return len(indices) * int(self.lengths[indices].max())

    def batch(self, indices: Indices, device: torch.device) -> PairBatch:
        rows = indices.tolist()
        return pair_batch(
            [self.sources[row] for row in rows], [self.targets[row] for row in rows], self.vocabulary, device
        )

    def places(self, indices: Indices) -> list[str]:
        return [f"{self.pairs[row].file}:{self.pairs[row].line}" for row in indices.tolist()]

    def inputs(self, indices: Indices) -> list[str]:
        """Some sources, as they are given to be translated."""
        return [self.pairs[row].source for row in indices.tolist()]

    def references(self, indices: Indices) -> list[list[str]]:
        """What these are to become."""
        return [[self.pairs[row].target for row in indices.tolist()]]


def pair_batch(sources: Rows, targets: Rows, vocabulary: Vocabulary, device: torch.device) -> PairBatch:
    """Put encoded pairs together, padded behind, with their start and end tokens; the lengths count the end token."""
    read, written = vocabulary.source, vocabulary.target
    n_read, n_given = 1 + len(read.prefix), len(written.prefix)
    arrays = (
        pad(sources, read.pad_id, start=read.prefix, end=read.end_id),
        np.fromiter((len(ids) + n_read for ids in sources), np.int64, len(sources)),
        pad(targets, written.pad_id, start=(written.start_id, *written.prefix), end=written.end_id),
        np.fromiter((len(ids) + n_given + 1 for ids in targets), np.int64, len(targets)),
    )
    source, source_lengths, target, target_lengths = (torch.from_numpy(array).to(device) for array in arrays)
    return PairBatch(source, source_lengths, target, target_lengths, n_given)


def source_row(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """What an encoder reads of an encoded source: between what stands in front of every text, and the end token."""
    return [*tokenizer.prefix, *ids, tokenizer.end_id]


def pair_facts(data: PairDataset, train: PairExamples) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of the data."""
    held_out = f"{data.n_held_out:,} held out by source sentence" if data.n_held_out else f"{len(data.valid):,} pairs"
    vocabulary = data.vocabulary
    sizes = f"{vocabulary.source.vocab_size:,} shared"
    if not vocabulary.shared:
        sizes = f"{vocabulary.source.vocab_size:,} source, {vocabulary.target.vocab_size:,} target"
    facts = [
        ("training", f"{len(data.train):,} pairs"),
        ("validation", held_out),
        ("vocabulary", f"{sizes} tokens ({vocabulary.source.kind})"),
        ("batches", train.about_batches()),
    ]
    facts += data.notes
    if vocabulary.target.loss:
        facts.append(("tokenizer loss", vocabulary.target.loss))
    return tuple(facts)
