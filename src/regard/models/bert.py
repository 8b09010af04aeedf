"""BERT: an encoder-only Transformer, which reads in both directions at once (Devlin et al. 2019).

    ids ── tokens + positions + segments ── norm ── N × [self-attention, feed-forward] ── states ── head

What differs from the Transformer's encoder: learned positions; a vector for each of the texts that a sequence is made of;
a norm on the sum; GELU; first weights from one narrow normal distribution. Attention's own weights are never dropped.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import option
from regard.errors import DataError
from regard.models.encoder_only import EncoderConfig, EncoderOnly
from regard.parts import masks
from regard.parts.attention import MultiHeadAttention
from regard.parts.dropout import Dropout
from regard.parts.embedding import make_tokens
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.feedforward import FeedForward
from regard.parts.heads import Pooler, find_pooling, make_head
from regard.parts.initialisation import initialise
from regard.parts.norms import LayerNorm
from regard.parts.positions import Learned
from regard.parts.residual import PostNorm
from regard.parts.stack import Stack
from regard.parts.taps import tap

# Of the published model: what its norms add to the variance, and how far its first weights spread.
EPSILON = 1e-12
DEVIATION = 0.02


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """The sizes of a BERT; the defaults are those of the paper's base model."""

    n_layers: int = option(12, "number of layers", least=1, most=1_000)
    n_heads: int = option(12, "attention heads per layer", least=1, most=65_536)
    d_model: int = option(768, "width of the residual stream (embedding size)", least=1, most=65_536)
    d_ff: int = option(3072, "hidden width of the feed-forward network", least=1, most=1_048_576)
    max_positions: int = option(512, "longest sequence, special tokens counted", least=1)
    n_segments: int = option(2, "texts per sequence (segment embeddings)", least=1)

    @property
    def max_length(self) -> int:
        """The longest sequence the positions reach."""
        return self.max_positions


class SegmentEmbedding(nn.Module):
    """A vector for each of the texts that a sequence is made of."""

    def __init__(self, n_segments: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_segments, d_model))

    def forward(self, segments: Tensor | None) -> Tensor:
        """(B, T) to (B, T, D); without segments, the first text's vector (D,)."""
        if segments is None:
            return self.weight[0]
        # Elsewhere than on a CPU, the largest would have to be waited for.
        n_texts = int(segments.max()) + 1 if segments.device.type == "cpu" and segments.numel() else 0
        if n_texts > len(self.weight):
            raise DataError(
                f"A sequence of {n_texts} texts is more than the {len(self.weight)} segments of the model.",
                "Give fewer texts, or train a model with more of model.n_segments.",
            )
        return F.embedding(segments, self.weight)


class BertEmbedding(nn.Module):
    """What stands there, where, and in which of the texts: the sum, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.tokens = make_tokens(config.vocab, config.d_model, n_features=config.n_features, scaled=False)
        self.positions = Learned(config.d_model, limit=config.max_positions)
        self.segments = SegmentEmbedding(config.n_segments, config.d_model)
        self.norm = LayerNorm(config.d_model, epsilon=EPSILON)
        self.dropout = Dropout(config.dropout)

    def forward(self, inputs: Tensor, segments: Tensor | None) -> Tensor:
        """ids (B, T), or vectors (B, T, F), and segments (B, T) or None, to (B, T, D)."""
        x = tap(self, "tokens", self.tokens(inputs))
        x = x + tap(self, "positions", self.positions(torch.arange(inputs.shape[1], device=inputs.device)))
        x = tap(self, "sum", x + tap(self, "segments", self.segments(segments).expand_as(x)))
        embedded: Tensor = self.dropout(tap(self, "output", self.norm(x)))
        return embedded


class Bert(EncoderOnly):
    """A bidirectional encoder with the head of its task."""

    def __init__(self, config: BertConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.embedding = BertEmbedding(config)
        self.encoder = nn.ModuleList(make_layer(config) for _ in range(config.n_layers))
        self.pooling = find_pooling(config.pooling)
        self.head = make_head(
            config.head,
            config.d_model,
            n_outputs=config.n_outputs,
            tokens=self.embedding.tokens,
            dropout=config.dropout,
            epsilon=EPSILON,
        )
        # Only where it learns: a head that reads every position would leave it as it was drawn.
        self.pooler = Pooler(config.d_model) if config.pooling == "class" and self.head.pools else None
        initialise(self, seed, deviation=lambda role, matrix: DEVIATION)

    @property
    def max_length(self) -> int:
        """The longest sequence the positions reach."""
        return self.config.max_length

    def forward(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None = None) -> Tensor:
        """What the head says, from inputs as in `encode`."""
        return self.answer(self.encode(inputs, lengths, segments), lengths)

    def encode(self, inputs: Tensor, lengths: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids (B, T), or vectors (B, T, F), padded behind, of (B,) lengths; to the last states (B, T, D).

        segments: (B, T), to which part of its sequence each position belongs; all to the first one without it.
        """
        x: Tensor = self.embedding(inputs, segments)
        mask = masks.padding(lengths, inputs.shape[1])
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a token passes, for layer-wise learning rates."""
        return (Stack(self.encoder, below=(self.embedding,)),)

    def pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, D), of which (B,) are real, to one state per sequence (B, D); of the class token, through the pooler."""
        state = super().pooled(states, lengths)
        return state if self.pooler is None else self.pooler(state)


def make_layer(config: BertConfig) -> EncoderLayer:
    """One of its layers."""
    attention = MultiHeadAttention(config.d_model, config.n_heads)
    feed_forward = FeedForward(config.d_model, config.d_ff, activation="gelu", dropout=0.0)
    return EncoderLayer(
        attention, feed_forward, lambda: PostNorm(LayerNorm(config.d_model, epsilon=EPSILON), dropout=config.dropout)
    )
