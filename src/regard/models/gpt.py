"""GPT: the decoder alone, which writes on from what it has read (Radford et al. 2018, 2019).

    ids ── embedding ── N × [masked self-attention, feed-forward] ── norm ── output ── logits

What differs from the Transformer's decoder: no encoder and no cross-attention, learned positions, pre-norm, GELU in its
tanh form, tokens that are not scaled, and always one matrix for embedding and output.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.decoder_only import Block, DecoderAlone
from regard.parts.attention import MultiHeadAttention, attend
from regard.parts.decoder_state import DecoderState, GrowingPast
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import FeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import linear
from regard.parts.masks import Mask
from regard.parts.norms import LayerNorm
from regard.parts.positions import Learned, Rotation
from regard.parts.taps import anybody_listens


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """The sizes of a GPT; the defaults are those of the smallest GPT-2."""

    vocab: int
    n_layers: int = 12
    n_heads: int = 12
    d_model: int = 768
    context: int = 1024  # the most tokens it reads at once
    dropout: float = 0.1
    window: int = 0  # attention reaches this far back; 0 for everywhere

    def __post_init__(self) -> None:
        for name in ("vocab", "n_layers", "n_heads", "d_model", "context", "window"):
            value, least = getattr(self, name), 0 if name == "window" else 1
            if value < least:
                raise ConfigError(f"model.{name} is at least {least}, not {value}.", f"Correct model.{name}.")


class QuickBlocks:
    """The blocks for one position more at a time, in as few calls as can be: their weights as a search needs them.

    A step of a small model is done before Python has said what to do, so the blocks' own way takes twice as long. Here
    queries, keys and values are one product, and nothing is dropped or shown to listeners; the numbers are the same.
    """

    @torch.no_grad()
    def __init__(self, blocks: nn.ModuleList) -> None:
        self.layers = [_laid_out(block) for block in blocks]

    def __call__(self, x: Tensor, mask: Mask, past: GrowingPast) -> Tensor:
        """(R, 1, D) to the same, after a past, which grows by it."""
        n_rows, _, width = x.shape
        x = x[:, 0]
        for layer in self.layers:
            joined = linear(layer.attention_norm(x), *layer.query_key_value)
            query, key, value = joined.view(n_rows, 3, layer.n_heads, 1, -1).unbind(1)  # (R, H, 1, K) each
            heads = attend(query, *past.extend(key, value), mask, scale=layer.scale)
            x = x + linear(heads.reshape(n_rows, width), *layer.output)
            hidden = layer.activation(linear(layer.feed_forward_norm(x), *layer.up))
            x = x + linear(hidden, *layer.down)
        return x[:, None]


@dataclass(frozen=True)
class _Layer:
    """What `QuickBlocks` keeps of a block: norms, and weights with their biases."""

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


class GPT(DecoderAlone):
    """A language model; `forward` while training, `start` and `step` while generating."""

    def __init__(self, config: GPTConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.window = config.window or None
        tokens = TokenEmbedding(config.vocab, config.d_model, scaled=False)
        positions = Learned(config.d_model, limit=config.context)
        self.embedding = InputEmbedding(tokens, positions, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(make_block(config) for _ in range(config.n_layers))
        self.decoder_norm = LayerNorm(config.d_model)
        self.output = OutputLayer(config.vocab, config.d_model, tied_to=tokens)
        initialise(self, seed, deviation=self._deviation)

    def _deviation(self, name: str) -> float:
        """How far first weights spread: what is added to the residual stream less, the more layers add to it."""
        added = name.endswith(("self_attention.output.weight", "feed_forward.down.weight"))
        # Radford et al. 2019, 2.3
        return 0.02 / math.sqrt(2 * self.config.n_layers) if added else 0.02

    @property
    def max_length(self) -> int:
        """The longest sequence the positions reach."""
        return self.config.context

    def start(self, n_sentences: int) -> DecoderState:
        """The state of so many sentences that have read nothing."""
        return replace(super().start(n_sentences), prepared=None if self.training else QuickBlocks(self.decoder))

    def step_blocks(
        self, state: DecoderState, x: Tensor, mask: Mask, rotation: Rotation | None, past: GrowingPast
    ) -> Tensor:
        """As `blocks`; one position more by the quick way, where nobody listens or learns."""
        if state.prepared is None or x.shape[1] > 1 or torch.is_grad_enabled() or anybody_listens():
            return self.blocks(x, mask, rotation, past)
        found: Tensor = state.prepared(x, mask, past)
        return found


def make_block(config: GPTConfig) -> Block:
    """One of its layers."""
    width = config.d_model
    attention = MultiHeadAttention(width, config.n_heads)
    feed_forward = FeedForward(width, 4 * width, activation="gelu-tanh", dropout=0.0)
    return Block(attention, feed_forward, lambda: LayerNorm(width), dropout=config.dropout)
