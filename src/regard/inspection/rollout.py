"""Attention rollout and attention flow: how positions reach each other through all layers (Abnar & Zuidema 2020).

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers". Both read each layer's self-attention as a graph: the
mean over the heads W, and the residual connection as an edge from each position to itself, A = (W + I), rows
normalised. Rollout multiplies these matrices; flow is the maximum flow through them, with A as the edges' capacities.
Neither knows values, feed-forward networks and norms: they show where information could have come from, not what was used.
"""

import re

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError, did_you_mean
from regard.inspection.max_flow import Matrix, all_flows
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace

MOST_POSITIONS = 64  # of a flow: there is a maximum flow to find for each two of them
_SELF_ATTENTION = re.compile(r"(?:.*\.)?(encoder|decoder)\.\d+\.self_attention")


def rollout(trace: Trace, stack: str = "") -> NamedArray:
    """The product of all layers' attention, with the residual connection: (position, position), rows sum to 1.

    stack: encoder or decoder; empty for the only one, or else the encoder.
    """
    layers, like = _layers(trace, stack)
    return NamedArray(roll(layers).astype(np.float32), like.axes[1:], like.labels)


def flow(trace: Trace, stack: str = "") -> NamedArray:
    """The maximum flow from each position of the last layer to each of the input: (position, position), at most 1.

    stack: as for `rollout`. It takes seconds for 32 positions, most of a minute for 64; more are refused.
    """
    layers, like = _layers(trace, stack)
    n_positions = len(layers[0])
    if n_positions > MOST_POSITIONS:
        raise UsageError(
            f"Attention flow is for at most {MOST_POSITIONS} positions, and here are {n_positions}: it finds a maximum flow "
            "for each two of them.",
            "Use attention rollout, trace.rollout(), which takes any number of them, or give a shorter input.",
        )
    return NamedArray(all_flows(layers).astype(np.float32), like.axes[1:], like.labels)


def stacks_of(trace: Trace) -> dict[str, list[str]]:
    """By stack, encoder or decoder, the paths of its layers' self-attention, the first one first."""
    stacks: dict[str, list[str]] = {}
    for path in trace.attentions():
        if found := _SELF_ATTENTION.fullmatch(path):
            stacks.setdefault(found[1], []).append(path)
    return stacks


def _layers(trace: Trace, stack: str) -> tuple[list[Matrix], NamedArray]:
    """The matrices of a stack's layers, the first one first, and the weights from which axes and labels are taken."""
    stacks = stacks_of(trace)
    if not stacks:
        raise UsageError(
            "This model has no self-attention that could be followed through layers.", "Use a Transformer."
        )
    chosen = stack or ("encoder" if "encoder" in stacks else "decoder")
    if chosen not in stacks:
        raise UsageError(f"There is no self-attention of a stack '{stack}'.", did_you_mean(stack, stacks))
    trace.record(f"*{chosen}.*.self_attention.weights")
    weights = [trace[f"{path}.weights"] for path in stacks[chosen]]
    return [with_residual(own.values) for own in weights], weights[0]


def with_residual(weights: npt.NDArray[np.floating]) -> Matrix:
    """The mean over heads (H, T, T) plus the identity, rows normalised: (T, T)."""
    mean = weights.astype(np.float64).mean(0)
    joined: Matrix = mean + np.eye(len(mean))
    joined /= joined.sum(1, keepdims=True)
    return joined


def roll(layers: list[Matrix]) -> Matrix:
    """The product of the layers' matrices, the last layer's on the left."""
    total = np.eye(len(layers[0]))
    for layer in layers:
        total = layer @ total
    return total
