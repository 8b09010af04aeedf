"""Llama: a decoder alone, as language models have been built since (Touvron et al. 2023).

    ids ── embedding ── N × [masked self-attention, gated feed-forward] ── norm ── output ── logits

What differs from GPT: positions turn queries and keys (rotary) and have no end; RMS norms; a gated feed-forward network; no
biases; and several queries share a key and a value (Ainslie et al. 2023), so that the cache is smaller.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.decoder_only import Block, DecoderAlone
from regard.parts.attention import attend, attend_for, split_heads
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import GatedFeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import Linear
from regard.parts.masks import Mask
from regard.parts.norms import RMSNorm
from regard.parts.positions import Rotation
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

    def read(self, x: Tensor, key: Tensor, value: Tensor, mask: Mask, *, rotation: Rotation) -> Tensor:
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


class Llama(DecoderAlone):
    """A language model; `forward` while training, `start` and `step` while generating."""

    def __init__(self, config: LlamaConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.window = config.window or None
        tokens = TokenEmbedding(config.vocab, config.d_model, scaled=False)
        self.embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(make_block(config) for _ in range(config.n_layers))
        self.decoder_norm = RMSNorm(config.d_model)
        self.output = OutputLayer(config.vocab, config.d_model, tied_to=tokens)
        # Heads of odd width cannot turn: say so now, and not at the first batch.
        self.rotation(torch.arange(0, device="cpu"))
        initialise(self, seed, deviation=lambda name: 0.02)

    @property
    def max_length(self) -> None:
        """The longest sequence: any."""
        return None

    @property
    def context(self) -> int | None:
        """How many tokens to write on from: distances that training never showed mislead it. None within a window."""
        return None if self.config.window else self.config.context

    def rotation(self, positions: Tensor) -> Rotation:
        """How positions (T,) or (B, T) turn queries and keys."""
        return Rotation(positions, self.config.d_model // self.config.n_heads, base=self.config.position_base)


def make_block(config: LlamaConfig) -> Block:
    """One of its layers."""
    feed_forward = GatedFeedForward(config.d_model, config.d_ff, activation="silu", dropout=0.0)
    return Block(GroupedQueryAttention(config), feed_forward, lambda: RMSNorm(config.d_model), dropout=config.dropout)
