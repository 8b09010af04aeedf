"""The cross entropy of tokens, for every task whose model writes some."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from regard.parts.losses import output_cross_entropy


def token_loss(
    model: Any, inputs: tuple[Tensor | None, ...], goals: Tensor, real: Tensor | None, *, smoothing: float
) -> tuple[Tensor, float]:
    """Return the sum of the cross entropies of `goals` (B, T) where they are `real` (everywhere, if None), and their number.

    A model that offers `states(*inputs)` (B, T, D) and an output layer is spared the logits of the whole batch; any other
    returns them.
    """
    chosen = goals.flatten() if real is None else goals[real]

    def choose(values: Tensor) -> Tensor:
        return values.flatten(0, 1) if real is None else values[real]

    if hasattr(model, "states"):
        bias = getattr(model.output, "bias", None)
        states = choose(model.states(*inputs))
        return output_cross_entropy(states, model.output.weight, bias, chosen, smoothing=smoothing), len(chosen)
    logits = choose(model(*inputs))
    return F.cross_entropy(logits, chosen, label_smoothing=smoothing, reduction="sum"), len(chosen)
