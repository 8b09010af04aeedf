"""Attention: softmax(Q Kᵀ / √d_k) V, and its multi-head form (Vaswani et al. 2017, 3.2).

With nobody listening the fused kernel runs, block by block where a window is short against the sequence; a listener for
scores or weights makes the same module compute them by the formula. All give the same numbers, and zeros in a row that may
attend to nothing.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts import masks
from regard.parts.linear import Linear
from regard.parts.local_attention import cut
from regard.parts.masks import Mask
from regard.parts.positions import Rotation
from regard.parts.taps import listened, tap

# Up to so many keys the formula is faster on a CPU than the fused kernel, forward and backward (benchmarks/attention.py).
SHORT = 128
# The kernel is slow with a mask; where there is none, it is ahead beyond so many keys, and at any number without gradients.
SHORT_UNMASKED = 24
# Up to so many numbers in the queries (a few sentences) the fused kernel is faster again: it is one call.
FEW = 2**12
# With one query a row, as while decoding, so few are fewer, and the number of keys does not matter.
FEW_SINGLE = 2**10


def attention_scores(query: Tensor, key: Tensor, *, scale: float) -> Tensor:
    """(…, T, K) and (…, S, K) to (…, T, S): how well each query fits each key."""
    dots = query @ key.transpose(-2, -1)
    return dots if scale == 1 else dots * scale


def attention_weights(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the keys that may be attended to; (…, T, S) to the same, zeros in a row without any."""
    if allowed is None:
        return scores.softmax(-1)
    # Only on a CPU: elsewhere the answer would have to be waited for, at every step of a decoder.
    if allowed.device.type == "cpu" and allowed.any(-1).all():
        # A sum, and not masked_fill, since its backward pass costs nothing.
        return (scores + torch.zeros_like(allowed, dtype=scores.dtype).masked_fill_(~allowed, -math.inf)).softmax(-1)
    # A row of only -inf becomes NaN: masked_fill keeps it out of the weights, and out of the gradients on the way back.
    return scores.masked_fill(~allowed, -math.inf).softmax(-1).masked_fill(~allowed, 0.0)


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
        scores = attention_scores(query, key, scale=scale)
        scores = scores if bias is None else scores + bias
        return attention_weights(scores, mask.tensor(n_queries, n_keys, query.device)) @ value
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


def attend_for(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask,
    *,
    scale: float,
    bias: Tensor | None = None,
) -> Tensor:
    """Do as `attend`, with the taps of a module: scores, weights, heads. Who listens to the first two gets the formula."""
    if not listened(module, "scores", "weights"):
        return tap(module, "heads", attend(query, key, value, mask, scale=scale, bias=bias))
    scores = attention_scores(query, key, scale=scale)
    scores = tap(module, "scores", scores if bias is None else scores + bias)
    allowed = mask.tensor(query.shape[-2], key.shape[-2], query.device)
    weights = tap(module, "weights", attention_weights(scores, allowed))
    return tap(module, "heads", weights @ value)


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H · K) to (B, H, T, K)."""
    return x.view(*x.shape[:-1], n_heads, -1).transpose(1, 2)


class MultiHeadAttention(nn.Module):
    """n_heads attentions side by side, each on its own projections, joined by one more.

    Self, masked, cross and windowed attention are this one module: what differs is where keys come from and the mask.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        d_value: int | None = None,
        scaled: bool = True,
        biases: bool = True,
    ) -> None:
        super().__init__()
        if d_head is None and d_model % n_heads:
            raise ConfigError(
                f"A width of {d_model} cannot be divided among {n_heads} heads.",
                "Choose d_model as a multiple of n_heads.",
            )
        self.n_heads = n_heads
        d_head = d_head or d_model // n_heads
        d_value = d_value or d_head
        self.query = Linear(d_model, n_heads * d_head, bias=biases)
        self.key = Linear(d_model, n_heads * d_head, bias=biases)
        self.value = Linear(d_model, n_heads * d_value, bias=biases)
        self.output = Linear(n_heads * d_value, d_model, bias=biases)
        self.scale = d_head**-0.5 if scaled else 1.0

    def forward(
        self,
        states: Tensor,
        memory: Tensor,
        mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """(B, T, D) attending to (B, S, D), to (B, T, D)."""
        key, value = self.keys_values(memory, rotation)
        return self.read(states, key, value, mask, rotation=rotation, bias=bias)

    def keys_values(self, memory: Tensor, rotation: Rotation | None = None) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys (B, H, S, K) and values (B, H, S, V): what a cache keeps."""
        key = self._split(self.key(memory))
        if rotation is not None:
            key = rotation(key)
        return tap(self, "key", key), tap(self, "value", self._split(self.value(memory)))

    def read(
        self,
        states: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """(B, T, D) attending to ready keys and values, to (B, T, D)."""
        query = self._split(self.query(states))
        if rotation is not None:
            query = rotation(query)
        query = tap(self, "query", query)
        heads = attend_for(self, query, key, value, mask, scale=self.scale, bias=bias)  # (B, H, T, V)
        return tap(self, "output", self.output(heads.transpose(1, 2).flatten(2)))

    def _split(self, x: Tensor) -> Tensor:
        return split_heads(x, self.n_heads)
