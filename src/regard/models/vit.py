"""ViT, the Vision Transformer: an image read as a sentence of patches (Dosovitskiy et al. 2021).

    image ── patches + class token + positions ── N × [self-attention, feed-forward] ── norm ── class token ── head

What differs from BERT: patches in the place of tokens, the norm before each sublayer and once at the end, nothing padded
and nothing masked.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
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
from regard.parts.stack import Stack
from regard.parts.taps import anybody_listens, tap

EPSILON = 1e-12  # what the norms of the published model add to the variance


@dataclass(frozen=True, kw_only=True)
class ViTBackboneConfig(ModelConfig):
    """The sizes of a ViT without its head, whatever the images; the defaults are those of the paper's base model."""

    patch_size: int = option(16, "pixels of a patch's edge", least=1)
    n_layers: int = option(12, "number of layers", least=1, most=1_000)
    n_heads: int = option(12, "attention heads per layer", least=1, most=65_536)
    d_model: int = option(768, "width of the residual stream (embedding size)", least=1, most=65_536)
    d_ff: int = option(3072, "hidden width of the feed-forward network", least=1, most=1_048_576)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ViTBackboneConfig):
    """The sizes of a ViT, and what follows from its images."""

    n_channels: int = option(REQUIRED, "colour channels: 1 or 3; follows from the data", least=1)
    image_size: int = option(REQUIRED, "pixels of an image's edge; follows from the data", least=1)
    n_outputs: int = option(REQUIRED, "number of classes; follows from the data", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_patches(self.image_size, self.patch_size)


class ViTBackbone(nn.Module):
    """A Transformer encoder over patches; `draw_weights` gives it its first ones."""

    def __init__(self, config: ViTBackboneConfig, *, n_channels: int, image_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = PatchEmbedding(
            n_channels, image_size, config.patch_size, config.d_model, dropout=config.dropout
        )
        self.encoder = nn.ModuleList(make_layer(config) for _ in range(config.n_layers))
        self.encoder_norm = LayerNorm(config.d_model, epsilon=EPSILON)

    def draw_weights(self, seed: int) -> None:
        """Draw the first weights: Xavier's, as the authors' code has them; N(0, 0.02²) is too narrow for small models."""
        initialise(self, seed)
        # As wide as the patches they are added to; else where a patch lies is hardly seen, and learned late.
        with torch.no_grad():
            self.embedding.positions.weight.mul_(math.sqrt(self.config.d_model))

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the patches."""
        edge = math.isqrt(self.embedding.n_patches)
        return edge, edge

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a patch passes, for layer-wise learning rates."""
        return (Stack(self.encoder, below=(self.embedding,)),)

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


class ViT(ViTBackbone):
    """A backbone with a classification head."""

    config: ViTConfig

    def __init__(self, config: ViTConfig, *, seed: int = 0) -> None:
        super().__init__(config, n_channels=config.n_channels, image_size=config.image_size)
        self.head = SequenceHead(config.d_model, config.n_outputs, dropout=0.0)
        self.draw_weights(seed)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to logits (B, N), from what the class token has heard."""
        # What the patches make of the last layer is read by nobody, and computed only for those who look inside.
        states = self.encode(images, n_states=None if anybody_listens() else 1)
        return tap(self, "logits", self.head(states[:, 0]))

    @property
    def last_layers(self) -> tuple[nn.Module, nn.Module]:
        """The last norm and the output layer, which `read_out` applies in turn."""
        return self.encoder_norm, self.head.output

    def read_out(self, x: Tensor) -> Tensor:
        """From the residual stream (B, 1 + P, D) to logits (B, N), from the class token: the last norm and the head."""
        logits: Tensor = self.head(self.encoder_norm(x[:, 0]))
        return logits


def make_layer(config: ViTBackboneConfig) -> EncoderLayer:
    """One of its layers."""
    attention = MultiHeadAttention(config.d_model, config.n_heads)
    feed_forward = FeedForward(config.d_model, config.d_ff, activation="gelu", dropout=0.0)
    return EncoderLayer(
        attention, feed_forward, lambda: PreNorm(LayerNorm(config.d_model, epsilon=EPSILON), dropout=config.dropout)
    )
