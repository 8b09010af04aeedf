"""Running text as a task's examples: segments of documents that a model reads whole, from its start to its end token.

A document longer than a segment may be is cut into segments of equal length, so that none is left with hardly any text
around a hidden token; no segment reaches over the end of a document. Knows no model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from regard.data.pipeline.corpus import Corpus, Integers
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.batches import CorpusExamples, pad, stream_locations
from regard.tasks.task import Indices

ENDS = 2  # the start and the end token of a segment
FIXED = 20  # the seed of what is hidden where nothing is learned: the same in every run, so that their scores compare


@dataclass(frozen=True)
class SegmentBatch:
    """ids (B, T) from the start to the end token, padded behind; their `lengths` (B,); `numbers` (B,) of the segments.

    They stay where the processor is, and what is hidden is drawn there, so that it is the same on every `device`.
    """

    ids: Indices
    lengths: Indices
    numbers: Indices
    device: torch.device

    @property
    def n_tokens(self) -> int:
        """How many tokens of text there are."""
        return int(self.lengths.sum()) - ENDS * len(self.lengths)

    def draws(self, *, anew: bool) -> Iterator[tuple[slice, np.random.Generator]]:
        """Yield rows, and what decides which of their tokens are hidden.

        anew: all rows together, by torch's generator, which the training loop seeds for each step. Else each row by the
        number of its segment, so that it does not matter what else is in the batch.
        """
        if anew:
            seed = int(torch.randint(2**62, ()))
            yield slice(0, len(self.ids)), np.random.default_rng(seed)
            return
        for row, number in enumerate(self.numbers.tolist()):
            yield slice(row, row + 1), np.random.default_rng([FIXED, number])

    def texts(self, rows: slice = slice(None)) -> list[Indices]:
        """All rows, or some, without their start and end tokens."""
        return [ids[1 : length - 1] for ids, length in zip(self.ids[rows], self.lengths[rows], strict=True)]


class SegmentExamples(CorpusExamples):
    """Segments of at most `longest` tokens between their start and end tokens, in batches under a budget of tokens."""

    def __init__(
        self,
        corpus: Corpus,
        files: Sequence[str],
        tokenizer: Tokenizer,
        *,
        longest: int,
        batch_tokens: int,
        seed: int,
    ) -> None:
        super().__init__(corpus, files, batch_tokens=batch_tokens, seed=seed)
        self.tokenizer = tokenizer
        self.longest = longest
        self.stream: Integers = corpus.ragged["ids"].values
        starts, lengths = _cut(_documents(corpus, tokenizer.end_id), longest, n_before=len(tokenizer.boundary))
        if corpus.facts["n_unknown"]:
            known = (self.stream != tokenizer.unknown_id) & (self.stream != tokenizer.end_id)
            counts = np.add.reduceat(known, starts, dtype=np.int64) if len(starts) else starts
            # Of a segment of unknown tokens alone there is nothing to guess.
            starts, lengths = starts[counts > 0], lengths[counts > 0]
        self.starts = starts
        self.lengths = (lengths + ENDS).astype(np.int32)

    @property
    def n_tokens(self) -> int:
        """How many tokens of text there are."""
        return int(self.lengths.sum()) - ENDS * len(self)

    def about_size(self) -> str:
        return f"{len(self):,} segments of at most {self.longest:,}"

    def batch(self, indices: Indices, device: torch.device) -> SegmentBatch:
        numbers = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[numbers].astype(np.int64)
        bounds = zip(self.starts[numbers].tolist(), (lengths - ENDS).tolist(), strict=True)
        rows = [self.stream[start : start + length] for start, length in bounds]
        ids = pad(rows, self.tokenizer.pad_id, start=self.tokenizer.start_id, end=self.tokenizer.end_id)
        return SegmentBatch(ids, lengths, numbers, device)

    def places(self, indices: Indices) -> list[str]:
        return stream_locations(self.corpus, self.files, self.starts[indices])


def _documents(corpus: Corpus, end_id: int) -> npt.NDArray[np.int64]:
    """The places of the end tokens in the stream: in front of every document and behind the last."""
    ids = corpus.ragged["ids"]
    firsts = ids.offsets[:-1][ids.lengths > 0]  # an end token is always the first of its row
    return np.asarray(firsts[ids.values[firsts] == end_id], dtype=np.int64)


def _cut(
    ends: npt.NDArray[np.int64], longest: int, *, n_before: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut what stands between the ends into as few equal segments as may be; return their starts and lengths.

    n_before: how many tokens from the end of a document on stand in front of the next
    """
    n_tokens = np.diff(ends) - n_before
    counts = -(-n_tokens // longest)
    document = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)  # of its document
    first, last = (place * n_tokens[document] // counts[document] for place in (nth, nth + 1))
    return ends[document] + n_before + first, last - first
