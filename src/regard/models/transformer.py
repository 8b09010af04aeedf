"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017).

    source ids ── embedding ── N × [self-attention, feed-forward] ── memory
                                                                        │ keys, values
    target ids ── embedding ── N × [masked self-attention, cross-attention, feed-forward] ── output ── logits

Post-norm and sinusoids are the paper's; pre-norm, other positions, norms and activations are chosen by the config.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, did_you_mean
from regard.parts import masks
from regard.parts.attention import MultiHeadAttention
from regard.parts.cache import DecoderState, GrowingPast, KeyValues, last_real
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding, check_tying
from regard.parts.feedforward import FeedForward, GatedFeedForward
from regard.parts.initialisation import initialise
from regard.parts.masks import Mask
from regard.parts.norms import make_norm
from regard.parts.positions import Rotation, make_positions
from regard.parts.residual import make_residual
from regard.parts.taps import tap

_SIZES = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff", "max_positions", "window")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a Transformer; the defaults are the paper's base model."""

    source_vocab: int
    target_vocab: int
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    dropout: float = 0.1
    norm: str = "layer"  # layer, rms
    norm_order: str = "post"  # post, pre, none
    feed_forward: str = "plain"  # plain, gated
    activation: str = "relu"  # relu, gelu, silu
    positions: str = "sinusoidal"  # sinusoidal, learned, rotary, index, fraction, none
    position_base: float = 10000.0
    join_positions: str = "add"  # add, concatenate
    max_positions: int = 1024  # the limit of learned positions
    window: int = 0  # self-attention reaches this far; 0 for everywhere
    tied: str = "all"  # one matrix for source, target and output; target: for target and output; none

    def __post_init__(self) -> None:
        check_tying(self.tied, source_vocab=self.source_vocab, target_vocab=self.target_vocab)
        for name in _SIZES:
            value, least = getattr(self, name), 0 if name == "window" else 1
            if value < least:
                raise ConfigError(f"model.{name} is at least {least}, not {value}.", f"Correct model.{name}.")
        for name, choices in (("feed_forward", ("plain", "gated")), ("join_positions", ("add", "concatenate"))):
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"model.{name} cannot be '{value}'.", did_you_mean(value, choices))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with its residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.self_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = _residual(config)

    def forward(self, x: Tensor, mask: Mask, rotation: Rotation | None) -> Tensor:
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask, rotation=rotation))
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, feed-forward, each with its residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.self_attention_residual = _residual(config)
        self.cross_attention = MultiHeadAttention(config.d_model, config.n_heads)
        self.cross_attention_residual = _residual(config)
        self.feed_forward = _feed_forward(config)
        self.feed_forward_residual = _residual(config)

    def forward(self, x: Tensor, memory: Tensor, mask: Mask, memory_mask: Mask, rotation: Rotation | None) -> Tensor:
        """All positions at once: (B, T, D) with memory (B, S, D), to (B, T, D)."""
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, x, mask, rotation=rotation))
        x = self.cross_attention_residual(x, lambda x: self.cross_attention(x, memory, memory_mask))
        x = self.feed_forward_residual(x, self.feed_forward)
        return x

    def step(
        self,
        x: Tensor,
        past: GrowingPast,
        memory: KeyValues,
        mask: Mask,
        memory_mask: Mask,
        rotation: Rotation | None,
    ) -> Tensor:
        """Some more positions: (R, T, D) after the past, which grows by them, to (R, T, D)."""

        def attend_to_past(x: Tensor) -> Tensor:
            key, value = past.extend(*self.self_attention.keys_values(x, rotation))
            return self.self_attention.read(x, key, value, mask, rotation=rotation)

        def attend_to_memory(x: Tensor) -> Tensor:
            # The hypotheses of a sentence ask the same memory: they are so many queries to one set of keys.
            queries = x.reshape(len(memory[0]), -1, x.shape[-1])
            return self.cross_attention.read(queries, *memory, memory_mask).view_as(x)

        x = self.self_attention_residual(x, attend_to_past)
        x = self.cross_attention_residual(x, attend_to_memory)
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class Transformer(nn.Module):
    """Encoder and decoder; `forward` while training, `start` and `step` while decoding."""

    def __init__(self, config: TransformerConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        source_tokens = TokenEmbedding(config.source_vocab, config.d_model)
        target_tokens = source_tokens if config.tied == "all" else TokenEmbedding(config.target_vocab, config.d_model)
        self.source_embedding = _input_embedding(config, source_tokens, config.positions)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.encoder_norm = _final_norm(config)
        # The fraction i / (n - 1) needs the length, which a target has only when it is written: it takes sinusoids.
        target_positions = "sinusoidal" if config.positions == "fraction" else config.positions
        self.target_embedding = _input_embedding(config, target_tokens, target_positions)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.decoder_norm = _final_norm(config)
        tied_to = None if config.tied == "none" else target_tokens
        self.output = OutputLayer(config.target_vocab, config.d_model, tied_to=tied_to)
        self._rotation(torch.arange(0))  # heads of odd width cannot turn: say so now, and not at the first batch
        initialise(self, seed)

    @property
    def max_length(self) -> int | None:
        """The longest sequence the positions reach; None for any."""
        return self.config.max_positions if self.config.positions == "learned" else None

    @property
    def alignment_tap(self) -> str:
        """The tap that shows best which source token a target token was read from."""
        return f"decoder.{max(0, self.config.n_decoder_layers - 2)}.cross_attention.weights"

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """source ids (B, S), padded behind, of (B,) lengths; target ids (B, T) from the start token; to logits (B, T, V)."""
        return tap(self, "logits", self.output(self.states(source, source_lengths, target)))

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """The decoder's last states (B, T, D), before the output layer."""
        memory = self.encode(source, source_lengths)
        memory_mask = masks.padding(source_lengths, source.shape[1])
        positions = torch.arange(target.shape[1], device=target.device)
        x = self.target_embedding(target, positions)
        # Padding stands behind the real positions, where the causal mask hides it from them.
        mask = Mask(causal=True, window=self._window)
        rotation = self._rotation(positions)
        for layer in self.decoder:
            x = layer(x, memory, mask, memory_mask, rotation)
        states: Tensor = self.decoder_norm(x)
        return states

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths to the memory (B, S, D)."""
        positions = torch.arange(source.shape[1], device=source.device)
        x = self.source_embedding(source, positions, source_lengths)
        mask = replace(masks.padding(source_lengths, source.shape[1]), window=self._window)
        rotation = self._rotation(positions)
        for layer in self.encoder:
            x = layer(x, mask, rotation)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def start(self, inputs: tuple[Tensor, Tensor]) -> DecoderState:
        """Encode (source ids, lengths) and project the memory once for every layer."""
        source, source_lengths = inputs
        memory = self.encode(source, source_lengths)
        keys_values = (layer.cross_attention.keys_values(memory) for layer in self._decoder_layers)
        return DecoderState(
            lengths=torch.zeros_like(source_lengths),
            n_sentences=len(source),
            # Heads are views until here: what every step reads is better copied once than at every step.
            memory=tuple((key.contiguous(), value.contiguous()) for key, value in keys_values),
            memory_mask=masks.padding(source_lengths, source.shape[1]),
        )

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        advanced, positions, mask = state.advance(counts, ids.shape[1], window=self._window)
        x = self.target_embedding(ids, positions)
        rotation = self._rotation(positions)
        past = GrowingPast(state.past)
        for layer, memory in zip(self._decoder_layers, state.memory, strict=True):
            x = layer.step(x, past, memory, mask, state.memory_mask, rotation)
        logits = tap(self, "logits", self.output(self.decoder_norm(last_real(x, counts))))
        return logits, replace(advanced, past=past.grown()).forget(self._window)

    @property
    def _decoder_layers(self) -> Iterable[DecoderLayer]:
        """The decoder, of which nn.ModuleList says only that it holds modules."""
        return cast(Iterable[DecoderLayer], self.decoder)

    def _rotation(self, positions: Tensor) -> Rotation | None:
        if self.config.positions != "rotary":
            return None
        return Rotation(positions, self.config.d_model // self.config.n_heads, base=self.config.position_base)

    @property
    def _window(self) -> int | None:
        return self.config.window or None


def _residual(config: TransformerConfig) -> nn.Module:
    norm = partial(make_norm, config.norm, config.d_model)
    return make_residual(config.norm_order, norm, dropout=config.dropout)


def _feed_forward(config: TransformerConfig) -> nn.Module:
    kind = FeedForward if config.feed_forward == "plain" else GatedFeedForward
    return kind(config.d_model, config.d_ff, activation=config.activation, dropout=config.dropout)


def _final_norm(config: TransformerConfig) -> nn.Module:
    """With pre-norm the sum that leaves the last layer was never normalised."""
    return make_norm(config.norm, config.d_model) if config.norm_order == "pre" else nn.Identity()


def _input_embedding(config: TransformerConfig, tokens: TokenEmbedding, positions: str) -> InputEmbedding:
    encoding = make_positions(positions, config.d_model, limit=config.max_positions, base=config.position_base)
    return InputEmbedding(tokens, encoding, concatenate=config.join_positions == "concatenate", dropout=config.dropout)
