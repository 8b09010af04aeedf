"""A decoder that writes on past its context: what it has read first is forgotten, half a context at a time.

A decoder with learned positions has read all it can when they are used up. Then each row that is full reads the newer
half of what it has read anew, from position 0 on, and goes on. Reading anew at every token would give each the longest
past, at the cost of a whole context a token; by halves it is two tokens a token, and the past is at least half a context.
"""

from dataclasses import dataclass
from typing import Generic, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decoding.protocol import Decoder, StateType


@dataclass(frozen=True)
class SlidingState(Generic[StateType]):
    """The inner state, and what each row has read since it last forgot.

    read:     (R, L), padded behind
    lengths:  (R,), how many of them are real
    """

    inner: StateType
    n_sentences: int
    read: Tensor
    lengths: Tensor

    def reorder(self, parents: Tensor) -> Self:
        return type(self)(self.inner.reorder(parents), self.n_sentences, self.read[parents], self.lengths[parents])

    def keep(self, sentences: Tensor) -> Self:
        width = len(self.lengths) // self.n_sentences
        rows = (sentences[:, None] * width + torch.arange(width, device=sentences.device)).flatten()
        return type(self)(self.inner.keep(sentences), len(sentences), self.read[rows], self.lengths[rows])

    def join(self, other: Self) -> Self:
        longest = max(self.read.shape[1], other.read.shape[1])
        read = [F.pad(one.read, (0, longest - one.read.shape[1])) for one in (self, other)]
        return type(self)(
            self.inner.join(other.inner),
            self.n_sentences + other.n_sentences,
            torch.cat(read),
            torch.cat([self.lengths, other.lengths]),
        )


class Sliding(Generic[StateType]):
    """A decoder without end over one that starts from nothing (`start(n_sentences)`) and reads at most `limit` tokens."""

    def __init__(self, decoder: Decoder[StateType], limit: int, device: torch.device | str = "cpu") -> None:
        self.decoder = decoder
        self.limit = limit
        self.device = device
        self.kept = max(1, limit // 2)

    def start(self, n_sentences: int) -> SlidingState[StateType]:
        nothing = torch.zeros(n_sentences, 0, dtype=torch.long, device=self.device)
        return SlidingState(self.decoder.start(n_sentences), n_sentences, nothing, nothing.sum(1))

    def step(
        self, state: SlidingState[StateType], ids: Tensor, counts: Tensor | None = None
    ) -> tuple[Tensor, SlidingState[StateType]]:
        """As the decoder's own; rows that would pass the limit forget first. A row's output depends on no other row."""
        new = torch.full_like(state.lengths, ids.shape[1]) if counts is None else counts
        read, lengths = _appended(state.read, state.lengths, ids, new)
        if read.shape[1] <= self.limit:
            logits, inner = self.decoder.step(state.inner, ids, counts)
            return logits, SlidingState(inner, state.n_sentences, read, lengths)
        left = torch.where(lengths > self.limit, new.clamp(min=self.kept), lengths)
        read = _newest(read, lengths, left)
        width = len(left) // state.n_sentences
        fresh = self.decoder.start(state.n_sentences).reorder(torch.arange(len(left), device=ids.device) // width)
        logits, inner = self.decoder.step(fresh, read, None if bool((left == left[0]).all()) else left)
        return logits, SlidingState(inner, state.n_sentences, read, left)


def _appended(read: Tensor, lengths: Tensor, ids: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Write `new[r]` of the ids (R, T) behind the `lengths[r]` real ones of (R, L); return both, grown."""
    after = lengths + new
    grown = F.pad(read, (0, int(after.max()) - read.shape[1]))
    steps = torch.arange(ids.shape[1], device=ids.device)
    rows, columns = (steps < new[:, None]).nonzero(as_tuple=True)
    grown[rows, lengths[rows] + columns] = ids[rows, columns]
    return grown, after


def _newest(read: Tensor, lengths: Tensor, left: Tensor) -> Tensor:
    """The last `left[r]` of the `lengths[r]` real ones of (R, L), padded behind."""
    places = torch.arange(int(left.max()), device=read.device) + (lengths - left)[:, None]
    return read.gather(1, places.clamp(max=read.shape[1] - 1))
