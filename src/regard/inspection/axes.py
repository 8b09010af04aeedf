"""The axes of taps: what each dimension of a recorded tensor is, by the tap's name; and steps joined to sequences.

A forward pass is recorded in a batch of one, whose dimension is dropped. What is shown step by step (inside a recurrence)
is joined along the positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.inspection.named_array import NamedArray
from regard.tasks.reading import Positions, Reading

IMAGE_AXES = ("channel", "row", "column")
BETWEEN = ("scores", "weights")  # of an attention: (B, H, T, S)
BY_HEAD = ("query", "key", "value", "heads")  # (B, H, T, K)
OF_MEMORY = ("cross_attention", "attention")  # modules whose keys and values are of the memory


def joined(name: str, calls: Sequence[Tensor]) -> Tensor:
    """What was heard of a tap in one forward pass, without the batch: one call, or those of all steps together."""
    if len(calls) == 1:
        return calls[0] if _unbatched(name, calls[0]) else calls[0][0]
    steps = [call[0] for call in calls]
    if _from_the_end(name):
        steps.reverse()
    if steps[0].dim() == 1:
        return torch.stack(steps)  # (T, D) of (D,)
    return torch.cat(steps, dim=steps[0].dim() - 2)  # along the positions, of which each step has one


def step_of(name: str, values: Tensor, step: int) -> Tensor:
    """What belongs to one step of what `joined` made of all of them, with the axis of the positions; empty past the last."""
    axis = max(0, values.dim() - 2)
    n_steps = values.shape[axis] if values.dim() else 0
    if step >= n_steps:
        return values.new_empty(0)
    return values.narrow(axis, n_steps - 1 - step if _from_the_end(name) else step, 1)


def _from_the_end(name: str) -> bool:
    """Whether the steps of a tap begin at the last position: those of a recurrent layer that reads backwards."""
    return ".backwards." in f".{name}."


def _unbatched(name: str, tensor: Tensor) -> bool:
    """Whether a tap has no batch: encodings of positions are the same for all."""
    return name.rpartition(".")[2] == "positions" and tensor.dim() == 2


def key_positions(name: str, reading: Reading) -> Positions:
    """What stands at the keys of an attention, by the path of the module or one of its taps."""
    parts = name.split(".")
    of_memory = any(part in OF_MEMORY for part in parts)
    return reading.memory if of_memory and reading.memory is not None else reading.at(name)


def named(name: str, tensor: Tensor, reading: Reading) -> NamedArray:
    """A tensor of a tap, without the batch, with the names of its axes, and labels where there are any."""
    own, keys, tap = reading.at(name), key_positions(name, reading), name.rpartition(".")[2]
    at = keys if tap in ("key", "value") else own
    labels = {}
    if tap in BETWEEN or tap == "bias":
        axes: tuple[str, ...] = ("head", own.name, keys.name if keys.name != own.name else "key")
        labels = {axes[1]: own.labels, axes[2]: keys.labels}
    elif tap in BY_HEAD and tensor.dim() == 3:
        axes, labels = ("head", at.name, "feature"), {at.name: at.labels}
    elif tensor.dim() == 3:
        axes = IMAGE_AXES
    elif tap == "logits":
        axes, labels = ((own.name, "output"), {own.name: own.labels}) if tensor.dim() == 2 else (("output",), {})
    elif tensor.dim() == 2:
        axes, labels = (at.name, "feature"), {at.name: at.labels}
    else:
        axes = ("feature",)
    fitting = {axis: own for axis, own in labels.items() if len(own) == tensor.shape[axes.index(axis)]}
    return NamedArray(tensor.float().cpu().numpy(), axes, fitting)
