"""What a decoder keeps between two steps: the keys and values of past positions, and of the memory it reads.

Rows are sentences × hypotheses, sentence-major. The memory is kept once a sentence, whatever the number of hypotheses; so
a beam that reorders its rows leaves it untouched. A state is never changed in place: each method returns a new one.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.masks import EVERYTHING, Mask

KeyValues = tuple[Tensor, Tensor]  # (rows, H, slots, K) each


@dataclass(frozen=True)
class DecoderState:
    """The state of a Transformer's decoder, for `decoding.protocol`.

    lengths: (R,) how many positions of each row were read.
    n_sentences: whose rows these are, equally many each; no tensor tells where there is no memory.
    past: keys and values of each layer's self-attention; empty before the first step.
    first: the position that slot 0 of `past` holds; more than 0 when earlier ones were forgotten.
    slots: (R, L) which position each slot holds, -1 for none; None while slot j holds position first + j in every row.
    memory: keys and values of each layer's cross-attention, (N, H, S, K); empty for a decoder alone.
    memory_mask: which keys of the memory are real.
    """

    lengths: Tensor
    n_sentences: int
    past: tuple[KeyValues, ...] = ()
    first: int = 0
    slots: Tensor | None = None
    memory: tuple[KeyValues, ...] = ()
    memory_mask: Mask = EVERYTHING

    @classmethod
    def empty(cls, n_sentences: int, device: torch.device) -> "DecoderState":
        """The state of a decoder alone that has read nothing, a row a sentence."""
        return cls(lengths=torch.zeros(n_sentences, dtype=torch.long, device=device), n_sentences=n_sentences)

    @property
    def n_rows(self) -> int:
        return len(self.lengths)

    @property
    def n_slots(self) -> int:
        return self.past[0][0].shape[2] if self.past else 0

    def reorder(self, parents: Tensor) -> "DecoderState":
        """Let row r go on from row parents[r] of the same sentence; the number of rows a sentence may change."""
        return replace(
            self,
            lengths=self.lengths[parents],
            past=tuple((key.index_select(0, parents), value.index_select(0, parents)) for key, value in self.past),
            slots=None if self.slots is None else self.slots[parents],
        )

    def keep(self, sentences: Tensor) -> "DecoderState":
        """Go on with these sentences only, in this order."""
        width = self.n_rows // self.n_sentences
        rows = (sentences[:, None] * width + torch.arange(width, device=sentences.device)).flatten()
        allowed = self.memory_mask.allowed
        return replace(
            self.reorder(rows),
            n_sentences=len(sentences),
            memory=tuple((key[sentences], value[sentences]) for key, value in self.memory),
            memory_mask=self.memory_mask if allowed is None else Mask(allowed[sentences]),
        )

    def join(self, other: "DecoderState") -> "DecoderState":
        """Append the other's sentences, which may be of other lengths and have read less or more."""
        n_slots = max(self.n_slots, other.n_slots)
        n_keys = max(_n_keys(self), _n_keys(other))
        slots = torch.cat([_pad_slots(self, n_slots), _pad_slots(other, n_slots)])
        allowed = [_pad_allowed(state, n_keys) for state in (self, other)] if self.memory else None
        return DecoderState(
            lengths=torch.cat([self.lengths, other.lengths]),
            n_sentences=self.n_sentences + other.n_sentences,
            past=_join(_past(self, other), _past(other, self), n_slots),
            slots=slots,
            memory=_join(self.memory, other.memory, n_keys),
            memory_mask=EVERYTHING if allowed is None else Mask(torch.cat(allowed)),
        )

    def advance(self, counts: Tensor | None, n_new: int, *, window: int | None) -> tuple["DecoderState", Tensor, Mask]:
        """Make room for `n_new` more positions a row, of which `counts[r]` are real.

        Returns the state to which the layers' new keys belong, the new positions (T,) or (R, T), and who may attend to
        which slot: nobody to a later one, nor, with a window, to one further away than that.
        """
        n_old = self.n_slots
        if counts is None and self.slots is None:
            begin = self.first + n_old
            positions = torch.arange(begin, begin + n_new, device=self.lengths.device)
            return replace(self, lengths=self.lengths + n_new), positions, Mask(causal=n_new > 1, window=window)
        steps = torch.arange(n_new, device=self.lengths.device)
        real = counts if counts is not None else torch.full_like(self.lengths, n_new)
        # Padding stays at the last real position: further on, learned positions may have ended.
        positions = self.lengths[:, None] + torch.minimum(steps, real[:, None] - 1)
        new = torch.where(steps < real[:, None], positions, -1)
        slots = torch.cat([_pad_slots(self, n_old), new], dim=1)  # (R, L + T)
        advanced = replace(self, lengths=self.lengths + real, slots=slots)
        if n_old == 0:
            # Padding stands behind the real positions, where the causal mask hides it from them.
            return advanced, positions, Mask(causal=True, window=window)
        ahead = slots[:, None, :] - positions[:, :, None]  # (R, T, L + T)
        allowed = (slots >= 0)[:, None, :] & (ahead <= 0)
        if window is not None:
            allowed &= ahead >= -window
        return advanced, positions, Mask(allowed[:, None])

    def forget(self, window: int | None) -> "DecoderState":
        """Let go of the slots that no later query can reach: at most `window` are left, or all if there is no window."""
        if window is None or self.n_slots <= window:
            return self
        n_gone = self.n_slots - window
        if self.slots is None:
            past = tuple((_behind(key, n_gone), _behind(value, n_gone)) for key, value in self.past)
            return replace(self, first=self.first + n_gone, past=past)
        # No row reaches more than `window` slots: its own are sorted to the end, in their order.
        reached = self.slots >= (self.lengths[:, None] - window).clamp(min=0)
        kept = reached.int().argsort(dim=1, stable=True)[:, n_gone:]
        past = tuple((_chosen(key, kept), _chosen(value, kept)) for key, value in self.past)
        return replace(self, past=past, slots=self.slots.where(reached, -1).gather(1, kept))


