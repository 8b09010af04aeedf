"""Layer norm and RMS norm: normalisation over the features of one position.

Layer norm: Ba et al. 2016, "Layer Normalization". RMS norm: Zhang & Sennrich 2019, without the mean and the shift.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """(x - mean) / deviation over the last axis, times a scale (weight), plus a shift (bias)."""

    def __init__(self, d_model: int, *, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """Its ones and zeros stay."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class RMSNorm(nn.Module):
    """x / root of the mean square over the last axis, times a scale."""

    def __init__(self, d_model: int, *, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def first_weights(self, parameter: nn.Parameter, generator: torch.Generator) -> None:
        """Its ones stay."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}
