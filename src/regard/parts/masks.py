"""Attention masks: who may attend to whom. Boolean, True = may attend, everywhere; the only file that decides.

A mask broadcasts to (B, H, T, S). It is kept in four parts, because attention can use three of them without a tensor of
all pairs: the fused kernel knows the causal triangle by itself, and within a window most scores need not be computed at all,
nor most documents compared.
"""

import math
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """What a query may attend to.

    allowed: only where this is True.
    causal: nothing later than itself.
    window: nothing further away than that (restricted self-attention).
    documents: (B, T), the number of the document that each position belongs to; nothing of another one.
    """

    allowed: Tensor | None = None
    causal: bool = False
    window: int | None = None
    documents: Tensor | None = None

    @property
    def only_causal(self) -> bool:
        """Whether nothing else than the order of positions decides."""
        return self.causal and self.allowed is None and self.window is None and self.documents is None

    @property
    def hides_nothing(self) -> bool:
        """Whether all may attend to all."""
        return not self.causal and self.allowed is None and self.window is None and self.documents is None

    def simplified(self, n_keys: int) -> "Mask":
        """Return what is the same for so many keys, without a window that hides none of them."""
        return self if self.window is None or self.window < n_keys - 1 else replace(self, window=None)

    def tensor(self, n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
        """Return the whole mask as one tensor that broadcasts to (B, H, T, S), or None where all may attend to all.

        Where keys are more than queries, the queries are the last positions.
        """
        parts = [] if self.allowed is None else [self.allowed]
        if self.causal:
            parts.append(causal(n_queries, n_keys, device=device))
        radius = self.simplified(n_keys).window
        if radius is not None:
            parts.append(window(n_queries, n_keys, radius, device=device))
        if self.documents is not None:
            parts.append(same_document(self.documents, n_queries, n_keys))
        return reduce(torch.logical_and, parts) if parts else None


EVERYTHING = Mask()


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the keys that may be attended to; (…, T, S) to the same, zeros in a row without any."""
    if allowed is None:
        return scores.softmax(-1)
    # Only on a CPU: elsewhere the answer would have to be waited for, at every step of a decoder.
    if allowed.device.type == "cpu" and allowed.any(-1).all():
        # A sum, and not masked_fill, since its backward pass costs nothing.
        return (scores + torch.zeros_like(allowed, dtype=scores.dtype).masked_fill_(~allowed, -math.inf)).softmax(-1)
    # A row of only -inf becomes NaN: masked_fill keeps it out of the weights, and out of the gradients on the way back.
    return scores.masked_fill(~allowed, -math.inf).softmax(-1).masked_fill(~allowed, 0.0)


def padding(lengths: Tensor, n_keys: int) -> Mask:
    """Let every query attend to the first `lengths[b]` keys of its row; (B,) to (B, 1, 1, S)."""
    positions = torch.arange(n_keys, device=lengths.device)
    return Mask((positions < lengths[:, None])[:, None, None, :])


def causal(n_queries: int, n_keys: int, *, device: torch.device | None = None) -> Tensor:
    """Return (T, S): a query sees no later position; where keys are more, the queries are the last positions."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def window(n_queries: int, n_keys: int, radius: int, *, device: torch.device | None = None) -> Tensor:
    """Return (T, S): a query sees the positions at most `radius` away (restricted self-attention)."""
    own = n_keys - n_queries  # the first query's own position
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(own + radius).triu(own - radius)


def same_document(documents: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """Return (B, 1, T, T) from the numbers (B, T) of a sequence that attends to itself: each document sees itself only."""
    n_positions = documents.shape[1]
    if not n_positions == n_queries == n_keys:
        raise ValueError(
            f"documents are numbered for {n_positions} positions of one sequence, "
            f"not for {n_queries} queries and {n_keys} keys"
        )
    return (documents[:, :, None] == documents[:, None, :])[:, None]
