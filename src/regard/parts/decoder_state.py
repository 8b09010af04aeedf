"""The KV cache: keys and values that a decoder keeps between two steps, of earlier positions and of the memory it reads.

Rows are sentences × hypotheses, sentence-major. The memory is kept once per sentence, whatever the number of hypotheses; so
a beam that reorders its rows leaves it untouched. A state is never changed in place: each method returns a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.masks import EVERYTHING, Mask

KeyValues = tuple[Tensor, Tensor]  # of one layer; in the cache (R, H, L, K) each, of the memory (N, H, S, K)


@dataclass(frozen=True)
class DecoderState:
    """The state of a Transformer's decoder, for `decoding.protocol`.

    lengths: (R,) how many positions of each row were read.
    n_sentences: whose rows these are, equally many each; no tensor tells where there is no memory.
    cache: keys and values of each layer's self-attention; empty before the first step.
    first: the position that slot 0 of `cache` holds; more than 0 when earlier ones were forgotten.
    slots: (R, L) which position each slot holds, -1 for none; None while slot j holds position first + j in every row.
    memory: keys and values of each layer's cross-attention, (N, H, S, K); empty for a decoder-only model.
    memory_mask: which keys of the memory are real.
    """

    lengths: Tensor
    n_sentences: int
    cache: tuple[KeyValues, ...] = ()
    first: int = 0
    slots: Tensor | None = None
    memory: tuple[KeyValues, ...] = ()
    memory_mask: Mask = EVERYTHING

    @classmethod
    def empty(cls, n_sentences: int, device: torch.device) -> "DecoderState":
        """The state of a decoder-only model that has read nothing, one row per sentence."""
        return cls(lengths=torch.zeros(n_sentences, dtype=torch.long, device=device), n_sentences=n_sentences)

    @property
    def n_rows(self) -> int:
        return len(self.lengths)

    @property
    def n_slots(self) -> int:
        return self.cache[0][0].shape[2] if self.cache else 0

    @property
    def bytes_per_token(self) -> int:
        """How much larger each token that a row reads makes the cache."""
        return sum(one.element_size() * one.shape[1] * one.shape[3] for layer in self.cache for one in layer)

    def reorder(self, parents: Tensor) -> "DecoderState":
        """Let row r go on from row parents[r] of the same sentence; the number of rows per sentence may change."""
        return replace(
            self,
            lengths=self.lengths[parents],
            cache=_each(self.cache, lambda x: x.index_select(0, parents)),
            slots=None if self.slots is None else self.slots[parents],
        )

    def keep(self, sentences: Tensor) -> "DecoderState":
        """Go on with these sentences only, in this order."""
        allowed = self.memory_mask.allowed
        return replace(
            self.reorder(rows_of(sentences, self.n_rows // self.n_sentences)),
            n_sentences=len(sentences),
            memory=_each(self.memory, lambda x: x[sentences]),
            memory_mask=self.memory_mask if allowed is None else Mask(allowed[sentences]),
        )

    def join(self, other: "DecoderState") -> "DecoderState":
        """Append the other's sentences, which may be of other lengths and have read less or more."""
        return self._packed()._join(other._packed())

    def _join(self, other: "DecoderState") -> "DecoderState":
        n_slots = max(self.n_slots, other.n_slots)
        n_keys = max(_n_keys(self), _n_keys(other))
        slots = torch.cat([_pad_slots(self, n_slots), _pad_slots(other, n_slots)])
        allowed = [_pad_allowed(state, n_keys) for state in (self, other)] if self.memory else None
        return replace(
            self,
            lengths=torch.cat([self.lengths, other.lengths]),
            n_sentences=self.n_sentences + other.n_sentences,
            cache=_join(_cache_like(self, other), _cache_like(other, self), n_slots),
            first=0,
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

    def held(self, n_new: int) -> Tensor:
        """Which position each slot holds once `n_new` more are filled, after `advance`: (L,), or (R, L) with -1 for none."""
        if self.slots is not None:
            return self.slots
        return torch.arange(self.first, self.first + self.n_slots + n_new, device=self.lengths.device)

    def forget(self, window: int | None) -> "DecoderState":
        """Let go of the slots that no later query can reach: at most `window` are left, or all if there is no window."""
        if window is None or self.n_slots <= window:
            return self
        n_gone = self.n_slots - window
        if self.slots is not None:
            return self._keep_slots(self.slots >= (self.lengths[:, None] - window).clamp(min=0), window)

        def left(x: Tensor) -> Tensor:
            kept = x[:, :, n_gone:]
            return kept.clone() if n_gone > window else kept  # so that the memory of a long prompt is given back

        return replace(self, first=self.first + n_gone, cache=_each(self.cache, left))

    def _packed(self) -> "DecoderState":
        """Let go of as many slots as are empty in the fullest row; those who wait for others have many."""
        if self.slots is None:
            return self
        held = self.slots >= 0
        n_kept = int(held.sum(1).max())
        return self if n_kept == self.n_slots else self._keep_slots(held, n_kept)

    def _keep_slots(self, chosen: Tensor, n_kept: int) -> "DecoderState":
        """Go on with the slots (R, L) that are chosen, at most `n_kept` in a row: they move to the end, in their order."""
        assert self.slots is not None
        kept = chosen.int().argsort(dim=1, stable=True)[:, self.n_slots - n_kept :]

        def choose(x: Tensor) -> Tensor:
            return x.gather(2, kept[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))

        return replace(self, cache=_each(self.cache, choose), slots=self.slots.where(chosen, -1).gather(1, kept))


class GrowingCache:
    """The KV cache while a step is under way: the layers come one after the other, and each appends its new positions."""

    def __init__(self, cache: tuple[KeyValues, ...]) -> None:
        self._cache = cache
        self._grown: list[KeyValues] = []

    def extend(self, key: Tensor, value: Tensor) -> KeyValues:
        """Append new keys and values to those of the next layer, and return them all."""
        if self._cache:
            earlier_key, earlier_value = self._cache[len(self._grown)]
            key, value = torch.cat([earlier_key, key], dim=2), torch.cat([earlier_value, value], dim=2)
        self._grown.append((key, value))
        return key, value

    def grown(self) -> tuple[KeyValues, ...]:
        """Return the cache of the next step, when every layer has had its turn."""
        return tuple(self._grown)


def rows_of(sentences: Tensor, width: int) -> Tensor:
    """The rows of these sentences, `width` each."""
    return (sentences[:, None] * width + torch.arange(width, device=sentences.device)).flatten()


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


def _pad_allowed(state: DecoderState, n_keys: int) -> Tensor:
    allowed = state.memory_mask.allowed
    if allowed is None:
        allowed = torch.ones(state.n_sentences, 1, 1, _n_keys(state), dtype=torch.bool, device=state.lengths.device)
    return F.pad(allowed, (0, n_keys - allowed.shape[3]), value=False)


def _each(layers: tuple[KeyValues, ...], change: Callable[[Tensor], Tensor]) -> tuple[KeyValues, ...]:
    """The same done to the keys and the values of every layer."""
    return tuple((change(key), change(value)) for key, value in layers)


def _cache_like(state: DecoderState, other: DecoderState) -> tuple[KeyValues, ...]:
    """Return the state's cache; if it has read nothing yet, one of no slots, shaped like the other's."""
    return state.cache or _each(other.cache, lambda x: x.new_empty(state.n_rows, x.shape[1], 0, x.shape[3]))


def _join(first: tuple[KeyValues, ...], second: tuple[KeyValues, ...], length: int) -> tuple[KeyValues, ...]:
    def stack(a: Tensor, b: Tensor) -> Tensor:
        return torch.cat([F.pad(one, (0, 0, 0, length - one.shape[2])) for one in (a, b)])

    pairs = zip(first, second, strict=True)
    return tuple((stack(key, other_key), stack(value, other_value)) for (key, value), (other_key, other_value) in pairs)
