"""Image captioning: a backbone makes a memory of an image's places, and a decoder writes from it (Xu et al. 2015).

    image ── ViT: a state per patch ───────────────────┬── memory
           or ResNet: a state per place ── linear, norm ┘      │ keys, values
    target ids ── embedding ── the Transformer's decoder, or a recurrent one ── output ── logits

What differs from translation: the source is an image, of which nothing is padded and so nothing masked. A recurrent
decoder begins with the mean of the memory, since no recurrent encoder has ended anywhere; without attention that is all
it sees of the image (Vinyals et al. 2015).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.errors import ConfigError
from regard.models.encoder_decoder import TransformerDecoder
from regard.models.model_config import ModelConfig
from regard.models.recurrent import Bridge, RecurrentDecoder, RecurrentLayers
from regard.models.resnet import ResNetBackbone, ResNetBackboneConfig, map_edge
from regard.models.vit import ViTBackbone, ViTBackboneConfig
from regard.parts.attention import MultiHeadAttention
from regard.parts.convolution import check_image_size, check_images
from regard.parts.decoder_layer import DecoderLayer
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import FeedForward
from regard.parts.initialisation import initialise
from regard.parts.linear import Linear
from regard.parts.masks import EVERYTHING, Mask
from regard.parts.norms import LayerNorm
from regard.parts.patches import check_patches
from regard.parts.positions import Sinusoidal
from regard.parts.recurrent import CELLS
from regard.parts.recurrent_state import RecurrentState
from regard.parts.residual import PreNorm
from regard.parts.scores import SCORES, StateAttention
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class TransformerTextConfig(ModelConfig):
    """The sizes of a Transformer that writes captions."""

    n_layers: int = option(4, "number of layers", least=1, most=1_000)
    d_model: int = option(128, "width of the residual stream (embedding size), and of the memory", least=1, most=65_536)
    n_heads: int = option(4, "attention heads per layer", least=1, most=65_536)
    d_ff: int = option(256, "hidden width of the feed-forward network", least=1, most=1_048_576)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    tied: str = option("target", "weight tying: one matrix for target and output, or none", choices=("target", "none"))


@dataclass(frozen=True, kw_only=True)
class RecurrentTextConfig(ModelConfig):
    """The sizes and choices of a recurrent decoder that writes captions."""

    cell: str = option("gru", "recurrent cell; elman is a = tanh(W[a; x] + b)", choices=tuple(CELLS))
    n_layers: int = option(2, "number of layers", least=1, most=1_000)
    d_model: int = option(128, "embedding size, and width of the memory", least=1, most=65_536)
    d_state: int = option(256, "width of a hidden state", least=1, most=65_536)
    attention: str = option(
        "bilinear",
        "score of a query and a key; none for a decoder that sees the mean of the image alone",
        choices=("none", *SCORES),
    )
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    tied: str = option("target", "weight tying: one matrix for target and output, or none", choices=("target", "none"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention == "dot" and self.d_state != self.d_model:
            raise ConfigError(
                "model.decoder.attention = dot needs d_state and d_model of one width, not "
                f"{self.d_state} and {self.d_model}.",
                "Make them equal, or use model.decoder.attention = bilinear or additive.",
            )


# What a captioner may be made of, each kind with the sizes that it has where nothing is said.
ENCODERS: dict[str, ViTBackboneConfig | ResNetBackboneConfig] = {
    "vit": ViTBackboneConfig(patch_size=8, n_layers=4, n_heads=4, d_model=128, d_ff=256),
    "resnet": ResNetBackboneConfig(n_blocks=(2, 2), width=64, stem="large"),
}
DECODERS: dict[str, TransformerTextConfig | RecurrentTextConfig] = {
    "transformer": TransformerTextConfig(),
    "recurrent": RecurrentTextConfig(),
}


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig(ModelConfig):
    """The two networks of a captioner, each with a config of its own, and what follows from the data."""

    vocab: int = option(REQUIRED, "vocabulary size; follows from the data", least=1)
    n_channels: int = option(REQUIRED, "colour channels: 1 or 3; follows from the data", least=1)
    image_size: int = option(REQUIRED, "pixels of an image's edge; follows from the data", least=1)
    encoder: ViTBackboneConfig | ResNetBackboneConfig = option(
        ENCODERS["vit"], "backbone that reads the image", kinds=ENCODERS
    )
    decoder: TransformerTextConfig | RecurrentTextConfig = option(
        DECODERS["transformer"], "network that writes the caption", kinds=DECODERS
    )

    renamed: ClassVar[Mapping[str, str]] = {
        **{name: f"encoder.{name}" for name in ("patch_size", "n_blocks", "width", "stem")},
        **{name: f"decoder.{name}" for name in ("cell", "d_state", "attention", "tied")},
        **{name: f"encoder.{name} and decoder.{name}" for name in ("d_model", "n_heads", "d_ff", "dropout")},
        "n_encoder_layers": "encoder.n_layers",
        "n_decoder_layers": "decoder.n_layers",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.encoder, ViTBackboneConfig):
            check_patches(self.image_size, self.encoder.patch_size)

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the places that the memory holds, row by row."""
        size, encoder = self.image_size, self.encoder
        edge = size // encoder.patch_size if isinstance(encoder, ViTBackboneConfig) else map_edge(encoder, size)
        return edge, edge


