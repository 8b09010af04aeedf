"""Captioner: a backbone reads an image into a memory of its places, from which a decoder writes a text (Xu et al. 2015).

    image ── ViT: a state a patch ─────────────────────┬── memory
           or ResNet: a state a place ── linear, norm ─┘      │ keys, values
    target ids ── embedding ── the Transformer's decoder, or a recurrent one ── output ── logits

What differs from translation: the source is an image, of which nothing is padded and so nothing masked. A recurrent
decoder begins with the mean of the memory, since no recurrent encoder has ended anywhere; without attention that is all
it sees of the image (Vinyals et al. 2015).
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, did_you_mean
from regard.models.encoder_decoder import TransformerDecoder
from regard.models.model_config import ModelConfig
from regard.models.recurrent import Bridge, RecurrentDecoder, RecurrentLayers
from regard.models.resnet import CHOICES as RESNET_CHOICES
from regard.models.resnet import ResNetTrunk, ResNetTrunkConfig, map_edge
from regard.models.vit import ViTTrunk, ViTTrunkConfig
from regard.parts.attention import MultiHeadAttention
from regard.parts.convolution import check_image_size, check_images
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import FeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import Linear
from regard.parts.masks import EVERYTHING, Mask
from regard.parts.norms import LayerNorm
from regard.parts.positions import Sinusoidal
from regard.parts.recurrent import CELLS
from regard.parts.recurrent_state import RecurrentState
from regard.parts.residual import PreNorm
from regard.parts.scores import SCORES, StateAttention
from regard.parts.taps import tap

CHOICES = {
    "encoder": ("vit", "resnet"),
    "decoder": ("transformer", "recurrent"),
    "stem": RESNET_CHOICES["stem"],
    "cell": tuple(CELLS),
    "attention": ("none", *SCORES),
    "tied": ("target", "none"),
}


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig(ModelConfig):
    """The sizes and choices of a captioner; what belongs to the encoder or decoder that is not chosen has no effect."""

    vocab: int
    n_channels: int  # 1 of grey images, 3 of colour
    image_size: int  # pixels of an edge
    encoder: str = "vit"  # vit, resnet
    decoder: str = "transformer"  # transformer, recurrent
    d_model: int = 128  # the width of a token, of the memory, and of all that is a Transformer
    n_heads: int = 4  # of the ViT, and of the Transformer's decoder
    d_ff: int = 256  # the same
    patch_size: int = 8  # of the ViT: pixels of an edge
    n_encoder_layers: int = 4  # of the ViT
    n_blocks: tuple[int, ...] = (2, 2)  # of the ResNet, in each stage
    width: int = 64  # of the ResNet's first stage; each stage after it has twice as many
    stem: str = "large"  # of the ResNet: large leaves a quarter of the image's edge, small all of it
    n_decoder_layers: int = 4  # of either decoder
    cell: str = "gru"  # of the recurrent decoder: elman (with tanh), elman-relu, elman-sigmoid, lstm, gru
    d_state: int = 256  # of the recurrent decoder
    attention: str = "bilinear"  # of the recurrent decoder: none, dot, bilinear, additive
    dropout: float = 0.1
    tied: str = "target"  # one matrix for target and output; none

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"model.{name} cannot be '{value}'.", did_you_mean(value, choices))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise ConfigError(f"model.{field.name} is at least 1, not {value}.", f"Correct model.{field.name}.")
        if self.decoder == "recurrent" and self.attention == "dot" and self.d_state != self.d_model:
            raise ConfigError(
                f"model.attention = dot needs model.d_state and model.d_model of one width, not {self.d_state} and "
                f"{self.d_model}.",
                "Make them equal, or use model.attention = bilinear or additive.",
            )
        _ = self.trunk  # it refuses what it cannot be built of

    @property
    def trunk(self) -> ViTTrunkConfig | ResNetTrunkConfig:
        """The config of the network that reads the image."""
        if self.encoder == "resnet":
            return ResNetTrunkConfig(
                n_channels=self.n_channels, n_blocks=self.n_blocks, width=self.width, stem=self.stem
            )
        return ViTTrunkConfig(
            n_channels=self.n_channels,
            image_size=self.image_size,
            patch_size=self.patch_size,
            n_layers=self.n_encoder_layers,
            n_heads=self.n_heads,
            d_model=self.d_model,
            d_ff=self.d_ff,
            dropout=self.dropout,
        )


class Projection(nn.Module):
    """From what a ResNet found at a place to the width of the memory, normalised as the states of a ViT are."""

    def __init__(self, d_features: int, d_model: int) -> None:
        super().__init__()
        self.linear = Linear(d_features, d_model)
        self.norm = LayerNorm(d_model)

    def forward(self, features: Tensor) -> Tensor:
        """(B, P, d_features) to (B, P, D)."""
        projected: Tensor = self.norm(self.linear(features))
        return projected


class TransformerText(TransformerDecoder):
    """The decoder of a Transformer, with sinusoids and pre-norm."""

    window = None

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        tokens = TokenEmbedding(config.vocab, config.d_model)
        positions = Sinusoidal(config.d_model)
        self.target_embedding = InputEmbedding(tokens, positions, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(_decoder_layer(config) for _ in range(config.n_decoder_layers))
        self.decoder_norm = LayerNorm(config.d_model)
        self.output = _output(config, tokens)

    def decode(self, memory: Tensor, target: Tensor) -> Tensor:
        """memory (B, P, D) and target ids (B, T) from the start token, to the last states (B, T, D)."""
        x = self.target_embedding(target, torch.arange(target.shape[1], device=target.device))
        for layer in self.decoder:
            x = layer(x, memory, Mask(causal=True), EVERYTHING)
        states: Tensor = self.decoder_norm(x)
        return states


class RecurrentText(RecurrentDecoder):
    """A recurrent decoder whose first states are projections of the memory's mean (Xu et al. 2015, 3.1.2)."""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        tokens = TokenEmbedding(config.vocab, config.d_model)
        self.target_embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.bridge = Bridge(config.cell, config.d_model, config.d_state, n_layers=config.n_decoder_layers)
        self.decoder = RecurrentLayers(
            config.cell,
            config.d_model,
            config.d_state,
            attention=None if config.attention == "none" else _state_attention(config),
            n_layers=config.n_decoder_layers,
            dropout=config.dropout,
        )
        self.output = _output(config, tokens)

    def decode(self, memory: Tensor, target: Tensor) -> Tensor:
        """memory (B, P, D) and target ids (B, T) from the start token, to what the output layer reads (B, T, D)."""
        states: Tensor = self.decoder(self.embedded(target), self.start_from(memory))
        return states

    def start_from(self, memory: Tensor) -> RecurrentState:
        """Compute once what every step asks of the memory (B, P, D), before anything is written."""
        mean = memory.mean(1)
        first = self.bridge(tuple((mean,) * cell.n_tensors for cell in self.decoder.cells))
        return self.decoder.start(memory, first, EVERYTHING)


