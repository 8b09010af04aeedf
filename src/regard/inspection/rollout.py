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
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace

Matrix = npt.NDArray[np.float64]
MOST_POSITIONS = 64  # of a flow: there is a maximum flow to find for each two of them
_NOTHING = 1e-12  # of capacity or excess: rounding
_SELF_ATTENTION = re.compile(r"(?:.*\.)?(encoder|decoder)\.\d+\.self_attention")


def rollout(trace: Trace, stack: str = "") -> NamedArray:
    """The product of all layers' attention, with the residual connection: (position, position), rows sum to 1.

    stack: encoder or decoder; empty for the only one, or else the encoder.
    """
    layers, like = _layers(trace, stack)
    return NamedArray(roll(layers).astype(np.float32), like.axes[1:], like.labels)


def flow(trace: Trace, stack: str = "") -> NamedArray:
    """The maximum flow from each position of the last layer to each of the input: (position, position), at most 1.

    stack: as for `rollout`. It takes seconds for 20 positions, minutes for 64.
    """
    layers, like = _layers(trace, stack)
    n_positions = len(layers[0])
    if n_positions > MOST_POSITIONS:
        raise UsageError(
            f"Attention flow is for at most {MOST_POSITIONS} positions, and here are {n_positions}.",
            "Use attention rollout, which takes any number of them, or give a shorter input.",
        )
    return NamedArray(flow_between(layers).astype(np.float32), like.axes[1:], like.labels)


def _layers(trace: Trace, stack: str) -> tuple[list[Matrix], NamedArray]:
    """The matrices of a stack's layers, the first one first, and the weights from which axes and labels are taken."""
    stacks: dict[str, list[str]] = {}
    for path in trace.attentions():
        if found := _SELF_ATTENTION.fullmatch(path):
            stacks.setdefault(found[1], []).append(path)
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


def flow_between(layers: list[Matrix]) -> Matrix:
    """The maximum flow from each position above the last layer to each position below the first."""
    reached = roll(layers) > 0
    n = len(reached)
    return np.array([[max_flow(layers, i, j) if reached[i, j] else 0.0 for j in range(n)] for i in range(n)])


def max_flow(layers: list[Matrix], source: int, sink: int) -> float:
    """The maximum flow down through layers of capacities (T, T), from a position above the last to one below the first.

    Push-relabel (Goldberg & Tarjan 1988): excess is pushed to whatever is nearer to the sink, or back up; whole layers at
    once, as no two of their edges share a capacity. Labels are the exact distances, found anew before each round. What
    cannot reach the sink any more stays where it is: only the value is asked for.
    """
    top = len(layers)
    down = np.array(layers)  # what an edge can still take, from a position (row) to one below (column)
    up = np.zeros_like(down)  # what it carries, and could give back
    excess = np.zeros((top + 1, len(layers[0])))
    excess[top - 1] = up[-1, source] = down[-1, source]  # the source has pushed all that it can
    down[-1, source] = 0.0
    while True:
        distance = _distances(down, up, sink)
        waiting = excess[:top] > _NOTHING
        waiting[0, sink] = False
        if not (waiting & np.isfinite(distance[:top])).any():
            return float(excess[0, sink])
        for level in range(top - 1, 0, -1):
            nearer = distance[level][:, None] == distance[level - 1] + 1
            pushed = _pushed(excess[level], down[level - 1] * nearer)
            _move(excess, level, level - 1, pushed, down[level - 1], up[level - 1])
        for level in range(top):
            nearer = distance[level][:, None] == distance[level + 1] + 1
            pushed = _pushed(excess[level] * (distance[level] > 0), up[level].T * nearer)
            _move(excess, level, level + 1, pushed, up[level].T, down[level].T)


def _pushed(excess: npt.NDArray[np.float64], room: Matrix) -> Matrix:
    """Give the excess (T,) of each position to its edges (T, T), one after the other, as much as each has room for."""
    left = excess[:, None] - np.cumsum(room, axis=1) + room
    pushed: Matrix = np.minimum(np.maximum(left, 0.0), room)
    return pushed


def _move(excess: Matrix, start: int, end: int, pushed: Matrix, room: Matrix, back: Matrix) -> None:
    """Take what is pushed from one row of positions to another, in place."""
    room -= pushed
    back += pushed
    excess[start] -= pushed.sum(1)
    excess[end] += pushed.sum(0)


def _distances(down: Matrix, up: Matrix, sink: int) -> Matrix:
    """How many edges with room lie between each position and the sink, breadth first: (layers + 1, T); infinite for none."""
    can_fall, can_rise = down > _NOTHING, up > _NOTHING  # (layers, above, below)
    distance = np.full((len(down) + 1, down.shape[1]), np.inf)
    newest = np.zeros(distance.shape, np.bool_)
    newest[0, sink] = True
    steps = 0
    while newest.any():
        distance[newest] = steps
        found = np.zeros_like(newest)
        found[1:] = (can_fall & newest[:-1, None, :]).any(2)
        found[:-1] |= (can_rise & newest[1:, :, None]).any(1)
        newest = found & np.isinf(distance)
        steps += 1
    return distance