class Projection(nn.Module):
    """From what a backbone found at a place to the width of the memory, normalised as the states of a ViT are."""

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

    def __init__(self, config: TransformerTextConfig, vocab: int) -> None:
        super().__init__()
        tokens = TokenEmbedding(vocab, config.d_model)
        positions = Sinusoidal(config.d_model)
        self.target_embedding = InputEmbedding(tokens, positions, concatenate=False, dropout=config.dropout)
        self.decoder = nn.ModuleList(_decoder_layer(config) for _ in range(config.n_layers))
        self.decoder_norm = LayerNorm(config.d_model)
        self.output = OutputLayer(vocab, config.d_model, tied_to=tokens if config.tied == "target" else None)

    def decode(self, memory: Tensor, target: Tensor) -> Tensor:
        """memory (B, P, D) and target ids (B, T) from the start token, to the last states (B, T, D)."""
        x = self.target_embedding(target, torch.arange(target.shape[1], device=target.device))
        for layer in self.decoder:
            x = layer(x, memory, Mask(causal=True), EVERYTHING)
        states: Tensor = self.decoder_norm(x)
        return states


class RecurrentText(RecurrentDecoder):
    """A recurrent decoder whose first states are projections of the memory's mean (Xu et al. 2015, 3.1.2)."""

    def __init__(self, config: RecurrentTextConfig, vocab: int) -> None:
        super().__init__()
        tokens = TokenEmbedding(vocab, config.d_model)
        self.target_embedding = InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)
        self.bridge = Bridge(config.cell, config.d_model, config.d_state, n_layers=config.n_layers)
        self.decoder = RecurrentLayers(
            config.cell,
            config.d_model,
            config.d_state,
            attention=None if config.attention == "none" else _state_attention(config),
            n_layers=config.n_layers,
            dropout=config.dropout,
        )
        self.output = OutputLayer(vocab, config.d_model, tied_to=tokens if config.tied == "target" else None)

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

    image: ViTBackbone | ResNetBackbone
    projection: nn.Module
    text: TransformerText | RecurrentText

    def __init__(self, config: CaptionerConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        encoder, decoder = config.encoder, config.decoder
        if isinstance(encoder, ViTBackboneConfig):
            self.image = ViTBackbone(encoder, n_channels=config.n_channels, image_size=config.image_size)
            same = encoder.d_model == decoder.d_model
            self.projection = nn.Identity() if same else Projection(encoder.d_model, decoder.d_model)
        else:
            self.image = ResNetBackbone(encoder, n_channels=config.n_channels)
            self.projection = Projection(self.image.d_features, decoder.d_model)
        if isinstance(decoder, TransformerTextConfig):
            self.text = TransformerText(decoder, config.vocab)
        else:
            self.text = RecurrentText(decoder, config.vocab)
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
    def read_out(self) -> Callable[[Tensor], Tensor] | None:
        """From the residual stream of the text (…, D) to logits (…, V); None for a recurrent decoder, which has none."""
        return self.text.read_out if isinstance(self.text, TransformerText) else None

    @property
    def last_layers(self) -> tuple[nn.Module, nn.Module] | None:
        """The last norm and the output layer, which `read_out` applies in turn."""
        return self.text.last_layers if isinstance(self.text, TransformerText) else None

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the places that the memory holds, row by row."""
        return self.config.grid

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


def _decoder_layer(config: TransformerTextConfig) -> DecoderLayer:
    return DecoderLayer(
        MultiHeadAttention(config.d_model, config.n_heads),
        MultiHeadAttention(config.d_model, config.n_heads),
        FeedForward(config.d_model, config.d_ff, activation="relu", dropout=config.dropout),
        lambda: PreNorm(LayerNorm(config.d_model), dropout=config.dropout),
    )


def _state_attention(config: RecurrentTextConfig) -> StateAttention:
    as_they_are = dict.fromkeys(("query", "key", "value"), "identity")
    return StateAttention(config.attention, **as_they_are, d_query=config.d_state, d_memory=config.d_model)
