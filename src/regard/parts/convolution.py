"""Convolution and batch norm: the same features are looked for at every place of a sequence or an image.

The features are shared, so a shift of the input shifts the features: what means something here means the same there. Over a
sequence, one layer relates positions at most k apart, at the cost of O(k·n·d²); the lectures set it beside recurrence and
self-attention (Vaswani et al. 2017, section 4). Over images, layers are stacked into blocks with a skip around them (He et
al. 2016, "Deep Residual Learning for Image Recognition") that joins before or after the last activation:

x ──┬── layers ──(join)── activation ──►      x ──┬── layers ── activation ──(join)──►
    └── shortcut ──┘                              └── shortcut ────────────────┘
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError, DataError, TrainingError
from regard.parts.taps import tap


class Convolution(nn.Module):
    """One linear layer over every `width` neighbouring positions; zeros stand outside of the sequence.

    Causal: a position sees itself and the width - 1 before it. Else it stands in the centre; of an even width, one more is
    seen after it than before.
    """

    def __init__(self, d_model: int, width: int, *, causal: bool) -> None:
        super().__init__()
        if width < 1:
            raise ConfigError(
                f"A convolution is at least 1 position wide, not {width}.", "Choose a width of 1 or more."
            )
        self.width = width
        self.n_before = width - 1 if causal else (width - 1) // 2
        self.features = nn.Linear(width * d_model, d_model)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T, D), of (B,) lengths, to (B, T, D).

        What stands behind a row's length changes nothing, and its features are zeros.
        """
        behind = None
        if lengths is not None:
            behind = (torch.arange(x.shape[1], device=x.device) >= lengths[:, None])[..., None]  # (B, T, 1)
            x = x.masked_fill(behind, 0.0)
        n_after = self.width - 1 - self.n_before
        padded = F.pad(x, (0, 0, self.n_before, n_after))
        # Joined and multiplied once: as fast as the library's convolution, which wants the features before the positions.
        neighbours = torch.cat([padded[:, shift : shift + x.shape[1]] for shift in range(self.width)], dim=-1)
        features = self.features(neighbours)  # from (B, T, width * D)
        return tap(self, "output", features if behind is None else features.masked_fill(behind, 0.0))


# -- over images --------------------------------------------------------------------------------------------------------


