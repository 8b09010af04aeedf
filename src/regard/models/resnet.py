"""ResNet: a deep convolutional network whose blocks add to what they read (He et al. 2016), and the same without skips.

    image ── stem ── stages of blocks ── mean over all places ── head

Each stage after the first halves the image and doubles the width. For small images (section 4.2) three stages of n basic
blocks make 6n + 2 layers; for large ones (section 4.1) four stages, of bottlenecks where there are 50 layers or more.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, check_range, option
from regard.errors import ConfigError, UsageError, did_you_mean
from regard.models.model_config import ModelConfig
from regard.parts.convolution import (
    IMAGE_NORMS,
    Concatenation,
    ImageConvolution,
    PlainBlock,
    ResidualBlock,
    Sum,
    check_images,
)
from regard.parts.heads import SequenceHead
from regard.parts.initialisation import initialise
from regard.parts.stack import Stack
from regard.parts.taps import listening, tap

# How much wider a block's output is than its 3 × 3 convolutions.
EXPANSIONS = {"basic": 1, "bottleneck": 4}


@dataclass(frozen=True, kw_only=True)
class ResNetBackboneConfig(ModelConfig):
    """The sizes of a ResNet without its head, whatever the images; the defaults are the paper's 20 layers for small ones."""

    n_blocks: tuple[int, ...] = option((3, 3, 3), "blocks per stage", least=1, most=1_000)
    width: int = option(16, "channels of the first stage; each further stage has twice as many", least=1, most=65_536)
    block: str = option(
        "basic",
        "two 3 × 3 convolutions (basic), or 1 × 1, 3 × 3 and 1 × 1 to four times the width (bottleneck)",
        choices=tuple(EXPANSIONS),
    )
    stem: str = option(
        "small",
        "first layer: one 3 × 3 convolution (small), or 7 × 7 with pooling, to a quarter of the image's edge (large)",
        choices=("small", "large"),
    )
    skip: str = option(
        "add", "skip connection: what a block does with its input", choices=("add", "concatenate", "none")
    )
    join: str = option(
        "before", "where the skip joins: before or after the block's last activation", choices=("before", "after")
    )
    norm: str = option("batch", "batch normalisation, or none", choices=tuple(IMAGE_NORMS))
    activation: str = option("relu", "activation of the blocks", choices=("relu", "tanh", "sigmoid"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n_blocks:
            raise ConfigError("model.n_blocks names no stage.", "Give the blocks of each stage: [3, 3, 3].")
        check_range(self.width * 2 ** (len(self.n_blocks) - 1), {"most": 65_536}, "The width of the last stage")


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ResNetBackboneConfig):
    """The sizes of a ResNet, and what follows from its images, which may be of any size."""

    n_channels: int = option(REQUIRED, "colour channels: 1 or 3; follows from the data", least=1)
    n_outputs: int = option(REQUIRED, "number of classes; follows from the data", least=1)


@dataclass(frozen=True)
class BlockShape:
    """What a block reads and hands on."""

    n_inputs: int
    width: int  # of its 3 × 3 convolutions
    n_outputs: int
    stride: int

    @property
    def kept(self) -> bool:
        """Whether it hands on the shape that it reads, so that its input can stand for its output."""
        return self.n_inputs == self.n_outputs and self.stride == 1


def block_shapes(config: ResNetBackboneConfig) -> list[list[BlockShape]]:
    """Return the shapes of all blocks, by stage: the first block of each widens, and of each but the first halves."""
    stages: list[list[BlockShape]] = []
    n_inputs = config.width
    for number, n_blocks in enumerate(config.n_blocks):
        width = config.width * 2**number
        n_outputs = width * EXPANSIONS[config.block]
        first = BlockShape(n_inputs, width, n_outputs, stride=2 if number else 1)
        others = [BlockShape(n_outputs, width, n_outputs, stride=1)] * (n_blocks - 1)
        stages.append([first, *others])
        n_inputs = n_outputs
    return stages


def map_edge(config: ResNetBackboneConfig, image_size: int) -> int:
    """Return how many places an edge of the last map has, of an image with so many pixels to its edge."""
    stride = (4 if config.stem == "large" else 1) * math.prod(stage[0].stride for stage in block_shapes(config))
    return math.ceil(image_size / stride)


class Stem(nn.Module):
    """What the first stage reads."""

    def __init__(self, layer: ImageConvolution, pool: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.pool = pool

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to (B, width, H', W')."""
        return tap(self, "output", self.pool(self.layer(images)))


class Stage(nn.Module):
    """Blocks of one width."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.block = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, C', H', W')."""
        for block in self.block:
            x = block(x)
        return x


class ResNetBackbone(nn.Module):
    """A convolutional network with skips, or without; `draw_weights` gives it its first ones."""

    def __init__(self, config: ResNetBackboneConfig, *, n_channels: int) -> None:
        super().__init__()
        self.config = config
        self.n_channels = n_channels
        self.stem = make_stem(config, n_channels)
        shapes = block_shapes(config)
        self.stage = nn.ModuleList(Stage(make_block(config, shape) for shape in stage) for stage in shapes)
        self.d_features = shapes[-1][-1].n_outputs

    def draw_weights(self, seed: int) -> None:
        """Draw the first weights."""
        initialise(self, seed)

    def features(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to what was found at each place of the last map (B, H' · W', D), row by row."""
        check_images(images, self.n_channels)
        x: Tensor = self.stem(images)
        for stage in self.stage:
            x = stage(x)
        return tap(self, "states", x.flatten(2).transpose(1, 2))

    def stacks(self) -> tuple[Stack, ...]:
        """The blocks of all stages, for layer-wise learning rates."""
        return (Stack([self.get_submodule(name) for name in self.block_names], below=(self.stem,)),)

    @property
    def block_names(self) -> dict[str, bool]:
        """The names of all blocks in their order, each with whether it can be left out."""
        return {
            f"stage.{number}.block.{place}": shape.kept
            for number, stage in enumerate(block_shapes(self.config))
            for place, shape in enumerate(stage)
        }

    @contextlib.contextmanager
    def without_blocks(self, names: Iterable[str]) -> Iterator[None]:
        """Leave blocks out inside the `with`: each hands on what it read. For a trained network (Veit et al. 2016, 4.1).

        names: as `block_names` has them. A block that changes the shape of what it reads cannot be left out.
        """
        names = set(names)
        _check_left_out(names, self.block_names)
        outputs = {f"{name}.output" for name in names}
        heard = torch.empty(0)

        def hand_on(name: str, output: Tensor) -> Tensor:
            nonlocal heard
            heard = heard if name in outputs else output
            return heard

        with listening(self, ["stem.output", *(f"{name}.output" for name in self.block_names)], hand_on):
            yield


class ResNet(ResNetBackbone):
    """A backbone with a classification head."""

    config: ResNetConfig

    def __init__(self, config: ResNetConfig, *, seed: int = 0) -> None:
        super().__init__(config, n_channels=config.n_channels)
        self.head = SequenceHead(self.d_features, config.n_outputs, dropout=0.0)
        self.draw_weights(seed)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to logits (B, N)."""
        return tap(self, "logits", self.head(self.features(images).mean(1)))


def _check_left_out(names: set[str], known: dict[str, bool]) -> None:
    possible = [name for name, kept in known.items() if kept]
    for name in sorted(names):
        if name not in known:
            raise UsageError(f"The network has no block '{name}'.", did_you_mean(name, possible))
        if not known[name]:
            raise UsageError(
                f"{name} changes the shape of what it reads, and cannot be left out.",
                f"Leave out some of: {', '.join(possible)}.",
            )


def make_stem(config: ResNetBackboneConfig, n_channels: int) -> Stem:
    """Its first layer, of which the large one leaves a quarter of the image's edge."""
    layer = partial(ImageConvolution, n_channels, config.width, norm=config.norm, activation=config.activation)
    if config.stem == "large":
        return Stem(layer(size=7, stride=2), nn.MaxPool2d(3, stride=2, padding=1))
    return Stem(layer(), nn.Identity())


def make_block(config: ResNetBackboneConfig, shape: BlockShape) -> nn.Module:
    """One of its blocks."""
    layer = partial(ImageConvolution, norm=config.norm)
    inside = config.activation
    # The last activation belongs to the layers if the skip joins after it, else to the block.
    last, at_the_end = ("none", inside) if config.join == "before" or config.skip == "none" else (inside, "none")
    if config.block == "bottleneck":
        layers = nn.Sequential(
            layer(shape.n_inputs, shape.width, size=1, activation=inside),
            # Here and not in the 1 × 1 before it, which would never look at three places of four.
            layer(shape.width, shape.width, stride=shape.stride, activation=inside),
            layer(shape.width, shape.n_outputs, size=1, activation=last),
        )
    else:
        layers = nn.Sequential(
            layer(shape.n_inputs, shape.width, stride=shape.stride, activation=inside),
            layer(shape.width, shape.n_outputs, activation=last),
        )
    if config.skip == "none":
        return PlainBlock(layers, activation=at_the_end)
    shortcut = (
        nn.Identity()
        if shape.kept
        else layer(shape.n_inputs, shape.n_outputs, size=1, stride=shape.stride, activation="none")
    )
    join = Sum() if config.skip == "add" else Concatenation(shape.n_outputs, norm=config.norm)
    return ResidualBlock(layers, shortcut, join, activation=at_the_end)
