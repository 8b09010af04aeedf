"""Muon (Jordan et al. 2024): momentum, orthogonalised by a Newton–Schulz iteration, for the matrices inside of layers.

An update of Adam is mostly made of a few directions. Muon replaces the momentum M = U S Vᵀ by about U Vᵀ: every direction is
learned at the same pace, which needs fewer updates. The iteration has matrix products only; matrices of one shape go through
it together. A convolution's kernel (O, I, h, w) counts as the matrix (O, I·h·w).
"""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
# One iteration maps a singular value x to a x + b x³ + c x⁵. With these coefficients small ones grow fastest, and all end
# near 1, between about 0.7 and 1.2, which serves as well as exactly 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
_EPSILON = 1e-7  # a momentum of zeros stays one


class Muon:
    """Nesterov momentum, orthogonalised; weight decay is decoupled, as AdamW's is.

    groups: parameters of at least two dimensions, each list with its factor on the learning rate
    """

    def __init__(
        self, groups: Iterable[tuple[float, Sequence[nn.Parameter]]], *, learning_rate: float, weight_decay: float
    ) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum: dict[Tensor, Tensor] = {}  # those that have had a gradient
        self.groups = [(factor, alike) for factor, parameters in groups for alike in _by_shape(parameters)]

    @torch.no_grad()
    def step(self, share: float) -> None:
        """Make one update, at this share of the learning rate."""
        for factor, alike in self.groups:
            parameters: list[Tensor] = [parameter for parameter in alike if parameter.grad is not None]
            if parameters:
                self._step(parameters, self.learning_rate * share * factor)

    def _step(self, parameters: list[Tensor], rate: float) -> None:
        """Move parameters of one shape, each with its gradient."""
        for parameter in parameters:
            if parameter not in self.momentum:
                self.momentum[parameter] = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        momentum = [self.momentum[parameter] for parameter in parameters]
        torch._foreach_lerp_(momentum, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, momentum, MOMENTUM)  # Nesterov: where the momentum will have led
        matrices = torch.stack([one.flatten(1) for one in ahead])
        # Orthogonal, a matrix (O, I) with O > I makes outputs that are smaller than the inputs: its update is scaled up.
        size = rate * math.sqrt(max(1, matrices.shape[1] / matrices.shape[2]))
        directions = orthogonalise(matrices).to(matrices.dtype)
        if self.weight_decay:
            torch._foreach_mul_(parameters, 1 - rate * self.weight_decay)
        moves = [direction.reshape(own.shape) for direction, own in zip(directions, parameters, strict=True)]
        torch._foreach_add_(parameters, moves, alpha=-size)


def orthogonalise(matrices: Tensor) -> Tensor:
    """(N, O, I) to the same: each matrix with its singular values moved close to 1."""
    x = matrices.to(precision_on(matrices.device))
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=_EPSILON)  # no singular value above 1
    # By the products of rows it takes half of the time where there are few of them; bfloat16 is too coarse for it.
    x = _by_gram(x) if x.shape[2] >= 2 * x.shape[1] and x.dtype == torch.float32 else _by_iterates(x)
    return x.mT if tall else x


def _by_iterates(x: Tensor) -> Tensor:
    """X ← (a I + b G + c G²) X, with G = X Xᵀ."""
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _by_gram(x: Tensor) -> Tensor:
    """The same: with P = a I + b G + c G², the next G is P G P; and X is multiplied by the product of all P at the end."""
    a, b, c = COEFFICIENTS
    gram = x @ x.mT
    product = factor = torch.eye(x.shape[1], device=x.device).expand_as(gram)
    for _ in range(ITERATIONS):
        gram = factor @ gram @ factor
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        product = factor @ product
    return product @ x


def precision_on(device: torch.device) -> torch.dtype:
    """The iteration bears bfloat16, which GPUs multiply fastest; CPUs are asked for it with the run's precision."""
    is_fast = device.type == "cuda" or torch.is_autocast_enabled(device.type)
    return torch.bfloat16 if is_fast else torch.float32


def _by_shape(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    shapes: dict[tuple[int, int], list[nn.Parameter]] = {}
    for parameter in parameters:
        shapes.setdefault((parameter.shape[0], parameter[0].numel()), []).append(parameter)
    return list(shapes.values())
