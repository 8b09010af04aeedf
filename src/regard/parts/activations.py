"""Activation functions of the feed-forward network, by name: ReLU, GELU, SiLU.

`gelu-tanh` is GPT-2's approximation of GELU (Hendrycks & Gimpel 2016), 0.5 x (1 + tanh u) with u = √(2/π) (x + 0.044715 x³).
A hyperbolic tangent is slow on a CPU, and 0.5 (1 + tanh u) is the sigmoid of 2u, which is not: training takes that way.
"""

import math
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

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
    """x σ(2u). Its derivative σ + x σ (1 - σ) d(2u)/dx is computed on the way, while x and σ are at hand."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        output = torch.empty_like(x)
        slope = torch.empty_like(x) if context.needs_input_grad[0] else None
        for part, own_output, own_slope in _in_chunks(x, output, slope):
            gate = (part * part).mul_(_CUBIC).add_(_LINEAR).mul_(part).sigmoid_()
            torch.mul(part, gate, out=own_output)
            if own_slope is not None:
                torch.mul(part, part, out=own_slope).mul_(3 * _CUBIC).add_(_LINEAR).mul_(part)  # x d(2u)/dx
                own_slope.addcmul_(own_slope, gate, value=-1).mul_(gate).add_(gate)
        if slope is not None:
            context.save_for_backward(slope)
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        slope: Tensor = context.saved_tensors[0]
        return slope * gradients[0]


def _in_chunks(*tensors: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Cut tensors of one shape into pieces that stay in the processor's cache from one operation to the next."""
    given = [tensor for tensor in tensors if tensor is not None]
    if given[0].numel() <= CHUNK or not all(tensor.is_contiguous() for tensor in given):
        yield tensors
        return
    pieces = [repeat(None) if tensor is None else tensor.view(-1).split(CHUNK) for tensor in tensors]
    yield from zip(*pieces, strict=False)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": gelu_tanh,
    "silu": F.silu,
}
