"""Gradients by layer: how steeply one logit rises with the residual stream after each sublayer, at each position.

The gradient says what a small change there would do, through all that comes behind; it is zero where nothing of a position
reaches the logit. It is taken in a pass of its own, under the trace's interventions, and leaves nothing behind.
"""

import torch
from torch import Tensor

from regard.inspection.interventions import intervening
from regard.inspection.named_array import NamedArray
from regard.inspection.residual_stream import by_sublayer, find_logit, stream_or_map_taps, vector_lengths
from regard.inspection.trace import Trace
from regard.parts.taps import listening


def gradient_norms(trace: Trace, token: str | int = "", position: int = -1) -> NamedArray:
    """The length of ∂ logit / ∂ state for each state of the residual stream: (sublayer, position).

    Of a convolutional network (sublayer,): the mean over the pixels of a feature map. `token` and `position` are as
    `find_logit` takes them.
    """
    taps = stream_or_map_taps(trace)
    subject = trace.live("Gradients need the model, and")
    asked = find_logit(trace, token, position)
    states: dict[str, Tensor] = {}

    def keep(name: str, tensor: Tensor) -> Tensor | None:
        # From the first state on there are gradients, also where all weights are frozen.
        states[name] = tensor.detach().clone().requires_grad_() if name == taps[0] else tensor
        return states[name]

    # Interventions come first, as where the trace was recorded.
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        intervening(subject.model, subject.interventions),
        listening(subject.model, taps, keep),
    ):
        logits = trace.reading.forward()[0]
        logit = logits[asked.id] if asked.position is None else logits[asked.position, asked.id]
        gradients = torch.autograd.grad(logit, [states[tap] for tap in taps], allow_unused=True)
    lengths = [
        vector_lengths((torch.zeros_like(states[tap]) if own is None else own)[0].float().cpu().numpy())
        for tap, own in zip(taps, gradients, strict=True)
    ]
    return by_sublayer(trace, taps, lengths)
