"""The linear layer y = x Wᵀ + b, as `nn.Linear` has it, and faster where few rows meet a large matrix on a CPU.

Such a product only waits for the matrix to come from memory, and torch lets one core fetch it. Cut into as many pieces as
there are threads, it is a batch of smaller products, over which torch spreads all of them; the numbers are the same.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Where it pays, measured on two cores: up to so many rows, from so many weights on.
FEW_ROWS = 32
LARGE = 2**17


class Linear(nn.Linear):
    """(…, I) to (…, O)."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, I) times (O, I) to (…, O), by the faster way."""
    if weight.numel() < LARGE or torch.is_grad_enabled() or x.numel() > FEW_ROWS * weight.shape[1]:
        return F.linear(x, weight, bias)
    n_outputs, n_inputs = weight.shape
    n_pieces = torch.get_num_threads()
    if n_pieces == 1 or n_outputs % n_pieces or x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    rows = x.reshape(1, -1, n_inputs).expand(n_pieces, -1, -1)  # (P, R, I)
    pieces = weight.view(n_pieces, -1, n_inputs).transpose(1, 2)  # (P, I, O / P)
    products = torch.bmm(rows, pieces) if bias is None else torch.baddbmm(bias.view(n_pieces, 1, -1), rows, pieces)
    return products.transpose(0, 1).reshape(*x.shape[:-1], n_outputs)