class GrowingPast:
    """The past while a step is under way: the layers come one after the other, and each appends its new positions."""

    def __init__(self, past: tuple[KeyValues, ...]) -> None:
        self._past = past
        self._grown: list[KeyValues] = []

    def extend(self, key: Tensor, value: Tensor) -> KeyValues:
        """Append new keys and values to those of the next layer, and return them all."""
        if self._past:
            past_key, past_value = self._past[len(self._grown)]
            key, value = torch.cat([past_key, key], dim=2), torch.cat([past_value, value], dim=2)
        self._grown.append((key, value))
        return key, value

    def grown(self) -> tuple[KeyValues, ...]:
        """Return the past of the next step, when every layer has had its turn."""
        return tuple(self._grown)


def last_real(x: Tensor, counts: Tensor | None) -> Tensor:
    """(R, T, D), of which `counts` (R,) positions are real, all without it, to the last real one's (R, D)."""
    return x[:, -1] if counts is None else x[torch.arange(len(x), device=x.device), counts - 1]


def _n_keys(state: DecoderState) -> int:
    return state.memory[0][0].shape[2] if state.memory else 0


def _pad_slots(state: DecoderState, n_slots: int) -> Tensor:
    slots = state.slots
    if slots is None:
        last = state.first + state.n_slots
        slots = torch.arange(state.first, last, device=state.lengths.device).expand(state.n_rows, -1)
    return F.pad(slots, (0, n_slots - slots.shape[1]), value=-1)


def _behind(x: Tensor, n_gone: int) -> Tensor:
    """(R, H, L, K) to (R, H, L - n_gone, K), without the first slots."""
    kept = x[:, :, n_gone:]
    # A view holds on to what it does not show: one slot more is nothing, a long prompt is much.
    return kept.clone() if n_gone > kept.shape[2] else kept


def _chosen(x: Tensor, slots: Tensor) -> Tensor:
    """(R, H, L, K) and (R, M) to (R, H, M, K): of each row these slots."""
    return x.gather(2, slots[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))


def _pad_allowed(state: DecoderState, n_keys: int) -> Tensor:
    allowed = state.memory_mask.allowed
    if allowed is None:
        allowed = torch.ones(state.n_sentences, 1, 1, _n_keys(state), dtype=torch.bool, device=state.lengths.device)
    return F.pad(allowed, (0, n_keys - allowed.shape[3]), value=False)


def _past(state: DecoderState, other: DecoderState) -> tuple[KeyValues, ...]:
    """Return the state's caches; if it has read nothing yet, caches of no slots, shaped like the other's."""
    if state.past:
        return state.past

    def empty(like: Tensor) -> Tensor:
        return like.new_empty(state.n_rows, like.shape[1], 0, like.shape[3])

    return tuple((empty(key), empty(value)) for key, value in other.past)


def _join(first: tuple[KeyValues, ...], second: tuple[KeyValues, ...], length: int) -> tuple[KeyValues, ...]:
    def stack(a: Tensor, b: Tensor) -> Tensor:
        return torch.cat([F.pad(one, (0, 0, 0, length - one.shape[2])) for one in (a, b)])

    pairs = zip(first, second, strict=True)
    return tuple((stack(key, other_key), stack(value, other_value)) for (key, value), (other_key, other_value) in pairs)
