"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017).

    source ids ── embedding ── N × [self-attention, feed-forward] ── memory
                                                                        │ keys, values
    target ids ── embedding ── N × [masked self-attention, cross-attention, feed-forward] ── output ── logits

Post-norm and sinusoids are the paper's; pre-norm, other positions, norms and activations are chosen by the config.
"""

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.model_config import ModelConfig
from regard.parts import masks
from regard.parts.activations import ACTIVATIONS
from regard.parts.attention import MultiHeadAttention
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.embedding import TYINGS, InputEmbedding, OutputLayer, TokenEmbedding, check_tying
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.feedforward import FeedForward, GatedFeedForward
from regard.parts.initialisation import initialise
from regard.parts.masks import Mask
from regard.parts.norms import NORMS
from regard.parts.positions import POSITIONS, Rotation, make_positions
from regard.parts.residual import ORDERS, make_residual
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ModelConfig):
    """The sizes and choices of a Transformer; the defaults are the paper's base model."""

    source_vocab: int = option(REQUIRED, "source vocabulary size; follows from the data", least=1)
    target_vocab: int = option(REQUIRED, "target vocabulary size; follows from the data", least=1)
    n_encoder_layers: int = option(6, "encoder layers", least=1, most=1_000)
    n_decoder_layers: int = option(6, "decoder layers", least=1, most=1_000)
    d_model: int = option(512, "width of the residual stream (embedding size)", least=1, most=65_536)
    n_heads: int = option(8, "attention heads per layer", least=1, most=65_536)
    d_ff: int = option(2048, "hidden width of the feed-forward network", least=1, most=1_048_576)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    norm: str = option("layer", "kind of norm: LayerNorm or RMSNorm", choices=tuple(NORMS))
    norm_order: str = option(
        "post",
        "post-norm (norm after the sum), pre-norm (before each sublayer), or no residuals and norms",
        choices=ORDERS,
    )
    feed_forward: str = option("plain", "feed-forward network: two layers, or gated (GLU)", choices=("plain", "gated"))
    activation: str = option("relu", "activation of the feed-forward network", choices=tuple(ACTIVATIONS))
    positions: str = option("sinusoidal", "positional encoding", choices=POSITIONS)
    position_base: float = option(10000.0, "base of the sinusoids or rotary angles", above=0)
    join_positions: str = option(
        "add", "how positions join the embedding: added, or concatenated and projected", choices=("add", "concatenate")
    )
    max_positions: int = option(1024, "longest sequence with learned positions", least=1)
    window: int = option(0, "self-attention window: how far a token attends; 0 for everywhere", least=0)
    tied: str = option(
        "all",
        "weight tying: one matrix for source, target and output (all), for target and output (target), or none",
        choices=TYINGS,
    )
    scale_embedding: bool = option(True, "multiply the vectors of tokens by √d_model")
    output_bias: bool = option(False, "add a bias to the logits")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tying(self.tied, source_vocab=self.source_vocab, target_vocab=self.target_vocab)

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return self.max_positions if self.positions == "learned" else None


class Transformer(EncoderDecoder):
    """Encoder and decoder; `forward` while training, `start` and `step` while decoding."""

    def __init__(self, config: TransformerConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.window = config.window or None
        source_tokens = _tokens(config, config.source_vocab)
        target_tokens = source_tokens if config.tied == "all" else _tokens(config, config.target_vocab)
        self.source_embedding = _input_embedding(config, source_tokens, config.positions)
        self.encoder = nn.ModuleList(_encoder_layer(config) for _ in range(config.n_encoder_layers))
        self.encoder_norm = _final_norm(config)
        # The fraction i / (n - 1) needs the length, which a target has only when it is written: it takes sinusoids.
        target_positions = "sinusoidal" if config.positions == "fraction" else config.positions
        self.target_embedding = _input_embedding(config, target_tokens, target_positions)
        self.decoder = nn.ModuleList(_decoder_layer(config) for _ in range(config.n_decoder_layers))
        self.decoder_norm = _final_norm(config)
        tied_to = None if config.tied == "none" else target_tokens
        self.output = OutputLayer(config.target_vocab, config.d_model, tied_to=tied_to, bias=config.output_bias)
        # Heads of odd width cannot turn: say so now, and not at the first batch.
        self.rotation(torch.arange(0, device="cpu"))
        initialise(self, seed)

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return self.config.max_length

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
        mask = replace(masks.padding(source_lengths, source.shape[1]), window=self.window)
        rotation = self.rotation(positions)
        x = self.source_embedding(source, positions, source_lengths)
        for layer in self.encoder:
            x = layer(x, mask, rotation=rotation)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def decode(self, memory: Tensor, target: Tensor, memory_mask: Mask) -> Tensor:
        """memory (B, S, D) and target ids (B, T) from the start token, to the last states (B, T, D)."""
        positions = torch.arange(target.shape[1], device=target.device)
        # Padding stands behind the real positions, where the causal mask hides it from them.
        mask = Mask(causal=True, window=self.window)
        rotation = self.rotation(positions)
        x = self.target_embedding(target, positions)
        for layer in self.decoder:
            x = layer(x, memory, mask, memory_mask, rotation=rotation)
        states: Tensor = self.decoder_norm(x)
        return states

    def rotation(self, positions: Tensor) -> Rotation | None:
        """How positions (T,) or (R, T) turn queries and keys, if they are rotary."""
        if self.config.positions != "rotary":
            return None
        return Rotation(positions, self.config.d_model // self.config.n_heads, base=self.config.position_base)


def _encoder_layer(config: TransformerConfig) -> EncoderLayer:
    return EncoderLayer(_attention(config), _feed_forward(config), partial(_residual, config))


def _decoder_layer(config: TransformerConfig) -> DecoderLayer:
    return DecoderLayer(_attention(config), _attention(config), _feed_forward(config), partial(_residual, config))


def _attention(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.n_heads)


def _residual(config: TransformerConfig) -> nn.Module:
    norm = partial(NORMS[config.norm], config.d_model)
    return make_residual(config.norm_order, norm, dropout=config.dropout)


def _feed_forward(config: TransformerConfig) -> nn.Module:
    kind = FeedForward if config.feed_forward == "plain" else GatedFeedForward
    return kind(config.d_model, config.d_ff, activation=config.activation, dropout=config.dropout)


def _final_norm(config: TransformerConfig) -> nn.Module:
    """With pre-norm the sum that leaves the last layer was never normalised."""
    return NORMS[config.norm](config.d_model) if config.norm_order == "pre" else nn.Identity()


def _tokens(config: TransformerConfig, vocab_size: int) -> TokenEmbedding:
    return TokenEmbedding(vocab_size, config.d_model, scaled=config.scale_embedding)


def _input_embedding(config: TransformerConfig, tokens: TokenEmbedding, positions: str) -> InputEmbedding:
    encoding = make_positions(positions, config.d_model, limit=config.max_positions, base=config.position_base)
    return InputEmbedding(tokens, encoding, concatenate=config.join_positions == "concatenate", dropout=config.dropout)
