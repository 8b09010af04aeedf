"""Gradients by layer: how steeply one logit rises with the states of each layer, at each position.

The states are those of the residual stream, of feature maps, or of a recurrent network, where a state has its gradient
through everything that comes after it, later steps too. The gradient says what a small change there would do; it is zero
where nothing of a position reaches the logit. It is taken in a pass of its own, under the trace's interventions, and leaves
nothing behind.
"""

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError, did_you_mean
from regard.inspection.axes import joined
from regard.inspection.interventions import intervening
from regard.inspection.named_array import NamedArray
from regard.inspection.residual_stream import (
    find_logit,
    stream_or_map_taps,
    sublayer_name,
    vector_lengths,
)
from regard.inspection.trace import Trace
from regard.parts.taps import listening

# By stack, its embedding, and the states of its layers: the residual stream, or what a recurrence hands on.
_EMBEDDINGS = {
    "decoder": ("target_embedding.sum", "embedding.sum"),
    "encoder": ("source_embedding.sum", "embedding.output", "embedding.sum"),
}
_STATES = ("{stack}.*_residual.output", "{stack}.layers.*.state", "{stack}.layers.*.cell")


def gradient_norms(trace: Trace, token: str | int = "", position: int = -1, stack: str = "") -> NamedArray:
    """The length of ∂ logit / ∂ state for each state: (layer or sublayer, position).

    Of a convolutional network (sublayer,): the mean over the pixels of a feature map. `token` and `position` are as
    `find_logit` takes them. stack: encoder or decoder; by default that from which the logits are read.
    """
    taps = state_taps(trace, stack)
    subject = trace.live("Gradients need the model, and")
    asked = find_logit(trace, token, position)
    states: dict[str, list[Tensor]] = {tap: [] for tap in taps}  # of a recurrence, one for each step

    def keep(name: str, tensor: Tensor) -> Tensor | None:
        # From the first state on there are gradients, also where all weights are frozen.
        states[name].append(tensor.detach().clone().requires_grad_() if name == taps[0] else tensor)
        return states[name][-1]

    # Interventions come first, as where the trace was recorded.
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        intervening(subject.model, subject.interventions),
        listening(subject.model, taps, keep),
    ):
        logits = trace.reading.forward()[0]
        logit = logits[asked.id] if asked.position is None else logits[asked.position, asked.id]
        every = [state for own in states.values() for state in own]
        gradients = iter(torch.autograd.grad(logit, every, allow_unused=True))
    lengths = []
    for tap, own in states.items():
        found = [_or_zeros(next(gradients), state) for state in own]
        lengths.append(vector_lengths(joined(tap, found).float().cpu().numpy()))
    return _by_layer(trace, taps, lengths)


def _or_zeros(gradient: Tensor | None, state: Tensor) -> Tensor:
    return torch.zeros_like(state) if gradient is None else gradient


def state_taps(trace: Trace, stack: str = "") -> list[str]:
    """The taps of the states of a stack, its embedding first; refuse a model that has none."""
    # What reads images, and what writes of them, is a network inside the network.
    inside = {"encoder": "image.", "decoder": "text."} if trace.names("text.*") else dict.fromkeys(_EMBEDDINGS, "")
    found = {one: _of_stack(trace, inside[one], one) for one in _EMBEDDINGS}
    known = [one for one, own in found.items() if own]
    if stack and stack not in known:
        raise UsageError(f"This model has no states of a stack '{stack}'.", did_you_mean(stack, known))
    return found[stack or known[0]] if known else stream_or_map_taps(trace)


def _of_stack(trace: Trace, inside: str, stack: str) -> list[str]:
    states = {name for pattern in _STATES for name in trace.names(inside + pattern.format(stack=stack))}
    first = [inside + name for name in _EMBEDDINGS[stack] if inside + name in trace]
    last = [name for name in trace.names(f"{inside}{stack}.output") if states]  # what a recurrent decoder predicts from
    return [*first[:1], *(name for name in trace if name in states), *last] if states else []


def _by_layer(trace: Trace, taps: list[str], lengths: list[np.ndarray]) -> NamedArray:
    """The lengths as an array: (layer, position); of feature maps (sublayer,)."""
    like = trace[taps[0]]
    recurrent = any(tap.endswith(".state") for tap in taps)
    axes = ("layer" if recurrent else "sublayer", *(like.axes[:1] if lengths[0].ndim else ()))
    names = [tap if tap.endswith(".cell") else sublayer_name(tap) for tap in taps]
    labels = {axes[0]: tuple(names), **{axis: own for axis, own in like.labels.items() if axis in axes}}
    return NamedArray(np.array(lengths, np.float32), axes, labels)
