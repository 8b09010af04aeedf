"""T5: one encoder-decoder Transformer for every job that reads text and writes text (Raffel et al. 2020).

    source ids ── embedding ── N × [self-attention, feed-forward] ── norm ── memory
                                       │ + bias                                │ keys, values
    target ids ── embedding ── N × [masked self-attention, cross-attention, feed-forward] ── norm ── output ── logits
                                       │ + bias

What differs from the Transformer: a token does not know where it stands, but self-attention how far apart two tokens are,
by a bias that all layers of a stack share; pre-norm with RMS norms; no biases in any layer; scores that are not scaled,
since the first weights are; heads of any width. The defaults are the first version's; gated networks with GELU and an
output layer of its own make it 1.1.

T5 keeps vectors of tokens √D times as long, and divides the states by √D before they meet the shared matrix. Here the
embedding multiplies, as in the Transformer: the network is the same, and AdamW, whose steps are of one size whatever the
weights', learns it much faster.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.errors import ConfigError
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.model_config import ModelConfig
from regard.parts import masks
from regard.parts.activations import ACTIVATIONS
from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.dropout import Dropout
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.feedforward import FeedForward, GatedFeedForward
from regard.parts.initialisation import Role, initialise
from regard.parts.masks import Mask
from regard.parts.norms import RMSNorm
from regard.parts.positions import RelativeBias
from regard.parts.residual import PreNorm
from regard.parts.stack import Stack
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class T5Config(ModelConfig):
    """The sizes and choices of a T5; the defaults are those of the small one."""

    source_vocab: int = option(REQUIRED, "vocabulary size; follows from the data", least=1)
    target_vocab: int = option(REQUIRED, "the same: source and target share one vocabulary", least=1)
    n_encoder_layers: int = option(6, "encoder layers", least=1, most=1_000)
    n_decoder_layers: int = option(6, "decoder layers", least=1, most=1_000)
    d_model: int = option(512, "width of the residual stream (embedding size)", least=1, most=65_536)
    n_heads: int = option(8, "attention heads per layer", least=1, most=65_536)
    d_head: int = option(64, "width of a head", least=1, most=65_536)
    d_ff: int = option(2048, "hidden width of the feed-forward network", least=1, most=1_048_576)
    feed_forward: str = option("plain", "feed-forward network: two layers, or gated (GLU)", choices=("plain", "gated"))
    activation: str = option("relu", "activation of the feed-forward network", choices=tuple(ACTIVATIONS))
    n_buckets: int = option(32, "buckets of distances in the relative position bias", least=4)
    max_distance: int = option(128, "distance from which on all fall into one bucket", least=1, most=1_048_576)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    tied: str = option(
        "all",
        "weight tying: one matrix for source, target and output (all), or for source and target (inputs)",
        choices=("all", "inputs"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source_vocab != self.target_vocab:
            raise ConfigError(
                f"T5 has one matrix for source and target, which have {self.source_vocab} and {self.target_vocab} tokens.",
                "Use one vocabulary (tokenizer.shared = true).",
            )


class FinalNorm(RMSNorm):
    """What leaves a stack: normalised, and dropped in part."""

    def __init__(self, d_model: int, *, dropout: float) -> None:
        super().__init__(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(super().forward(x))
        return dropped


class T5(EncoderDecoder):
    """Encoder and decoder; `forward` while training, `start` and `step` while decoding."""

    window = None

    def __init__(self, config: T5Config, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        width, dropout = config.d_model, config.dropout
        tokens = TokenEmbedding(config.source_vocab, width)
        self.source_embedding = InputEmbedding(tokens, None, concatenate=False, dropout=dropout)
        self.encoder_relative_bias = _relative_bias(config, backwards_only=False)
        self.encoder = nn.ModuleList(_encoder_layer(config) for _ in range(config.n_encoder_layers))
        self.encoder_norm = FinalNorm(width, dropout=dropout)
        self.target_embedding = InputEmbedding(tokens, None, concatenate=False, dropout=dropout)
        self.decoder_relative_bias = _relative_bias(config, backwards_only=True)
        self.decoder = nn.ModuleList(_decoder_layer(config) for _ in range(config.n_decoder_layers))
        self.decoder_norm = FinalNorm(width, dropout=dropout)
        self.output = OutputLayer(config.target_vocab, width, tied_to=tokens if config.tied == "all" else None)
        initialise(self, seed, deviation=self._deviation)

    def _deviation(self, role: Role, matrix: Tensor) -> float:
        """How far first weights spread, as in Mesh TensorFlow: what a layer makes varies as much as what it is given."""
        if role == "relative_bias":
            return 1 / math.sqrt(self.config.d_model)
        n_inputs = matrix.shape[1]
        # Queries carry what other models divide the scores by.
        return 1 / math.sqrt(n_inputs * self.config.d_head if role == "query" else n_inputs)

    def stacks(self) -> tuple[Stack, ...]:
        """The layers of both sides, for layer-wise learning rates."""
        return (
            Stack(self.encoder, below=(self.source_embedding, self.encoder_relative_bias)),
            Stack(self.decoder, below=(self.target_embedding, self.decoder_relative_bias)),
        )

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """source ids (B, S), padded behind, of (B,) lengths; target ids (B, T) from the start token; to logits (B, T, V)."""
        return tap(self, "logits", self.output(self.states(source, source_lengths, target)))

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """The decoder's last states (B, T, D), before the output layer."""
        memory = self.encode(source, source_lengths)
        return self.decode(memory, target, masks.padding(source_lengths, source.shape[1]))

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths to the memory (B, S, D)."""
        positions = torch.arange(source.shape[1], device=source.device)
        mask = masks.padding(source_lengths, source.shape[1])
        bias = self.encoder_relative_bias(positions, positions)  # (1, H, S, S)
        x = self.source_embedding(source, positions)
        for layer in self.encoder:
            x = layer(x, mask, bias=bias)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def decode(self, memory: Tensor, target: Tensor, memory_mask: Mask) -> Tensor:
        """memory (B, S, D) and target ids (B, T) from the start token, to the last states (B, T, D)."""
        positions = torch.arange(target.shape[1], device=target.device)
        # Padding stands behind the real positions, where the causal mask hides it from them.
        mask = Mask(causal=True)
        bias = self.decoder_bias(positions, positions)
        x = self.target_embedding(target, positions)
        for layer in self.decoder:
            x = layer(x, memory, mask, memory_mask, bias=bias)
        states: Tensor = self.decoder_norm(x)
        return states

    def decoder_bias(self, positions: Tensor, keys: Tensor) -> Tensor:
        """What the distances of keys at (S,) or (R, S) from positions (T,) or (R, T) add to the decoder's scores.

        (1 or R, H, T, S).
        """
        bias: Tensor = self.decoder_relative_bias(positions, keys)
        return bias


def _relative_bias(config: T5Config, *, backwards_only: bool) -> RelativeBias:
    sizes = {"n_buckets": config.n_buckets, "max_distance": config.max_distance}
    return RelativeBias(config.n_heads, **sizes, backwards_only=backwards_only)


def _encoder_layer(config: T5Config) -> EncoderLayer:
    return EncoderLayer(_attention(config), _feed_forward(config), lambda: _residual(config))


def _decoder_layer(config: T5Config) -> DecoderLayer:
    return DecoderLayer(_attention(config), _attention(config), _feed_forward(config), lambda: _residual(config))


def _attention(config: T5Config) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.n_heads, d_head=config.d_head, scaled=False, biases=False)


def _feed_forward(config: T5Config) -> nn.Module:
    sizes = config.d_model, config.d_ff
    if config.feed_forward == "gated":
        return GatedFeedForward(*sizes, activation=config.activation, dropout=config.dropout)
    return FeedForward(*sizes, activation=config.activation, dropout=config.dropout, biases=False)


def _residual(config: T5Config) -> PreNorm:
    return PreNorm(RMSNorm(config.d_model), dropout=config.dropout)
