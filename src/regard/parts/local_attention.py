"""Local (sliding-window) self-attention in blocks: with a window of r, O(r·n·d) time and O(r·n) memory instead of n² scores.

    keys      │ · · · · │ · · · · │ · · · · │ · · · · │
                  └── r ──┴─ own ─┴── r ──┘             what a block of queries reaches; to the right only if not causal
    queries             │ · · · · │                     at least as many as the window is wide

Every block becomes a row of a batch, beside a copy of the keys it reaches, so that attention over the batch is the usual
one. The lectures' table of costs has it as self-attention (restricted); Vaswani et al. 2017, section 4.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.masks import Mask

# Smaller blocks compute less that is masked, but are more of them; this many queries were the fastest on a CPU.
LEAST = 32
# Blocks pay, with the copies they need, where the sequence is this many times longer than what a block reaches.
WORTH = 2


@dataclass(frozen=True)
class Blocks:
    """How a sequence is cut.

    length: of the sequence.
    size: queries in a block; the last block may be partly empty.
    before, after: how far a query reaches; never further than the neighbouring block.
    """

    length: int
    size: int
    before: int
    after: int

    @property
    def n_blocks(self) -> int:
        return -(-self.length // self.size)

    @property
    def n_keys(self) -> int:
        """How many keys a block reaches."""
        return self.before + self.size + self.after

    def queries(self, x: Tensor) -> Tensor:
        """(B, H, T, K) to (B * blocks, H, size, K), with zeros behind the last."""
        return _rows(self._cut(x, n_before=0, n_after=0))

    def keys(self, x: Tensor) -> Tensor:
        """(B, H, T, K) to (B * blocks, H, n_keys, K), with zeros where a block reaches out of the sequence."""
        cut = self._cut(x, n_before=1, n_after=1)  # (B, blocks + 2, size, H, K)
        # Slices joined and not `unfold`, whose backward pass is slow.
        previous, own, following = cut[:, :-2, self.size - self.before :], cut[:, 1:-1], cut[:, 2:, : self.after]
        return _rows(torch.cat([previous, own, following], dim=2))

    def allowed(self, mask: Mask, n_rows: int, device: torch.device) -> Tensor:
        """Return (B * blocks, 1, size, n_keys), of a mask that was cut: who may attend to which of the keys in reach."""
        keys = mask.allowed
        if keys is None:
            keys = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        real = self.keys(keys.expand(n_rows, 1, 1, self.length).mT).mT  # (B * blocks, 1, 1, n_keys); False outside
        band = torch.ones(self.size, self.n_keys, dtype=torch.bool, device=device)
        near = real & band.tril(self.before + self.after).triu()
        if mask.documents is None:
            return near
        documents = mask.documents.expand(n_rows, self.length)[:, None, :, None]  # (B, 1, T, 1)
        return near & (self.queries(documents) == self.keys(documents).mT)

    def joined(self, x: Tensor) -> Tensor:
        """(B * blocks, H, size, V) to (B, H, T, V)."""
        rows = x.transpose(1, 2).reshape(-1, self.n_blocks * self.size, x.shape[1], x.shape[3])
        return rows[:, : self.length].transpose(1, 2)

    def _cut(self, x: Tensor, *, n_before: int, n_after: int) -> Tensor:
        """(B, H, T, K) to (B, blocks, size, H, K), with so many blocks of zeros before and after."""
        missing = self.n_blocks * self.size - self.length
        padded = F.pad(x.transpose(1, 2), (0, 0, 0, 0, n_before * self.size, n_after * self.size + missing))
        return padded.reshape(len(x), -1, self.size, x.shape[1], x.shape[3])


def cut(mask: Mask, n_queries: int, n_keys: int) -> Blocks | None:
    """Return the blocks in which attention under this mask is cheaper; None if it is not, or cannot be had in blocks.

    It cannot while decoding, where queries and keys are not the same positions, nor if `allowed` differs from query to
    query or from head to head.
    """
    if mask.window is None or n_queries != n_keys:
        return None
    if mask.allowed is not None and (mask.allowed.dim() != 4 or mask.allowed.shape[1:3] != (1, 1)):
        return None
    after = 0 if mask.causal else mask.window
    blocks = Blocks(length=n_keys, size=max(mask.window, LEAST), before=mask.window, after=after)
    return blocks if n_keys > WORTH * blocks.n_keys else None


def _rows(x: Tensor) -> Tensor:
    """(B, blocks, size, H, K) to (B * blocks, H, size, K)."""
    return x.flatten(0, 1).transpose(1, 2)
