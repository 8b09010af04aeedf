"""Who may attend to whom. Boolean, True = may attend, everywhere; the only file that decides.

A mask broadcasts to (B, H, T, S). It is kept in two halves, because the fused kernel knows the causal triangle by itself
and is faster without a tensor for it.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """What a query may attend to: where `allowed` is True, and, if `causal`, nothing later than itself."""

    allowed: Tensor | None = None
    causal: bool = False

    def tensor(self, n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
        """Return the whole mask as one tensor that broadcasts to (B, H, T, S), or None where all may attend to all."""
        if not self.causal:
            return self.allowed
        triangle = causal(n_queries, n_keys, device=device)
        return triangle if self.allowed is None else self.allowed & triangle


EVERYTHING = Mask()


def padding(lengths: Tensor, n_keys: int) -> Mask:
    """Let every query attend to the first `lengths[b]` keys of its row; (B,) to (B, 1, 1, S)."""
    positions = torch.arange(n_keys, device=lengths.device)
    return Mask((positions < lengths[:, None])[:, None, None, :])


def causal(n_queries: int, n_keys: int, *, device: torch.device | None = None) -> Tensor:
    """Return (T, S): a query sees no later position; where keys are more, the queries are the last positions."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def window(n_queries: int, n_keys: int, radius: int, *, device: torch.device | None = None) -> Tensor:
    """Return (T, S): a query sees the positions at most `radius` away (restricted self-attention)."""
    queries = torch.arange(n_keys - n_queries, n_keys, device=device)
    keys = torch.arange(n_keys, device=device)
    return (queries[:, None] - keys[None, :]).abs() <= radius


def prefix(lengths: Tensor, n_keys: int) -> Tensor:
    """Return (B, 1, T, S): causal, but the first `lengths[b]` positions all see each other (prefix language models)."""
    inside = (torch.arange(n_keys, device=lengths.device) < lengths[:, None])[:, None, None, :]
    return causal(n_keys, n_keys, device=lengths.device) | inside


def restrict(mask: Mask, allowed: Tensor) -> Mask:
    """Return the mask that allows what both allow."""
    return replace(mask, allowed=allowed if mask.allowed is None else mask.allowed & allowed)
