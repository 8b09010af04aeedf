"""The decoder layer: masked self-attention, cross-attention to a memory, feed-forward.

x ── masked self-attention ── cross-attention ── feed-forward ──►   each with its residual connection

Every position hears the earlier ones, then the memory, then thinks for itself.
"""

from collections.abc import Callable

from torch import Tensor, nn

from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_state import GrowingCache, KeyValues
from regard.parts.masks import Mask
from regard.parts.positions import Rotation


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, feed-forward; what they are is the model's choice."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: nn.Module,
        make_residual: Callable[[], nn.Module],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = make_residual()
        self.cross_attention = cross_attention
        self.cross_attention_residual = make_residual()
        self.feed_forward = feed_forward
        self.feed_forward_residual = make_residual()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Mask,
        memory_mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """All positions at once: (B, T, D) with memory (B, S, D), to (B, T, D)."""
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask, rotation=rotation, bias=bias))
        x = self.cross_attention_residual(x, lambda x: self.cross_attention(x, memory, memory_mask))
        x = self.feed_forward_residual(x, self.feed_forward)
        return x

    def step(
        self,
        x: Tensor,
        cache: GrowingCache,
        memory: KeyValues,
        mask: Mask,
        memory_mask: Mask,
        *,
        rotation: Rotation | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Some more positions: (R, T, D) behind the KV cache, which grows by them, to (R, T, D)."""

        def attend_to_cache(x: Tensor) -> Tensor:
            heard: Tensor = self.self_attention(x, x, mask, cache=cache, rotation=rotation, bias=bias)
            return heard

        def attend_to_memory(x: Tensor) -> Tensor:
            # The hypotheses of a sentence ask the same memory: they are so many queries to one set of keys.
            queries = x.reshape(len(memory[0]), -1, x.shape[-1])
            return self.cross_attention.read(queries, *memory, memory_mask).view_as(x)

        x = self.self_attention_residual(x, attend_to_cache)
        x = self.cross_attention_residual(x, attend_to_memory)
        x = self.feed_forward_residual(x, self.feed_forward)
        return x
