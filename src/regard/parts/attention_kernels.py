"""Attention kernels: which way to compute softmax(Q Kᵀ / √d_k) V is the fastest where. All give the same numbers.

    a window, short against the sequence          in blocks (local_attention.py), each by one of the ways below
    a bias that learns, on a CPU                  the formula
    a CPU, and few keys; see `formula_is_faster`  the formula; in two calls where it is only causal
    all else                                      torch's fused kernel

The limits were measured by benchmarks/attention.py. What is computed, attention.py says.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts import masks
from regard.parts.local_attention import cut
from regard.parts.masks import Mask, masked_softmax

# Up to so many keys the formula is faster on a CPU than the fused kernel, forward and backward.
SHORT = 128
# The kernel is slow with a mask; where there is none, it is ahead beyond so many keys, and at any number without gradients.
SHORT_UNMASKED = 24
# Up to so many numbers in the queries (a few sentences) the fused kernel is faster again: it is one call.
FEW = 2**12
# With one query per row, as while decoding, so few are fewer, and the number of keys does not matter.
FEW_SINGLE = 2**10


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Mask, *, scale: float, bias: Tensor | None = None
) -> Tensor:
    """(B, H, T, K), (B, H, S, K), (B, H, S, V) to (B, H, T, V) by the fastest way; `bias` is added to the scores."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    mask = mask.simplified(n_keys)
    blocks = cut(mask, n_queries, n_keys) if bias is None else None
    if blocks is not None:
        near = Mask(blocks.allowed(mask, len(key), key.device))
        heads = attend(blocks.queries(query), blocks.keys(key), blocks.keys(value), near, scale=scale)
        return blocks.joined(heads)
    only_causal = mask.only_causal and bias is None
    # Where a bias learns, the kernel is not fused either, and slower than the formula at any length.
    learns = bias is not None and bias.requires_grad and torch.is_grad_enabled() and query.device.type == "cpu"
    if learns or formula_is_faster(query, n_keys, masked=bias is not None or not mask.hides_nothing):
        if only_causal:
            return causal_formula(query, key, value, scale=scale)
        dots = query @ key.transpose(-2, -1)
        scores = dots if scale == 1 else dots * scale
        scores = scores if bias is None else scores + bias
        return masked_softmax(scores, mask.tensor(n_queries, n_keys, query.device)) @ value
    if only_causal and n_queries == n_keys:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    allowed = mask.tensor(n_queries, n_keys, query.device)
    if bias is not None:
        allowed = bias if allowed is None else bias.masked_fill(~allowed, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=scale)


def causal_formula(query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
    """The formula where nobody looks ahead: scale and mask are part of the product, and every row sees itself."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    ahead = masks.causal(n_queries, n_keys, device=query.device).logical_not_()
    bias = torch.zeros(n_queries, n_keys, dtype=query.dtype, device=query.device).masked_fill_(ahead, -math.inf)
    rows = [tensor.flatten(0, 1) for tensor in (query, key, value)]  # (B · H, T or S, K)
    weights = torch.baddbmm(bias, rows[0], rows[1].transpose(1, 2), alpha=scale).softmax(-1)
    heads: Tensor = torch.bmm(weights, rows[2]).unflatten(0, query.shape[:2])
    return heads


def formula_is_faster(query: Tensor, n_keys: int, *, masked: bool) -> bool:
    """Return whether the formula is faster than the fused kernel for queries (B, H, T, K)."""
    if query.device.type != "cpu":
        return False
    if query.shape[-2] == 1:
        return query.numel() > FEW_SINGLE
    if not masked and not torch.is_grad_enabled():
        return False
    return n_keys <= (SHORT if masked else SHORT_UNMASKED) and query.numel() > FEW
