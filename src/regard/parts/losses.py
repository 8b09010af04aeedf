"""Cross entropy through the output layer, in chunks of tokens.

The logits of a batch (tokens × vocabulary) are the largest tensors of a training step. Here they exist for one chunk at a
time: its gradient is computed at once, while its logits are still in the cache, and they are thrown away. What can be done
on the states (tokens × width) is not done on the logits: the softmax's division, the target's share, the smoothing.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ELEMENTS = 2**22  # logits in flight: 16 MB of fp32


def output_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float = 0.0
) -> Tensor:
    """Return the sum over tokens of the cross entropy of softmax(states Wᵀ + b) with the targets.

    states (N, D), weight (V, D), bias (V,) or None, targets (N,). With `smoothing` s the target distribution is 1 - s on
    the target and s spread over the whole vocabulary (Szegedy et al. 2016, as `F.cross_entropy` has it).
    """
    if not torch.is_grad_enabled():
        # A Function is told that its inputs need gradients all the same, and would compute them.
        states, weight, bias = states.detach(), weight.detach(), None if bias is None else bias.detach()
    states = states.to(weight.dtype)  # without a norm at the end, autocast leaves them in half precision
    total: Tensor = _OutputCrossEntropy.apply(states, weight, bias, targets, smoothing)  # type: ignore[no-untyped-call]
    return total


class _OutputCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> Tensor:
        d_states, d_weight, d_bias = torch.empty_like(states), torch.zeros_like(weight), None
        if bias is not None:
            d_bias = torch.zeros_like(bias)
        chunk = max(1, CHUNK_ELEMENTS // len(weight))
        total = states.new_zeros((), dtype=torch.float32)
        for start in range(0, len(states), chunk):
            rows = slice(start, start + chunk)
            logits = F.linear(states[rows], weight, bias).float()
            largest = logits.amax(1, keepdim=True)
            exponentials = logits.sub_(largest).exp_()
            sums = exponentials.sum(1, keepdim=True)  # softmax = exponentials / sums
            total += (largest + sums.log()).sum()
            if any(context.needs_input_grad):
                exponentials = exponentials.to(states.dtype)
                torch.mm(exponentials, weight, out=d_states[rows]).div_(sums)
                d_weight.addmm_(exponentials.t(), states[rows] / sums)
                if d_bias is not None:
                    d_bias += (exponentials / sums).sum(0)
        total -= _expected_logits(states, weight, bias, targets, smoothing)
        if any(context.needs_input_grad):
            _subtract_targets(d_states, d_weight, d_bias, states, weight, targets, smoothing)
        context.save_for_backward(d_states, d_weight, d_bias)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        scaled = (None if saved is None else saved * gradient for saved in context.saved_tensors)
        return (*scaled, None, None)


def _expected_logits(states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float) -> Tensor:
    """The sum over tokens of the logits' mean under the target distribution."""
    at_target = (states * weight[targets]).sum()
    mean = (states @ weight.mean(0)).sum()
    if bias is not None:
        at_target, mean = at_target + bias[targets].sum(), mean + bias.mean() * len(states)
    return ((1 - smoothing) * at_target + smoothing * mean).float()


def _subtract_targets(
    d_states: Tensor,
    d_weight: Tensor,
    d_bias: Tensor | None,
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
) -> None:
    """Turn gradients through the softmax into gradients through softmax - target distribution, in place."""
    d_states -= (1 - smoothing) * weight[targets] + smoothing * weight.mean(0)
    d_weight.index_add_(0, targets, states, alpha=smoothing - 1)
    d_weight -= smoothing / len(weight) * states.sum(0)
    if d_bias is not None:
        d_bias.index_add_(0, targets, torch.ones_like(targets, dtype=d_bias.dtype), alpha=smoothing - 1)
        d_bias -= smoothing * len(states) / len(weight)
