"""Greedy search: the likeliest token at every step."""

from torch import Tensor


def likeliest(log_probs: Tensor, position: int, rows: Tensor) -> Tensor:
    """Choose the largest of log-probabilities (R, V), for the autoregressive loop; (R,)."""
    return log_probs.argmax(dim=-1)
