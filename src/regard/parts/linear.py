"""The linear layer y = x Wᵀ + b, as `nn.Linear` has it, and faster where few rows meet a large matrix on a CPU.

Such a product mostly waits for the matrix to come from memory, and torch lets one core fetch it, in a way meant for many
rows. Cut into pieces, it is a batch of smaller products, over which torch spreads its threads; the numbers are the same.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.parts.initialisation import Role

# Where it pays and how best, measured on two cores: up to so many rows, from so many weights on, in so many pieces of at
# least so many outputs.
FEW_ROWS = 160
LARGE = 2**17
PIECES = 16
NARROW = 96


class Linear(nn.Linear):
    """(…, I) to (…, O). A role says what it does in its model, for first weights that go by it (initialisation.py)."""

    def __init__(self, n_inputs: int, n_outputs: int, *, bias: bool = True, role: Role = "") -> None:
        super().__init__(n_inputs, n_outputs, bias=bias)
        self.role = role

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, I) times (O, I) to (…, O), by the faster way."""
    if weight.numel() < LARGE or torch.is_grad_enabled() or x.numel() > FEW_ROWS * weight.shape[1]:
        return F.linear(x, weight, bias)
    n_outputs, n_inputs = weight.shape
    n_pieces = min(max(PIECES, torch.get_num_threads()), n_outputs // NARROW)
    if n_pieces < 2 or x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    width = n_outputs // n_pieces
    n_cut = n_pieces * width  # all outputs but for a remainder
    rows = x.reshape(1, -1, n_inputs).expand(n_pieces, -1, -1)  # (P, R, I)
    pieces = weight[:n_cut].view(n_pieces, width, n_inputs).transpose(1, 2)  # (P, I, W)
    if bias is None:
        products = torch.bmm(rows, pieces)
    else:
        products = torch.baddbmm(bias[:n_cut].view(n_pieces, 1, width), rows, pieces)
    found = products.transpose(0, 1).reshape(*x.shape[:-1], n_cut)
    if n_cut == n_outputs:
        return found
    return torch.cat((found, F.linear(x, weight[n_cut:], None if bias is None else bias[n_cut:])), dim=-1)
