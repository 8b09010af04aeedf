"""Cross entropy with label smoothing through the output layer, in chunks of tokens.

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
        wanted = context.needs_input_grad[:3]
        d_states, d_weight, d_bias = (
            torch.zeros_like(tensor) if tensor is not None and needed else None
            for tensor, needed in zip((states, weight, bias), wanted, strict=True)
        )
        chunk = max(1, CHUNK_ELEMENTS // len(weight))
        precision = _product_precision(states)
        factors = weight.to(precision)  # of products; what is summed up is kept in full
        at_target, over_all = states.new_zeros((2,), dtype=torch.float32)  # the two terms of the smoothed loss
        for start in range(0, len(states), chunk):
            rows = slice(start, start + chunk)
            logits = F.linear(states[rows].to(precision), factors, None if bias is None else bias.to(precision)).float()
            largest = logits.amax(1, keepdim=True)
            logits -= largest
            wanted_logits = logits.gather(1, targets[rows, None])
            exponentials = logits.exp_()
            sums = exponentials.sum(1, keepdim=True)  # softmax = exponentials / sums
            logarithms = sums.log()
            # Both about zero for a confident token: the difference of the large numbers behind them would not be.
            at_target += (logarithms - wanted_logits).sum()
            over_all += (logarithms + largest).sum()
            if d_bias is not None:
                d_bias += (exponentials / sums).sum(0)
            exponentials = exponentials.to(precision)
            if d_states is not None:
                _add_product(d_states[rows], exponentials, factors)
                d_states[rows] /= sums
            if d_weight is not None:
                _add_product(d_weight, exponentials.t(), (states[rows] / sums).to(precision))
        over_all -= _mean_logits(states, weight, bias)
        _subtract_targets(d_states, d_weight, d_bias, states, weight, targets, smoothing)
        context.save_for_backward(d_states, d_weight, d_bias)
        total: Tensor = (1 - smoothing) * at_target + smoothing * over_all
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        scaled = (None if saved is None else saved * gradient for saved in context.saved_tensors)
        return (*scaled, None, None)


def _product_precision(states: Tensor) -> torch.dtype:
    """What the factors of products are rounded to: as autocast has it, which does not see inside."""
    device = states.device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return states.dtype
    return torch.get_autocast_dtype(device)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left · right to a sum, in place."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def _mean_logits(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The sum over tokens of the mean of their logits."""
    mean = (states @ weight.mean(0)).sum()
    return (mean if bias is None else mean + bias.mean() * len(states)).float()


def _subtract_targets(
    d_states: Tensor | None,
    d_weight: Tensor | None,
    d_bias: Tensor | None,
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
) -> None:
    """Turn gradients through the softmax into gradients through softmax - target distribution, in place."""
    if d_states is not None:
        d_states -= (1 - smoothing) * weight[targets] + smoothing * weight.mean(0)
    if d_weight is not None:
        d_weight.index_add_(0, targets, states, alpha=smoothing - 1)
        d_weight -= smoothing / len(weight) * states.sum(0)
    if d_bias is not None:
        d_bias.index_add_(0, targets, torch.ones_like(targets, dtype=d_bias.dtype), alpha=smoothing - 1)
        d_bias -= smoothing * len(states) / len(weight)