class BatchNorm(nn.Module):
    """(x - mean) / deviation of each channel over the batch and all places, times a scale (weight), plus a shift (bias).

    While training, mean and deviation are those of the batch, and running ones follow them, which serve in evaluation
    (Ioffe & Szegedy 2015). They are saved with the weights. One whose scale is frozen is as in evaluation at all times.
    """

    running_mean: Tensor
    running_variance: Tensor
    # Where a batch is shared by several processes: what adds a tensor up over all of them, so that gradients pass.
    total: Callable[[Tensor], Tensor] | None = None

    def __init__(self, n_channels: int, *, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_channels))
        self.bias = nn.Parameter(torch.zeros(n_channels))
        self.register_buffer("running_mean", torch.zeros(n_channels))
        self.register_buffer("running_variance", torch.ones(n_channels))
        self.momentum = momentum
        self.epsilon = epsilon

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """Its ones and zeros stay."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to the same."""
        learns = self.training and self.weight.requires_grad
        if learns and self.total is not None:
            return self._shared(x, self.total)
        if learns:
            _refuse_one_place(x.numel() // x.shape[1])
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_variance,
            self.weight,
            self.bias,
            learns,
            self.momentum,
            self.epsilon,
        )

    def _shared(self, x: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
        """The same with mean and variance over the shares of all processes."""
        count = float(total(x.new_tensor(x.numel() // x.shape[1])).detach())
        _refuse_one_place(count)
        mean = total(x.sum((0, 2, 3))) / count
        centred = x - mean[:, None, None]
        variance = total(centred.square().sum((0, 2, 3))) / count
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_variance.lerp_(variance * (count / (count - 1)), self.momentum)
        scale = self.weight * (variance + self.epsilon).rsqrt()
        return centred * scale[:, None, None] + self.bias[:, None, None]


def _refuse_one_place(count: float) -> None:
    if count == 1:
        raise TrainingError(
            "Batch norm learns nothing from a batch of one image that has shrunk to one place.",
            "Use larger batches or images, or model.norm = none.",
        )


def _unchanged(x: Tensor) -> Tensor:
    return x


IMAGE_NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": BatchNorm, "none": nn.Identity}
# The saturating ones show how gradients vanish.
IMAGE_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "none": _unchanged,
}


def by_pixel(x: Tensor) -> Tensor:
    """(B, C, H, W) to the same; on a CPU the channels of a pixel become neighbours in memory, where layers are faster."""
    if x.device.type != "cpu" or (x.stride(1) == 1 and x.is_contiguous(memory_format=torch.channels_last)):
        return x
    # Not contiguous(), which leaves images of one channel as they are, and torch takes these for the other order.
    return x.clone(memory_format=torch.channels_last)


def convolve(x: Tensor, layer: nn.Conv2d) -> Tensor:
    """(B, C, H, W) to what the layer makes of it.

    With pixels side by side, torch 2.13 on a CPU writes beyond its memory on the way back through a 1 × 1 convolution that
    has a stride and fewer than 8 inputs (16 with AVX-512; oneDNN's issue 6035). So the stride goes first, and alone.
    """
    if layer.kernel_size == (1, 1) and layer.stride != (1, 1):
        chosen = F.avg_pool2d(x, 1, stride=layer.stride)  # the mean of one place is that place
        return F.conv2d(chosen, layer.weight, layer.bias)
    convolved: Tensor = layer(x)
    return convolved


class ImageConvolution(nn.Module):
    """activation(norm(convolution(x))): a layer over the size × size neighbours of every place; zeros stand outside.

    With a stride of 2 it looks at every other place, and the image halves.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, size: int = 3, stride: int = 1, norm: str, activation: str
    ) -> None:
        super().__init__()
        # A norm takes the mean away, and a bias with it.
        biased = norm == "none"
        self.convolution = nn.Conv2d(n_inputs, n_outputs, size, stride=stride, padding=size // 2, bias=biased)
        self.norm = IMAGE_NORMS[norm](n_outputs)
        self.activation = IMAGE_ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, outputs, ⌈H / stride⌉, ⌈W / stride⌉), of an odd size."""
        return tap(self, "features", self.activation(self.norm(convolve(by_pixel(x), self.convolution))))


class Sum(nn.Module):
    """What the layers found, plus what went past them."""

    def forward(self, residual: Tensor, skipped: Tensor) -> Tensor:
        """(B, C, H, W), twice, to the same."""
        return residual + skipped


class Concatenation(nn.Module):
    """What the layers found beside what went past them, mixed by a 1 × 1 convolution back to the width of one."""

    def __init__(self, n_channels: int, *, norm: str) -> None:
        super().__init__()
        self.mix = ImageConvolution(2 * n_channels, n_channels, size=1, norm=norm, activation="none")

    def forward(self, residual: Tensor, skipped: Tensor) -> Tensor:
        """(B, C, H, W), twice, to the same."""
        mixed: Tensor = self.mix(torch.cat([residual, skipped], dim=1))
        return mixed


class PlainBlock(nn.Module):
    """activation(layers(x)): no skip, to show what it is for."""

    def __init__(self, layers: nn.Module, *, activation: str) -> None:
        super().__init__()
        self.layers = layers
        self.activation = IMAGE_ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to what the layers make of it."""
        return tap(self, "output", self.activation(tap(self, "residual", self.layers(x))))


class ResidualBlock(nn.Module):
    """activation(join(layers(x), shortcut(x))); the shortcut is the identity, or brings x to the layers' shape."""

    ablation_tap = "residual"

    def __init__(self, layers: nn.Module, shortcut: nn.Module, join: nn.Module, *, activation: str) -> None:
        super().__init__()
        self.layers = layers
        self.shortcut = shortcut
        self.join = join
        self.activation = IMAGE_ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to what the layers make of it."""
        residual = tap(self, "residual", self.layers(x))
        return tap(self, "output", self.activation(self.join(residual, self.shortcut(x))))


def check_images(images: Tensor, n_channels: int) -> None:
    """Refuse what is no batch of images (B, C, H, W), or has another number of channels."""
    if images.dim() != 4:
        raise DataError(
            f"Images come as (batch, channels, height, width), not in the shape {tuple(images.shape)}.",
            "Give one image as a batch of one.",
        )
    if images.shape[1] != n_channels:
        raise DataError(
            f"The model reads images of {n_channels} channel{'s' * (n_channels != 1)}, not of {images.shape[1]}.",
            "Convert them (grey has 1, colour 3), or train a model on such images.",
        )


def check_image_size(images: Tensor, size: int) -> None:
    """Refuse images (B, C, H, W) of another size than size × size pixels."""
    height, width = images.shape[2:]
    if (height, width) != (size, size):
        raise DataError(
            f"The model reads images of {size} × {size} pixels, not of {height} × {width}.",
            "Scale them to that size, or train a model on such images.",
        )
