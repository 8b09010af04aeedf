"""Cross entropy through the output layer, in chunks of tokens.

The logits of a batch (tokens × vocabulary) are the largest tensors of a training step. Here they exist for one chunk at a
time: the chunk's gradient is computed at once, while its logits are still in the cache, and the logits are thrown away.
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
    total: Tensor = _OutputCrossEntropy.apply(states, weight, bias, targets, smoothing)  # type: ignore[no-untyped-call]
    return total


class _OutputCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> Tensor:
        wanted = any(context.needs_input_grad[:3])
        d_states, d_weight = (torch.empty_like(states), torch.zeros_like(weight)) if wanted else (None, None)
        d_bias = torch.zeros_like(bias) if wanted and bias is not None else None
        n_classes = len(weight)
        chunk = max(1, CHUNK_ELEMENTS // n_classes)
        # The smoothed part of the loss is the mean logit, which needs no logits: it is states times the mean of W.
        mean_weight = weight.mean(0)
        mean_bias = 0.0 if bias is None else bias.mean()
        total = states.new_zeros((), dtype=torch.float32)
        for start in range(0, len(states), chunk):
            rows = slice(start, start + chunk)
            goal = targets[rows, None]
            logits = F.linear(states[rows], weight, bias).float()
            at_goal, largest = logits.gather(1, goal), logits.amax(1, keepdim=True)
            probabilities = logits.softmax(1)
            log_normaliser = largest - probabilities.amax(1, keepdim=True).log()
            mean_logit = (states[rows] @ mean_weight + mean_bias)[:, None]
            total += (log_normaliser - (1 - smoothing) * at_goal - smoothing * mean_logit).sum()
            if d_states is None or d_weight is None:
                continue
            # d loss / d logits = softmax - target distribution; its constant part, - s / V, follows below.
            d_logits = probabilities.scatter_add_(1, goal, probabilities.new_full(goal.shape, smoothing - 1))
            d_logits = d_logits.to(states.dtype)
            torch.mm(d_logits, weight, out=d_states[rows])
            d_weight.addmm_(d_logits.t(), states[rows])
            if d_bias is not None:
                d_bias += d_logits.sum(0)
        if d_states is not None and d_weight is not None and smoothing:
            d_states -= smoothing * mean_weight
            d_weight -= smoothing / n_classes * states.sum(0)
            if d_bias is not None:
                d_bias -= smoothing * len(states) / n_classes
        context.save_for_backward(d_states, d_weight, d_bias)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        scaled = (None if saved is None else saved * gradient for saved in context.saved_tensors)
        return (*scaled, None, None)
