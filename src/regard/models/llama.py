"""Llama: a decoder-only Transformer, as language models have been built since (Touvron et al. 2023).

    ids ── embedding ── N × [masked self-attention, gated feed-forward] ── norm ── output ── logits

What differs from GPT: positions turn queries and keys (rotary) and have no end; RMS norms; a gated feed-forward network; no
biases; and several queries share a key and a value (Ainslie et al. 2023), so that the KV cache is smaller. Its kin are
this network with a few choices: Mistral with a window, Qwen2 with biases in attention.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.errors import ConfigError
from regard.models.decoder_only import DecoderOnly
from regard.models.model_config import ModelConfig
from regard.parts.attention import scaled_dot_product_attention, split_heads
from regard.parts.attention_kernels import attend
from regard.parts.decoder_state import GrowingCache
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import GatedFeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import Linear
from regard.parts.masks import Mask
from regard.parts.norms import RMSNorm
from regard.parts.positions import Rotation, positions_inside
from regard.parts.residual import PreNorm
from regard.parts.score_formula import DotProductFormula
from regard.parts.taps import listened, tap


@dataclass(frozen=True, kw_only=True)
class NoScaling(ModelConfig):
    """Rotary angles as their base gives them."""


@dataclass(frozen=True, kw_only=True)
class LinearScaling(ModelConfig):
    """Every angle divided by one factor: so many times as many positions look like those that were learned."""

    factor: float = option(2.0, "how many times as long a context", least=1)

    def slowed(self, wavelengths: Tensor) -> Tensor:
        """How many positions each angle takes for a turn, (K/2,), to what each angle is multiplied by."""
        return torch.full_like(wavelengths, 1 / self.factor)


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling(ModelConfig):
    """Angles that turn slowly divided by a factor, quick ones kept, those between smoothly (Llama 3.1)."""

    factor: float = option(8.0, "how many times as long a context", least=1)
    low: float = option(1.0, "turns within the first context up to which an angle is divided by the factor", above=0)
    high: float = option(4.0, "turns within the first context from which on an angle is kept", above=0)
    first_context: int = option(8192, "context length that was trained with first", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise ConfigError(
                f"model.rotary_scaling.low = {self.low} is not below high = {self.high}.",
                "Choose high above low; Llama 3.1 has 1 and 4.",
            )

    def slowed(self, wavelengths: Tensor) -> Tensor:
        """How many positions each angle takes for a turn, (K/2,), to what each angle is multiplied by."""
        n_turns = self.first_context / wavelengths
        kept = ((n_turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return kept + (1 - kept) / self.factor


ROTARY_SCALINGS: dict[str, NoScaling | LinearScaling | Llama3Scaling] = {
    "none": NoScaling(),
    "linear": LinearScaling(),
    "llama3": Llama3Scaling(),
}


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(ModelConfig):
    """The sizes of a Llama; the defaults are as small as GPT-2's smallest."""

    vocab: int = option(REQUIRED, "vocabulary size; follows from the data", least=1)
    n_layers: int = option(12, "number of layers", least=1, most=1_000)
    n_heads: int = option(12, "attention heads per layer", least=1, most=65_536)
    n_key_heads: int = option(
        4, "key-value heads (grouped-query attention): each is shared by n_heads / n_key_heads queries", least=1
    )
    d_model: int = option(768, "width of the residual stream (embedding size)", least=1, most=65_536)
    d_head: int = option(0, "width of a head; 0 for d_model / n_heads", least=0, most=65_536)
    d_ff: int = option(2048, "hidden width of the gated feed-forward network", least=1, most=1_048_576)
    context: int = option(1024, "tokens per training window; positions have no end", least=1)
    position_base: float = option(10000.0, "base of the rotary angles", above=0)
    rotary_scaling: NoScaling | LinearScaling | Llama3Scaling = option(
        ROTARY_SCALINGS["none"], "rotary angles slowed for a longer context", kinds=ROTARY_SCALINGS
    )
    biases: str = option(
        "none",
        "biases of attention: none, of queries, keys and values (inputs), or of its output too (all)",
        choices=("none", "inputs", "all"),
    )
    epsilon: float = option(1e-6, "what the RMS norms add to the mean square", above=0, most=1)
    tied: str = option(
        "all", "weight tying: one matrix for embedding and output (all), or none", choices=("all", "none")
    )
    dropout: float = option(0.0, "dropout rate", least=0, below=1)
    window: int = option(0, "self-attention window: how far back a token attends; 0 for everywhere", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        shared = [("n_heads", "n_key_heads")] if self.d_head else [("d_model", "n_heads"), ("n_heads", "n_key_heads")]
        for whole, part in shared:
            if getattr(self, whole) % getattr(self, part):
                raise ConfigError(
                    f"model.{whole} = {getattr(self, whole)} cannot be divided by {part} = {getattr(self, part)}.",
                    f"Choose model.{whole} as a multiple of model.{part}.",
                )

    @property
    def head_width(self) -> int:
        """The width of a head."""
        return self.d_head or self.d_model // self.n_heads


class GroupedQueryAttention(nn.Module):
    """Self-attention whose heads share keys and values in groups."""

    ablation_tap = "output"

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        d_head = config.head_width
        self.n_heads, self.n_key_heads = config.n_heads, config.n_key_heads
        inputs, output = config.biases != "none", config.biases == "all"
        self.query = Linear(config.d_model, config.n_heads * d_head, bias=inputs, role="query")
        self.key = Linear(config.d_model, config.n_key_heads * d_head, bias=inputs)
        self.value = Linear(config.d_model, config.n_key_heads * d_head, bias=inputs)
        self.output = Linear(config.n_heads * d_head, config.d_model, bias=output, role="residual_output")
        self.scale = d_head**-0.5

    def forward(self, x: Tensor, mask: Mask, rotation: Rotation, cache: GrowingCache | None = None) -> Tensor:
        """(B, T, D) to the same; with a KV cache, attending to what it holds too, and it grows by them."""
        key, value = self.keys_values(x, rotation)
        if cache is not None:
            key, value = cache.extend(key, value)
        return self.read(x, key, value, mask, rotation=rotation)

    def keys_values(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        """(B, S, D) to keys and values (B, G, S, K): what a KV cache keeps."""
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
            heads = scaled_dot_product_attention(self, query, key, value, mask, scale=self.scale)
        return tap(self, "output", self.output(heads.transpose(1, 2).flatten(2)))

    def formula(self) -> DotProductFormula:
        """How a score comes about."""
        return DotProductFormula(scale=self.scale, n_heads=self.n_heads, n_key_heads=self.n_key_heads)


def make_norm(config: LlamaConfig) -> RMSNorm:
    """One of its norms."""
    return RMSNorm(config.d_model, epsilon=config.epsilon)


class LlamaBlock(nn.Module):
    """Masked self-attention, then the gated feed-forward network, each with its residual connection, pre-norm."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attention = GroupedQueryAttention(config)
        self.self_attention_residual = PreNorm(make_norm(config), dropout=config.dropout)
        self.feed_forward = GatedFeedForward(config.d_model, config.d_ff, activation="silu", dropout=0.0)
        self.feed_forward_residual = PreNorm(make_norm(config), dropout=config.dropout)

    def forward(self, x: Tensor, mask: Mask, rotation: Rotation, cache: GrowingCache | None = None) -> Tensor:
        """(B, T, D) to the same: all positions, or some more behind a KV cache, which grows by them."""
        x = self.self_attention_residual(x, lambda x: self.self_attention(x, mask, rotation, cache))
        x = self.feed_forward_residual(x, self.feed_forward)
        return x


class Llama(DecoderOnly):
    """A language model; `forward` while training, `start` and `step` while generating."""

    def __init__(self, config: LlamaConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.window = config.window or None
        tokens = TokenEmbedding(config.vocab, config.d_model, scaled=False)
        self.embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(LlamaBlock(config) for _ in range(config.n_layers))
        self.decoder_norm = make_norm(config)
        self.output = OutputLayer(config.vocab, config.d_model, tied_to=tokens if config.tied == "all" else None)
        # Heads of odd width cannot turn: say so now, and not at the first batch.
        self.rotation(torch.arange(0, device="cpu"))
        initialise(self, seed, deviation=lambda role, matrix: 0.02)

    @property
    def max_length(self) -> int | None:
        """The longest sequence: any."""
        return self.config.max_length

    @property
    def context(self) -> int | None:
        """How many tokens to write on from: distances that training never showed mislead it. None within a window."""
        return None if self.config.window else self.config.context

    def rotation(self, positions: Tensor) -> Rotation:
        """How positions (T,) or (B, T) turn queries and keys."""
        config, scaling = self.config, self.config.rotary_scaling
        slowed = None if isinstance(scaling, NoScaling) else scaling.slowed
        return Rotation(positions, config.head_width, base=config.position_base, slowed=slowed)

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
        """(B, T, D) at positions (T,) or (B, T) through all blocks, to the same."""
        rotation = self.rotation(positions)
        for block in self.decoder:
            x = block(x, mask, rotation, cache)
        return x
