"""The residual connection: the sum, the norm and the dropout live here and nowhere else.

post-norm (Vaswani et al. 2017)          pre-norm (Xiong et al. 2020, "On Layer Normalization in the Transformer
x ──┬── sublayer ── dropout ──(+)── norm ──►      Architecture")
    └──────────────────────────┘          x ──┬── norm ── sublayer ── dropout ──(+)──►
                                              └──────────────────────────────────┘

A sublayer may answer for the first positions only, where no others are asked for: then x is cut to them.

The lectures' block of dense layers, which has two skips, stands here too; that of images in `convolution.py`.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from regard.parts.dropout import Dropout
from regard.parts.linear import Linear
from regard.parts.taps import tap

Sublayer = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x)))."""

    def __init__(self, norm: nn.Module, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        y = sublayer(x)
        total: Tensor = self.norm(self.dropout.add(x[:, : y.shape[1]], y))
        return tap(self, "output", total)


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x)))."""

    def __init__(self, norm: nn.Module, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        y = sublayer(self.norm(x))
        return tap(self, "output", self.dropout.add(x[:, : y.shape[1]], y))


class Plain(nn.Module):
    """dropout(sublayer(x)): no sum and no norm, to show what the sum is for."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        dropped: Tensor = self.dropout(sublayer(x))
        return tap(self, "output", dropped)


ORDERS = ("pre", "post", "none")


def make_residual(order: str, make_norm: Callable[[], nn.Module], *, dropout: float) -> nn.Module:
    """Build the residual connection a config names: pre, post or none."""
    if order == "pre":
        return PreNorm(make_norm(), dropout=dropout)
    if order == "post":
        return PostNorm(make_norm(), dropout=dropout)
    return Plain(dropout=dropout)


class DenseResidualBlock(nn.Module):
    """relu(second(h) + h + x) with h = relu(first(x)): the lectures' dense block, whose two skips join before the last ReLU.

    x ──┬── first ── relu ──┬── second ──(+)── relu ──►
        │                   └─────────────┤
        └─────────────────────────────────┘
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.first = Linear(d_model, d_model)
        self.second = Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) to the same."""
        hidden = tap(self, "hidden", F.relu(self.first(x)))
        return tap(self, "output", F.relu(tap(self, "residual", self.second(hidden)) + hidden + x))
