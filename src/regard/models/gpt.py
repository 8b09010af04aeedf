"""GPT: a decoder-only Transformer, which writes on from what it has read (Radford et al. 2018, 2019).

    ids ── embedding ── N × [masked self-attention, feed-forward] ── norm ── output ── logits

What differs from the Transformer's decoder: no encoder and no cross-attention, learned positions, pre-norm, GELU in its
tanh form, tokens that are not scaled, and always one matrix for embedding and output.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.models.decoder_only import DecoderOnly
from regard.models.model_config import ModelConfig
from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_state import GrowingCache
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import FeedForward
from regard.parts.initialisation import Role, initialise
from regard.parts.masks import Mask
from regard.parts.norms import LayerNorm
from regard.parts.positions import Learned, positions_inside
from regard.parts.residual import PreNorm
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class GPTConfig(ModelConfig):
    """The sizes of a GPT; the defaults are those of the smallest GPT-2."""

    vocab: int = option(REQUIRED, "vocabulary size; follows from the data", least=1)
    n_layers: int = option(12, "number of layers", least=1, most=1_000)
    n_heads: int = option(12, "attention heads per layer", least=1, most=65_536)
    d_model: int = option(768, "width of the residual stream (embedding size)", least=1, most=65_536)
    context: int = option(1024, "context length in tokens", least=1)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    window: int = option(0, "self-attention window: how far back a token attends; 0 for everywhere", least=0)

    @property
    def max_length(self) -> int:
        """The longest sequence the positions reach."""
        return self.context


class GPTBlock(nn.Module):
    """Masked self-attention, then the feed-forward network, each with its residual connection, pre-norm."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.d_model
        self.self_attention = MultiHeadAttention(width, config.n_heads)
        self.self_attention_residual = PreNorm(LayerNorm(width), dropout=config.dropout)
        self.feed_forward = FeedForward(width, 4 * width, activation="gelu-tanh", dropout=0.0)
        self.feed_forward_residual = PreNorm(LayerNorm(width), dropout=config.dropout)

    def forward(self, x: Tensor, mask: Mask, cache: GrowingCache | None = None) -> Tensor:
        """(B, T, D) to the same: all positions, or some more behind a KV cache, which grows by them."""
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask, cache=cache))
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class GPT(DecoderOnly):
    """A language model; `forward` while training, `start` and `step` while generating."""

    def __init__(self, config: GPTConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.window = config.window or None
        tokens = TokenEmbedding(config.vocab, config.d_model, scaled=False)
        positions = Learned(config.d_model, limit=config.context)
        self.embedding = InputEmbedding(tokens, positions, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(GPTBlock(config) for _ in range(config.n_layers))
        self.decoder_norm = LayerNorm(config.d_model)
        self.output = OutputLayer(config.vocab, config.d_model, tied_to=tokens)
        initialise(self, seed, deviation=self._deviation)

    def _deviation(self, role: Role, matrix: Tensor) -> float:
        """How far first weights spread: what is added to the residual stream less, the more layers add to it."""
        # Radford et al. 2019, 2.3
        return 0.02 / math.sqrt(2 * self.config.n_layers) if role == "residual_output" else 0.02

    @property
    def max_length(self) -> int:
        """The longest sequence the positions reach."""
        return self.config.max_length

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """ids (B, T), padded behind, to the logits (B, T, V) of what follows each.

        documents: (B, T), which document each token belongs to, if a row holds several; none sees another.
        """
        return tap(self, "logits", self.output(self.states(ids, documents)))

    def states(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The last states (B, T, D), before the output layer."""
        positions = torch.arange(ids.shape[1], device=ids.device) if documents is None else positions_inside(documents)
        mask = Mask(causal=True, window=self.window, documents=documents)
        x = self.embedding(ids, positions)
        x = self.blocks(x, positions, mask)
        states: Tensor = self.decoder_norm(x)
        return states

    def blocks(self, x: Tensor, positions: Tensor, mask: Mask, cache: GrowingCache | None = None) -> Tensor:
        """(B, T, D) through all blocks, to the same."""
        for block in self.decoder:
            x = block(x, mask, cache)
        return x
