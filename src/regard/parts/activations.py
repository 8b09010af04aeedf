"""The functions between the two layers of a feed-forward network, by name.

`gelu-tanh` is GPT-2's approximation of GELU (Hendrycks & Gimpel 2016), 0.5 x (1 + tanh u) with u = √(2/π) (x + 0.044715 x³).
A hyperbolic tangent is slow on a CPU, and 0.5 (1 + tanh u) is the sigmoid of 2u, which is not: training takes that way.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.errors import ConfigError, did_you_mean

_LINEAR = 2 * math.sqrt(2 / math.pi)  # 2u = x (_LINEAR + _CUBIC x²)
_CUBIC = _LINEAR * 0.044715
# Below this many numbers one call of the library's own function is faster than several.
MANY = 2**17
# So many numbers are worked on at a time: six million at once took half as long again.
CHUNK = 2**19


def gelu_tanh(x: Tensor) -> Tensor:
    """(…) to (…), the same numbers by the faster of two ways."""
    if x.device.type != "cpu" or x.numel() < MANY or x.dtype not in (torch.float32, torch.float64):
        return F.gelu(x, approximate="tanh")
    result: Tensor = _GeluTanh.apply(x)  # type: ignore[no-untyped-call]
    return result


class _GeluTanh(torch.autograd.Function):
    """x σ(2u), with its derivative σ + x σ (1 - σ) d(2u)/dx."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        gate, output = torch.empty_like(x), torch.empty_like(x)
        for part, own_gate, own_output in _in_chunks(x, gate, output):
            torch.mul(part, part, out=own_gate).mul_(_CUBIC).add_(_LINEAR).mul_(part).sigmoid_()
            torch.mul(part, own_gate, out=own_output)
        context.save_for_backward(x, gate)
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        x, gate = context.saved_tensors
        result = torch.empty_like(x)
        for part, own_gate, gradient, own in _in_chunks(x, gate, gradients[0], result):
            torch.mul(part, part, out=own).mul_(3 * _CUBIC).add_(_LINEAR).mul_(part)  # x d(2u)/dx
            own.addcmul_(own, own_gate, value=-1).add_(1).mul_(own_gate).mul_(gradient)
        return result


def _in_chunks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Cut tensors of one shape into pieces that stay in the processor's cache from one operation to the next."""
    if tensors[0].numel() <= CHUNK or not all(tensor.is_contiguous() for tensor in tensors):
        yield tensors
    else:
        yield from zip(*(tensor.view(-1).split(CHUNK) for tensor in tensors), strict=True)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": gelu_tanh,
    "silu": F.silu,
}


def find_activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation a config names."""
    if name not in ACTIVATIONS:
        raise ConfigError(f"There is no activation '{name}'.", did_you_mean(name, ACTIVATIONS))
    return ACTIVATIONS[name]
