"""How much an example of each class counts (training.class_weights): all the same, or rare ones more."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.config import RunConfig


def class_weights(config: RunConfig, counts: Sequence[int]) -> Tensor | None:
    """How much an example of each class counts, (K,); None where all count the same."""
    if config.training.class_weights == "none":
        return None
    return torch.tensor(balanced_weights(counts), dtype=torch.float32)


def balanced_weights(counts: Sequence[int]) -> list[float]:
    """How much an example of each class counts, so that all classes count the same and the mean weight is 1."""
    occurring = sum(count > 0 for count in counts)
    return [sum(counts) / (occurring * max(1, count)) for count in counts]


def weighed(losses: Tensor, targets: Tensor, weights: Tensor | None) -> tuple[Tensor, float]:
    """Sum losses (B,) of targets, classes (B,) or shares of them (B, K), each times its weight; and sum the weights."""
    if weights is None:
        return losses.sum(), len(targets)
    own = weights[targets] if targets.ndim == 1 else targets @ weights
    return (own.to(losses.device) * losses).sum(), float(own.sum())


def weight_facts(weights: Tensor | None, labels: Sequence[str]) -> list[tuple[str, str]]:
    """What a report says of them."""
    if weights is None:
        return []
    rare, common = (labels[int(place)] for place in (weights.argmax(), weights.argmin()))
    return [("class weights", f"balanced, from {weights.min():.2f} ({common}) to {weights.max():.2f} ({rare})")]


def weight_signature(weights: Tensor | None) -> str:
    """What the signature of a loss says of them."""
    return "" if weights is None else "|class weights:balanced"
