"""Buffers of the KV cache: one layer's keys and values with room behind them, so that appending copies nothing.

Appending writes into the room and returns a longer view of the same memory. Nothing that anybody has seen is changed by
that: whoever holds the shorter view does not see the new slots, and where two go on from one view, the second finds the
room taken and moves out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

ROOM = 32  # slots, at least, when a buffer is made


@dataclass
class _Taken:
    """How many slots of the buffers anybody has written to."""

    slots: int


@dataclass(frozen=True, eq=False)
class KVBuffer:
    """KVBuffer `begin` to `end` of two buffers, (R, H, capacity, K) for keys and (R, H, capacity, V) for values."""

    key_buffer: Tensor
    value_buffer: Tensor
    begin: int
    end: int
    taken: _Taken = field(repr=False)

    @classmethod
    def of(cls, key: Tensor, value: Tensor) -> "KVBuffer":
        """Take tensors (R, H, L, K) and (R, H, L, V) as they are, without room."""
        return cls(key, value, 0, key.shape[2], _Taken(key.shape[2]))

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def bytes_per_slot(self) -> int:
        """What a slot of one row takes."""
        return sum(one.element_size() * one.shape[1] * one.shape[3] for one in (self.key_buffer, self.value_buffer))

    @property
    def key(self) -> Tensor:
        """(R, H, L, K)."""
        return self.key_buffer[:, :, self.begin : self.end]

    @property
    def value(self) -> Tensor:
        """(R, H, L, V)."""
        return self.value_buffer[:, :, self.begin : self.end]

    def append(self, key: Tensor, value: Tensor) -> "KVBuffer":
        """Put the keys (R, H, T, K) and values (R, H, T, V) of new positions behind the others."""
        if key.requires_grad or self.key_buffer.requires_grad:  # then a graph needs each tensor as it was
            return KVBuffer.of(torch.cat([self.key, key], dim=2), torch.cat([self.value, value], dim=2))
        n_new = key.shape[2]
        slots = self if self._has_room(n_new) else self._moved(n_new)
        end = slots.end + n_new
        slots.key_buffer[:, :, slots.end : end] = key
        slots.value_buffer[:, :, slots.end : end] = value
        slots.taken.slots = end
        return KVBuffer(slots.key_buffer, slots.value_buffer, slots.begin, end, slots.taken)

    def rows(self, chosen: Tensor) -> "KVBuffer":
        """Go on with these rows, in this order, and with room: a beam that reorders its rows goes on at once."""
        if self.key_buffer.requires_grad:
            return KVBuffer.of(self.key.index_select(0, chosen), self.value.index_select(0, chosen))
        if self.end < self.key_buffer.shape[2] <= 2 * len(self):
            # Whole buffers are copied several times as fast as parts of them, which pays once most of them is in use.
            key, value = self.key_buffer.index_select(0, chosen), self.value_buffer.index_select(0, chosen)
            return KVBuffer(key, value, self.begin, self.end, _Taken(self.end))
        return self._in_new_buffers(len(chosen), ROOM, lambda kept, to: torch.index_select(kept, 0, chosen, out=to))

    def each(self, chosen: Tensor) -> "KVBuffer":
        """Go on with these slots of each row, (R, M)."""

        def choose(x: Tensor) -> Tensor:
            return x.gather(2, chosen[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))

        return KVBuffer.of(choose(self.key), choose(self.value))

    def without(self, n_gone: int) -> "KVBuffer":
        """Let go of the first slots; their memory is given back when the others move."""
        left = KVBuffer(self.key_buffer, self.value_buffer, self.begin + n_gone, self.end, self.taken)
        return left._moved(0) if n_gone > len(left) else left

    def _has_room(self, n_new: int) -> bool:
        # What was made in inference mode can be written to in inference mode only.
        writable = torch.is_inference_mode_enabled() or not self.key_buffer.is_inference()
        return writable and self.taken.slots == self.end and self.end + n_new <= self.key_buffer.shape[2]

    def _moved(self, n_new: int) -> "KVBuffer":
        """The same in buffers of their own, with room for so many more, and for as many again as there are."""
        return self._in_new_buffers(len(self.key_buffer), n_new + max(len(self), ROOM), lambda kept, to: to.copy_(kept))

    def _in_new_buffers(self, n_rows: int, room: int, fill: Callable[[Tensor, Tensor], Tensor]) -> "KVBuffer":
        n_slots = len(self)

        def filled(kept: Tensor) -> Tensor:
            _, n_heads, _, width = kept.shape
            buffer = kept.new_empty(n_rows, n_heads, n_slots + room, width)
            fill(kept, buffer[:, :, :n_slots])
            return buffer

        return KVBuffer(filled(self.key), filled(self.value), 0, n_slots, _Taken(n_slots))
