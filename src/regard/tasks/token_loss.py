"""The cross entropy of tokens, for every task whose model writes some."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.evaluation.sufficient_statistics import Floats
from regard.parts.losses import CHUNK_ELEMENTS, output_cross_entropy
from regard.tasks.offers import has_states


def token_loss(
    model: Any, inputs: tuple[Tensor | None, ...], targets: Tensor, mask: Tensor | None, *, smoothing: float
) -> tuple[Tensor, float]:
    """Return the sum of the cross entropies of `targets` (B, T) where `mask` (B, T) is True, and how many these are.

    mask: None for all of them. A model that offers `states(*inputs)` (B, T, D) and an output layer is spared the logits of
    the whole batch; any other returns them.
    """
    wanted = _masked(targets, mask)
    if has_states(model):
        states, output = _masked(model.states(*inputs), mask), model.output
        return output_cross_entropy(states, output.weight, output.bias, wanted, smoothing=smoothing), len(wanted)
    logits = _masked(model(*inputs), mask)
    return F.cross_entropy(logits, wanted, label_smoothing=smoothing, reduction="sum"), len(wanted)


def token_losses(model: Any, inputs: tuple[Tensor | None, ...], targets: Tensor, mask: Tensor | None) -> Tensor:
    """Return the cross entropy of each of the N `targets` where `mask` is True, (N,), in order; for scores, not to learn."""
    wanted = _masked(targets, mask)
    if not has_states(model):
        return F.cross_entropy(_masked(model(*inputs), mask).float(), wanted, reduction="none")
    states, weight, bias = _masked(model.states(*inputs), mask), model.output.weight, model.output.bias
    rows = max(1, CHUNK_ELEMENTS // len(weight))  # the logits of so many at a time
    losses = [
        F.cross_entropy(F.linear(part.to(weight.dtype), weight, bias).float(), own, reduction="none")
        for part, own in zip(states.split(rows), wanted.split(rows), strict=True)
    ]
    return torch.cat(losses)


def row_costs(model: Any, inputs: tuple[Tensor | None, ...], targets: Tensor, mask: Tensor | None) -> Floats:
    """The cross entropy of each row of `targets` (B, T) where `mask` is True, summed, and over how many tokens: (B, 2)."""
    losses = token_losses(model, inputs, targets, mask).double().cpu().numpy()
    rows = (torch.ones_like(targets, dtype=torch.bool) if mask is None else mask).nonzero()[:, 0].cpu().numpy()
    found = np.zeros((len(targets), 2))
    np.add.at(found, rows, np.stack((losses, np.ones_like(losses)), axis=1))
    return found


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """The values (B, T, …) where the mask is True, as (N, …)."""
    return values.flatten(0, 1) if mask is None else values[mask]
