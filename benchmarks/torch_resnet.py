"""Our resnet-20 in plain torch.nn, as its users write it: the peer of vision.py."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.resnet import ResNet, ResNetConfig
from regard.parts.convolution import ImageConvolution


class BasicBlock(nn.Module):
    """relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)) (He et al. 2016, figure 2)."""

    def __init__(self, n_inputs: int, n_outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_inputs, n_outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_outputs)
        self.conv2 = nn.Conv2d(n_outputs, n_outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride > 1 or n_inputs != n_outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(n_inputs, n_outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(n_outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, outputs, H / stride, W / stride)."""
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += self.shortcut(x)
        activated: Tensor = self.relu(out)
        return activated


class TorchResNet(nn.Module):
    """The network for small images (He et al. 2016, 4.2), with projections where the shape changes."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.conv = nn.Conv2d(config.n_channels, config.width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(config.width)
        self.relu = nn.ReLU(inplace=True)
        blocks: list[BasicBlock] = []
        n_inputs = config.width
        for stage, n_blocks in enumerate(config.n_blocks):
            width = config.width * 2**stage
            for number in range(n_blocks):
                blocks.append(BasicBlock(n_inputs, width, stride=2 if stage and not number else 1))
                n_inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.linear = nn.Linear(n_inputs, config.n_outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """(B, C, H, W) to logits (B, N)."""
        x = self.blocks(self.relu(self.norm(self.conv(images))))
        logits: Tensor = self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return logits


def to_torch_resnet(model: ResNet) -> TorchResNet:
    """The same network with the weights and the running statistics of ours."""
    config = model.config
    kind = ResNetConfig(
        n_channels=config.n_channels, n_outputs=config.n_outputs, n_blocks=config.n_blocks, width=config.width
    )
    if config != kind:
        raise ValueError("only the network of basic blocks for small images has an equal here")
    network = TorchResNet(config)
    mine: Any = model
    _copy(mine.stem.layer, network.conv, network.norm)
    blocks = [block for stage in mine.stage for block in stage.block]
    for ours, theirs in zip(blocks, network.blocks, strict=True):
        other: Any = theirs
        _copy(ours.layers[0], other.conv1, other.norm1)
        _copy(ours.layers[1], other.conv2, other.norm2)
        if len(other.shortcut):
            _copy(ours.shortcut, *other.shortcut)
    network.linear.load_state_dict(mine.head.output.state_dict())
    return network


def _copy(ours: ImageConvolution, convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    convolution.load_state_dict(ours.convolution.state_dict())
    statistics: Any = ours.norm
    norm.load_state_dict(
        {
            "weight": statistics.weight,
            "bias": statistics.bias,
            "running_mean": statistics.running_mean,
            "running_var": statistics.running_variance,
            "num_batches_tracked": torch.tensor(0),
        }
    )
