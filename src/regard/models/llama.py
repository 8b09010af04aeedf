"""Llama: a decoder alone, as language models have been built since (Touvron et al. 2023).

    ids ── embedding ── N × [masked self-attention, gated feed-forward] ── norm ── output ── logits

What differs from GPT: positions turn queries and keys (rotary) and have no end; RMS norms; a gated feed-forward network; no
biases; and several queries share a key and a value (Ainslie et al. 2023), so that the cache is smaller.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.parts.attention import attend, attend_for, split_heads
from regard.parts.cache import DecoderState, GrowingPast, last_real
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import GatedFeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import Linear
from regard.parts.masks import Mask
from regard.parts.norms import RMSNorm
from regard.parts.positions import Rotation, positions_inside
from regard.parts.residual import PreNorm
from regard.parts.taps import listened, tap


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """The sizes of a Llama; the defaults are as small as GPT-2's smallest."""

    vocab: int
    n_layers: int = 12
    n_heads: int = 12
    n_key_heads: int = 4  # so many keys and values; the queries of n_heads / n_key_heads share one
    d_model: int = 768
    d_ff: int = 2048
    context: int = 1024  # tokens of a window while training; positions have no end
    position_base: float = 10000.0
    dropout: float = 0.0
    window: int = 0  # attention reaches this far back; 0 for everywhere

    def __post_init__(self) -> None:
        sizes = ("vocab", "n_layers", "n_heads", "n_key_heads", "d_model", "d_ff", "context", "window")
        for name in sizes:
            value, least = getattr(self, name), 0 if name == "window" else 1
            if value < least:
                raise ConfigError(f"model.{name} is at least {least}, not {value}.", f"Correct model.{name}.")
        for whole, part in (("d_model", "n_heads"), ("n_heads", "n_key_heads")):
            if getattr(self, whole) % getattr(self, part):
                raise ConfigError(
                    f"model.{whole} = {getattr(self, whole)} cannot be divided by {part} = {getattr(self, part)}.",
                    f"Choose model.{whole} as a multiple of model.{part}.",
                )


class GroupedQueryAttention(nn.Module):
    """Self-attention whose heads share keys and values in groups, without biases."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        d_head = config.d_model // config.n_heads
        self.n_heads, self.n_key_heads = config.n_heads, config.n_key_heads
        self.query = Linear(config.d_model, config.n_heads * d_head, bias=False)
        self.key = Linear(config.d_model, config.n_key_heads * d_head, bias=False)
        self.value = Linear(config.d_model, config.n_key_heads * d_head, bias=False)
        self.output = Linear(config.n_heads * d_head, config.d_model, bias=False)
        self.scale = d_head**-0.5

    def keys_values(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys and values (B, G, S, K): what a cache keeps."""
        key, value = split_heads(self.key(x), self.n_key_heads), split_heads(self.value(x), self.n_key_heads)
        return tap(self, "key", rotation(key)), tap(self, "value", value)

    def read(self, x: Tensor, key: Tensor, value: Tensor, mask: Mask, rotation: Rotation) -> Tensor:
        """(B, T, D) attending to ready keys and values, to (B, T, D)."""
        query = tap(self, "query", rotation(split_heads(self.query(x), self.n_heads)))
        group = self.n_heads // self.n_key_heads
        if query.shape[2] == 1 and not listened(self, "scores", "weights"):
            # The one query of each head stands in a row with the others of its group, and the keys need no copies.
            row = query.reshape(len(query), self.n_key_heads, group, -1)  # (B, G, H / G, K)
            allowed = mask.tensor(1, key.shape[2], key.device)
            heads = attend(row, key, value, Mask(allowed), scale=self.scale)
            heads = tap(self, "heads", heads.reshape(query.shape))
        else:
            key, value = (one.repeat_interleave(group, dim=1) for one in (key, value))  # (B, H, S, K)
            heads = attend_for(self, query, key, value, mask, scale=self.scale)
        return tap(self, "output", self.output(heads.transpose(1, 2).flatten(2)))


class Block(nn.Module):
    """Masked self-attention, then the gated feed-forward network, each with its residual connection."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attention = GroupedQueryAttention(config)
        self.self_attention_residual = PreNorm(RMSNorm(config.d_model), dropout=config.dropout)
        self.feed_forward = GatedFeedForward(config.d_model, config.d_ff, activation="silu", dropout=0.0)
        self.feed_forward_residual = PreNorm(RMSNorm(config.d_model), dropout=config.dropout)

    def forward(self, x: Tensor, mask: Mask, rotation: Rotation, past: GrowingPast | None = None) -> Tensor:
        """(B, T, D) to the same: all positions, or some more after a past, which grows by them."""

        def attend(x: Tensor) -> Tensor:
            key, value = self.self_attention.keys_values(x, rotation)
            if past is not None:
                key, value = past.extend(key, value)
            return self.self_attention.read(x, key, value, mask, rotation)

        x = self.self_attention_residual(x, attend)
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class Llama(nn.Module):
    """A language model; `forward` while training, `start` and `step` while generating."""

    def __init__(self, config: LlamaConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        tokens = TokenEmbedding(config.vocab, config.d_model, scaled=False)
        self.embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.decoder_norm = RMSNorm(config.d_model)
        self.output = OutputLayer(config.vocab, config.d_model, tied_to=tokens)
        self._rotation(torch.arange(0))  # heads of odd width cannot turn: say so now, and not at the first batch
        initialise(self, seed, deviation=lambda name: 0.02)

    @property
    def max_length(self) -> None:
        """The longest sequence: any."""
        return None

    @property
    def context(self) -> int | None:
        """How many tokens to write on from: distances that training never showed mislead it. None within a window."""
        return None if self.config.window else self.config.context

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """ids (B, T), padded behind, to the logits (B, T, V) of what follows each.

        documents: (B, T), which document each token belongs to, if a row holds several; none sees another.
        """
        return tap(self, "logits", self.output(self.states(ids, documents)))

    def states(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """The last states (B, T, D), before the output layer."""
        mask = Mask(causal=True, window=self._window, documents=documents)
        positions = torch.arange(ids.shape[1], device=ids.device)
        if documents is not None:
            positions = positions_inside(documents)
        x, rotation = self.embedding(ids, positions), self._rotation(positions)
        for block in self.decoder:
            x = block(x, mask, rotation)
        states: Tensor = self.decoder_norm(x)
        return states

    def start(self, n_sentences: int) -> DecoderState:
        """The state of so many sentences that have read nothing."""
        return DecoderState.empty(n_sentences, self.output.weight.device)

    def step(self, state: DecoderState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        advanced, positions, mask = state.advance(counts, ids.shape[1], window=self._window)
        x, rotation = self.embedding(ids, positions), self._rotation(positions)
        past = GrowingPast(state.past)
        for block in self.decoder:
            x = block(x, mask, rotation, past)
        logits = tap(self, "logits", self.output(self.decoder_norm(last_real(x, counts))))
        return logits, replace(advanced, past=past.grown()).forget(self._window)

    @property
    def _window(self) -> int | None:
        return self.config.window or None

    def _rotation(self, positions: Tensor) -> Rotation:
        return Rotation(positions, self.config.d_model // self.config.n_heads, base=self.config.position_base)
