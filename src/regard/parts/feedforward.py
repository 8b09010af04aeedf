"""The position-wise feed-forward network: the same two layers at every position, expanding, then contracting.

FFN(x) = max(0, x W1 + b1) W2 + b2 (Vaswani et al. 2017, 3.3), with another activation where a config names one, and the
gated form (Shazeer 2020, "GLU Variants Improve Transformer").
"""

from torch import Tensor, nn

from regard.parts.activations import ACTIVATIONS
from regard.parts.dropout import Dropout
from regard.parts.linear import Linear
from regard.parts.taps import tap


class FeedForward(nn.Module):
    """down(activation(up(x)))."""

    ablation_tap = "output"

    def __init__(self, d_model: int, d_ff: int, *, activation: str, dropout: float, biases: bool = True) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff, bias=biases)
        self.down = Linear(d_ff, d_model, bias=biases, role="residual_output")
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        hidden = tap(self, "hidden", self.activation(self.up(x)))  # (B, T, F)
        return tap(self, "output", self.down(self.dropout(hidden)))


class GatedFeedForward(nn.Module):
    """down(activation(gate(x)) * up(x)), without biases."""

    ablation_tap = "output"

    def __init__(self, d_model: int, d_ff: int, *, activation: str, dropout: float) -> None:
        super().__init__()
        self.gate = Linear(d_model, d_ff, bias=False)
        self.up = Linear(d_model, d_ff, bias=False)
        self.down = Linear(d_ff, d_model, bias=False, role="residual_output")
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        hidden = tap(self, "hidden", self.activation(self.gate(x)) * self.up(x))  # (B, T, F)
        return tap(self, "output", self.down(self.dropout(hidden)))
