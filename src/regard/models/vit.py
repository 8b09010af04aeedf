"""ViT: an image read as a sentence of patches (Dosovitskiy et al. 2021).

    image ── patches + class token + positions ── N × [self-attention, feed-forward] ── norm ── class token ── head

What differs from BERT: patches in the place of tokens, the norm before each sublayer and once at the end, nothing padded
and nothing masked.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.model_config import ModelConfig
from regard.parts import masks
from regard.parts.attention import MultiHeadAttention
from regard.parts.encoder_layer import EncoderLayer
from regard.parts.feedforward import FeedForward
from regard.parts.heads import SequenceHead
from regard.parts.initialisation import initialise
from regard.parts.norms import LayerNorm
from regard.parts.patches import PatchEmbedding, check_patches
from regard.parts.residual import PreNorm
from regard.parts.taps import anybody_listens, tap

EPSILON = 1e-12  # what the norms of the published model add to the variance


@dataclass(frozen=True, kw_only=True)
class ViTTrunkConfig(ModelConfig):
    """The sizes of a ViT without its head; the defaults are those of the paper's base model."""

    n_channels: int  # 1 of grey images, 3 of colour
    image_size: int  # pixels of an edge
    patch_size: int = 16  # pixels of an edge
    n_layers: int = 12
    n_heads: int = 12
    d_model: int = 768
    d_ff: int = 3072
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise ConfigError(f"model.{field.name} is at least 1, not {value}.", f"Correct model.{field.name}.")
        check_patches(self.image_size, self.patch_size)


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ViTTrunkConfig):
    """The sizes of a ViT."""

    n_outputs: int  # classes


class ViTTrunk(nn.Module):
    """A Transformer encoder over patches; `draw_weights` gives it its first ones."""

    def __init__(self, config: ViTTrunkConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = PatchEmbedding(
            config.n_channels, config.image_size, config.patch_size, config.d_model, dropout=config.dropout
        )
        self.encoder = nn.ModuleList(make_layer(config) for _ in range(config.n_layers))
        self.encoder_norm = LayerNorm(config.d_model, epsilon=EPSILON)

    def draw_weights(self, seed: int) -> None:
        """Draw the first weights: Xavier's, as the authors' code has them; N(0, 0.02²) is too narrow for small models."""
        initialise(self, seed)
        # As wide as the patches they are added to; else where a patch lies is hardly seen, and learned late.
        with torch.no_grad():
            self.embedding.positions.weight.mul_(math.sqrt(self.config.d_model))

    def features(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to the states of the patches (B, P, D), row by row: what a captioner attends to."""
        return self.encode(images)[:, 1:]

    def encode(self, images: Tensor, *, n_states: int | None = None) -> Tensor:
        """(B, C, H, W) to the last states (B, 1 + P, D), the class token's first; or to the first n_states of them."""
        x: Tensor = self.embedding(images)
        *others, last = self.encoder
        for layer in others:
            x = layer(x, masks.EVERYTHING)
        x = last(x, masks.EVERYTHING, n_states=n_states)
        states: Tensor = self.encoder_norm(x)
        return tap(self, "states", states)


class ViT(ViTTrunk):
    """A trunk with a head, which names what an image shows."""

    config: ViTConfig

    def __init__(self, config: ViTConfig, *, seed: int = 0) -> None:
        super().__init__(config)
        self.head = SequenceHead(config.d_model, config.n_outputs, dropout=0.0)
        self.draw_weights(seed)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to logits (B, N), from what the class token has heard."""
        # What the patches make of the last layer is read by nobody, and computed only for those who look inside.
        states = self.encode(images, n_states=None if anybody_listens() else 1)
        return tap(self, "logits", self.head(states[:, 0]))


def make_layer(config: ViTTrunkConfig) -> EncoderLayer:
    """One of its layers."""
    attention = MultiHeadAttention(config.d_model, config.n_heads)
    feed_forward = FeedForward(config.d_model, config.d_ff, activation="gelu", dropout=0.0)
    return EncoderLayer(
        attention, feed_forward, lambda: PreNorm(LayerNorm(config.d_model, epsilon=EPSILON), dropout=config.dropout)
    )
