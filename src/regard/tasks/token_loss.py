"""The cross entropy of tokens, for every task whose model writes some."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.parts.losses import CHUNK_ELEMENTS, output_cross_entropy


def token_loss(
    model: Any, inputs: tuple[Tensor | None, ...], goals: Tensor, real: Tensor | None, *, smoothing: float
) -> tuple[Tensor, float]:
    """Return the sum of the cross entropies of `goals` (B, T) where they are `real` (everywhere, if None), and their number.

    A model that offers `states(*inputs)` (B, T, D) and an output layer is spared the logits of the whole batch; any other
    returns them.
    """
    chosen = _chosen(goals, real)
    if hasattr(model, "states"):
        bias = getattr(model.output, "bias", None)
        states = _chosen(model.states(*inputs), real)
        return output_cross_entropy(states, model.output.weight, bias, chosen, smoothing=smoothing), len(chosen)
    logits = _chosen(model(*inputs), real)
    return F.cross_entropy(logits, chosen, label_smoothing=smoothing, reduction="sum"), len(chosen)


def token_losses(model: Any, inputs: tuple[Tensor | None, ...], goals: Tensor, real: Tensor | None) -> Tensor:
    """Return the cross entropy of each of the N `goals` that are `real`, (N,), in their order; for scores, not to learn."""
    chosen = _chosen(goals, real)
    if not hasattr(model, "states"):
        return F.cross_entropy(_chosen(model(*inputs), real).float(), chosen, reduction="none")
    states, weight = _chosen(model.states(*inputs), real), model.output.weight
    bias = getattr(model.output, "bias", None)
    rows = max(1, CHUNK_ELEMENTS // len(weight))  # the logits of so many at a time
    losses = [
        F.cross_entropy(F.linear(part.to(weight.dtype), weight, bias).float(), wanted, reduction="none")
        for part, wanted in zip(states.split(rows), chosen.split(rows), strict=True)
    ]
    return torch.cat(losses)


def _chosen(values: Tensor, real: Tensor | None) -> Tensor:
    """The values (B, T, …) that are real, as (N, …)."""
    return values.flatten(0, 1) if real is None else values[real]
