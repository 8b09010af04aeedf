"""ConvNet: convolution, ReLU and pooling, again and again; what came before residual networks (LeCun et al. 1998).

    image ── N × [convolution, ReLU, pooling] ── mean over all places ── head

Each layer looks for more features on an image half as large, so that the last ones see most of it.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.errors import ConfigError
from regard.models.model_config import ModelConfig
from regard.parts.convolution import ImageConvolution, check_images
from regard.parts.heads import SequenceHead
from regard.parts.initialisation import initialise
from regard.parts.stack import Stack
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class ConvNetConfig(ModelConfig):
    """The sizes of a ConvNet; images may have any number of pixels."""

    n_channels: int = option(REQUIRED, "colour channels: 1 or 3; follows from the data", least=1)
    n_outputs: int = option(REQUIRED, "number of classes; follows from the data", least=1)
    widths: tuple[int, ...] = option((32, 64, 128), "output channels of each layer", least=1, most=65_536)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.widths:
            raise ConfigError("model.widths names no layer.", "Give the width of each layer: [32, 64, 128].")


class ConvNet(nn.Module):
    """A plain convolutional network, which names what an image shows."""

    def __init__(self, config: ConvNetConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(
            ImageConvolution(below, above, norm="none", activation="relu")
            for below, above in pairwise((config.n_channels, *config.widths))
        )
        self.head = SequenceHead(config.widths[-1], config.n_outputs, dropout=0.0)
        initialise(self, seed)

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to logits (B, N)."""
        return tap(self, "logits", self.head(self.features(images).mean(1)))

    def stacks(self) -> tuple[Stack, ...]:
        """The convolutions, for layer-wise learning rates."""
        return (Stack(self.layers),)

    def features(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to what was found at each place of the last map (B, H' · W', D), row by row."""
        check_images(images, self.config.n_channels)
        x = images
        for layer in self.layers:
            # An odd row at the edge is pooled alone: so an image may be of any size.
            x = F.max_pool2d(layer(x), 2, ceil_mode=True)
        return tap(self, "states", x.flatten(2).transpose(1, 2))
