"""GPT's blocks for one more position at a time, in as few calls as can be: a quick step of decoding.

A step of a small model is done before Python has said what to do, so the blocks' own way takes twice as long. Here
queries, keys and values are one product, and nothing is dropped or shown to listeners; the numbers are the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.parts.attention_kernels import attend
from regard.parts.decoder_state import GrowingCache
from regard.parts.linear import linear
from regard.parts.masks import Mask


class QuickBlocks:
    """The blocks' weights, laid out as a search needs them."""

    @torch.no_grad()
    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        self.layers = [_laid_out(block) for block in blocks]

    def __call__(self, x: Tensor, mask: Mask, cache: GrowingCache) -> Tensor:
        """(R, 1, D) to the same, behind the KV cache, which grows by it."""
        n_rows, _, width = x.shape
        x = x[:, 0]
        for layer in self.layers:
            joined = linear(layer.attention_norm(x), *layer.query_key_value)
            query, key, value = joined.view(n_rows, 3, layer.n_heads, 1, -1).unbind(1)  # (R, H, 1, K) each
            heads = attend(query, *cache.extend(key, value), mask, scale=layer.scale)
            x = x + linear(heads.reshape(n_rows, width), *layer.output)
            hidden = layer.activation(linear(layer.feed_forward_norm(x), *layer.up))
            x = x + linear(hidden, *layer.down)
        return x[:, None]


@dataclass(frozen=True)
class _Layer:
    """What is kept of a block: norms, and weights with their biases."""

    n_heads: int
    scale: float
    attention_norm: Callable[[Tensor], Tensor]
    query_key_value: tuple[Tensor, Tensor]
    output: tuple[Tensor, Tensor]
    feed_forward_norm: Callable[[Tensor], Tensor]
    up: tuple[Tensor, Tensor]
    activation: Callable[[Tensor], Tensor]
    down: tuple[Tensor, Tensor]


def _laid_out(block: Any) -> _Layer:
    attention, feed_forward = block.self_attention, block.feed_forward
    parts = (attention.query, attention.key, attention.value)
    return _Layer(
        n_heads=attention.n_heads,
        scale=attention.scale,
        attention_norm=block.self_attention_residual.norm.forward,
        query_key_value=(torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])),
        output=(attention.output.weight, attention.output.bias),
        feed_forward_norm=block.feed_forward_residual.norm.forward,
        up=(feed_forward.up.weight, feed_forward.up.bias),
        activation=feed_forward.activation,
        down=(feed_forward.down.weight, feed_forward.down.bias),
    )