class Captioner(nn.Module):
    """Image and text; `forward` while training, `start` and `step` while decoding."""

    image: ViTTrunk | ResNetTrunk
    projection: nn.Module
    text: TransformerText | RecurrentText

    def __init__(self, config: CaptionerConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        trunk = config.trunk
        if isinstance(trunk, ViTTrunkConfig):
            self.image, self.projection = ViTTrunk(trunk), nn.Identity()
        else:
            self.image = ResNetTrunk(trunk)
            self.projection = Projection(self.image.d_features, config.d_model)
        self.text = TransformerText(config) if config.decoder == "transformer" else RecurrentText(config)
        self.image.draw_weights(seed)  # as where it names images
        initialise(self.projection, seed)
        initialise(self.text, seed)

    @property
    def output(self) -> OutputLayer:
        """From states to logits."""
        return self.text.output

    @property
    def max_length(self) -> int | None:
        """The longest caption: any."""
        return self.text.max_length

    @property
    def alignment_tap(self) -> str | None:
        """The tap that shows best which place of the image a token was read from; None without attention."""
        inside = self.text.alignment_tap
        return None if inside is None else f"text.{inside}"

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the places that the memory holds, row by row."""
        trunk, size = self.config.trunk, self.config.image_size
        edge = size // trunk.patch_size if isinstance(trunk, ViTTrunkConfig) else map_edge(trunk, size)
        return edge, edge

    def forward(self, images: Tensor, target: Tensor, image_of: Tensor | None = None) -> Tensor:
        """images (B, C, H, W); target ids (B, T) from the start token, padded behind; to logits (B, T, V).

        image_of: (B,), which of fewer images each caption belongs to: an image with several captions is read once.
        """
        return tap(self, "logits", self.output(self.states(images, target, image_of)))

    def states(self, images: Tensor, target: Tensor, image_of: Tensor | None = None) -> Tensor:
        """What the output layer reads, (B, T, D)."""
        memory = self.encode(images)
        return self.text.decode(memory if image_of is None else memory[image_of], target)

    def encode(self, images: Tensor) -> Tensor:
        """images (B, C, H, W) to the memory (B, P, D) of their places, row by row."""
        check_images(images, self.config.n_channels)
        check_image_size(images, self.config.image_size)  # a ResNet would read any, of other places than the grid's
        memory: Tensor = self.projection(self.image.features(images))
        return tap(self, "memory", memory)

    def start(self, inputs: Tensor) -> Any:
        """Encode images (B, C, H, W), and compute once what every step asks of their memory."""
        return self.text.start_from(self.encode(inputs))

    def step(self, state: Any, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, Any]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        states, after = self.text.read(state, ids, counts)
        return tap(self, "logits", self.output(states)), after


def _decoder_layer(config: CaptionerConfig) -> DecoderLayer:
    return DecoderLayer(
        MultiHeadAttention(config.d_model, config.n_heads),
        MultiHeadAttention(config.d_model, config.n_heads),
        FeedForward(config.d_model, config.d_ff, activation="relu", dropout=config.dropout),
        lambda: PreNorm(LayerNorm(config.d_model), dropout=config.dropout),
    )


def _state_attention(config: CaptionerConfig) -> StateAttention:
    as_they_are = dict.fromkeys(("query", "key", "value"), "identity")
    return StateAttention(config.attention, **as_they_are, d_query=config.d_state, d_memory=config.d_model)


def _output(config: CaptionerConfig, tokens: TokenEmbedding) -> OutputLayer:
    return OutputLayer(config.vocab, config.d_model, tied_to=tokens if config.tied == "target" else None)
