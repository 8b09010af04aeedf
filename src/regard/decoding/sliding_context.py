"""Sliding context: a decoder that generates beyond its context length, forgetting what it read first by half a context.

A decoder with learned positions has read all it can when they are used up. Then each sentence that is full reads the newer
half of what it has read anew, from position 0 on, and goes on; the others go on as they are. Reading anew at every token
would give each the longest past, at the cost of a whole context per token; by halves it is two tokens per token, and the
past is at least half a context.
"""

from dataclasses import dataclass
from typing import Generic, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decoding.protocol import Decoder, StateType
from regard.parts.decoder_state import rows_of


@dataclass(frozen=True)
class SlidingState(Generic[StateType]):
    """The inner state, and what each row has read since it last forgot. Rows of a sentence have read equally much.

    read:     (R, L), padded before, so that what is read next stands behind
    lengths:  (R,), how many of them are real
    most:     no row has read more; a plain number, which needs no look at a device
    """

    inner: StateType
    n_sentences: int
    read: Tensor
    lengths: Tensor
    most: int

    @property
    def bytes_per_token(self) -> int:
        """How much larger each token that a row reads makes the state."""
        return int(getattr(self.inner, "bytes_per_token", 0))

    def reorder(self, parents: Tensor) -> Self:
        inner = self.inner.reorder(parents)
        return type(self)(inner, self.n_sentences, self.read[parents], self.lengths[parents], self.most)

    def keep(self, sentences: Tensor) -> Self:
        rows = rows_of(sentences, len(self.lengths) // self.n_sentences)
        inner = self.inner.keep(sentences)
        return type(self)(inner, len(sentences), self.read[rows], self.lengths[rows], self.most)

    def join(self, other: Self) -> Self:
        longest = max(self.read.shape[1], other.read.shape[1])
        read = [F.pad(one.read, (longest - one.read.shape[1], 0)) for one in (self, other)]
        return type(self)(
            self.inner.join(other.inner),
            self.n_sentences + other.n_sentences,
            torch.cat(read),
            torch.cat([self.lengths, other.lengths]),
            max(self.most, other.most),
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
        return SlidingState(self.decoder.start(n_sentences), n_sentences, nothing, nothing.sum(1), 0)

    def step(
        self, state: SlidingState[StateType], ids: Tensor, counts: Tensor | None = None
    ) -> tuple[Tensor, SlidingState[StateType]]:
        """As the decoder's own; sentences that would pass the limit forget first. None depends on any other."""
        most = state.most + ids.shape[1]
        if most > self.limit:  # rows that have left, or padding, may have made it so
            most = int((state.lengths + (ids.shape[1] if counts is None else counts)).max())
        if most <= self.limit:
            return self._read_on(state, ids, counts, most)
        width = len(ids) // state.n_sentences
        new = torch.full_like(state.lengths, ids.shape[1]) if counts is None else counts
        is_full = (state.lengths + new)[::width] > self.limit  # (N,)
        full, others = is_full.nonzero()[:, 0], (~is_full).nonzero()[:, 0]
        rows = rows_of(full, width)
        logits, after = self._read_again(state.keep(full), ids[rows], new[rows])
        if not len(others):
            return logits, after
        rows = rows_of(others, width)
        other_logits, other_state = self.step(state.keep(others), ids[rows], None if counts is None else counts[rows])
        back = torch.cat([full, others]).argsort()
        return torch.cat([logits, other_logits])[rows_of(back, width)], after.join(other_state).keep(back)

    def _read_on(
        self, state: SlidingState[StateType], ids: Tensor, counts: Tensor | None, most: int
    ) -> tuple[Tensor, SlidingState[StateType]]:
        logits, inner = self.decoder.step(state.inner, ids, counts)
        read, lengths = _appended(state.read, state.lengths, ids, counts)
        return logits, SlidingState(inner, state.n_sentences, read[:, -most:], lengths, most)

    def _read_again(
        self, state: SlidingState[StateType], ids: Tensor, counts: Tensor
    ) -> tuple[Tensor, SlidingState[StateType]]:
        """Read the newer half, and at least all that is new, from the beginning."""
        read, _ = _appended(state.read, state.lengths, ids, counts)
        left = counts.clamp(min=self.kept)
        most, width = int(left.max()), len(ids) // state.n_sentences
        read = read[:, -most:]
        fresh = self.decoder.start(state.n_sentences).reorder(
            torch.arange(len(ids), device=ids.device) // width  # one row per sentence becomes `width`
        )
        places = torch.arange(most, device=ids.device) + (most - left)[:, None]  # padding goes behind
        uneven = bool((left < most).any())
        logits, inner = self.decoder.step(fresh, read.gather(1, places.clamp(max=most - 1)), left if uneven else None)
        return logits, SlidingState(inner, state.n_sentences, read, left, most)


def _appended(read: Tensor, lengths: Tensor, ids: Tensor, counts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Put ids (R, T), of which `counts` (R,) are real, behind what was read; return both (R, L + T) and how many (R,)."""
    both = torch.cat([read, ids], dim=1)
    if counts is None:
        return both, lengths + ids.shape[1]
    padding = ids.shape[1] - counts
    # What is real moves up to the end, over the padding behind it.
    places = torch.arange(both.shape[1], device=ids.device) - padding[:, None]
    return both.gather(1, places.clamp(min=0)), lengths + counts
