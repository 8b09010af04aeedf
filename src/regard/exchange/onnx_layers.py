"""The parts of a network as ONNX operators: embeddings, positions, norms, attention, feed-forward networks, masks.

Each function appends to a graph what the part of the same name computes in evaluation, and says the shapes. Positions are
(1, T), or (R, T) where rows stand at different ones, so that the rest broadcasts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from regard.exchange.onnx_graph import Array, Graph, Value, as_array
from regard.parts.activations import ACTIVATIONS
from regard.parts.embedding import InputEmbedding, OutputLayer, TokenEmbedding
from regard.parts.feedforward import FeedForward, GatedFeedForward
from regard.parts.norms import LayerNorm, RMSNorm
from regard.parts.positions import Fraction, Index, Learned, RelativeBias, Sinusoidal
from regard.parts.residual import PostNorm, PreNorm

# The score of a key that is hidden. Not -inf: a row of padding that sees nothing would become NaN, and spread.
HIDDEN = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Rotation:
    """Rotary positions: cosines and sines (1 or R, 1, T, K/2)."""

    cosines: Value
    sines: Value


@dataclass(frozen=True)
class Look:
    """What attention goes by beside its keys: who may attend to whom (1 or R, 1, T, S), a bias, a rotation."""

    allowed: Value | None = None
    bias: Value | None = None  # (1 or R, H, T, S)
    rotation: Rotation | None = None


def linear(graph: Graph, x: Value, layer: nn.Linear) -> Value:
    """(…, I) to (…, O)."""
    product = graph.op("MatMul", x, graph.transposed(layer.weight))
    return product if layer.bias is None else graph.op("Add", product, layer.bias)


def output(graph: Graph, states: Value, layer: OutputLayer) -> Value:
    """(…, D) to the logits (…, V); the matrix may be that of the tokens, and is not written twice."""
    logits = graph.op("MatMul", states, graph.op("Transpose", layer.weight, perm=[1, 0]))
    return logits if layer.bias is None else graph.op("Add", logits, layer.bias)


def norm(graph: Graph, x: Value, module: nn.Module) -> Value:
    """(…, D) to the same."""
    if isinstance(module, LayerNorm):
        return graph.op("LayerNormalization", x, module.weight, module.bias, axis=-1, epsilon=module.epsilon)
    if isinstance(module, RMSNorm):
        square = graph.op("ReduceMean", graph.op("Mul", x, x), [-1], keepdims=1)
        root = graph.op("Sqrt", graph.op("Add", square, module.epsilon))
        return graph.op("Mul", graph.op("Div", x, root), module.weight)
    assert isinstance(module, nn.Identity)
    return x


def activation(graph: Graph, x: Value, function: Callable[..., Any]) -> Value:
    """(…) to the same."""
    name = next(name for name, known in ACTIVATIONS.items() if known is function)
    if name == "relu":
        return graph.op("Relu", x)
    if name == "silu":
        return graph.op("Mul", x, graph.op("Sigmoid", x))
    return graph.op("Gelu", x, approximate="tanh" if name == "gelu-tanh" else "none")


def feed_forward(graph: Graph, x: Value, module: nn.Module) -> Value:
    """(B, T, D) to the same."""
    if isinstance(module, GatedFeedForward):
        gate = activation(graph, linear(graph, x, module.gate), module.activation)
        hidden = graph.op("Mul", gate, linear(graph, x, module.up))
    else:
        assert isinstance(module, FeedForward)
        hidden = activation(graph, linear(graph, x, module.up), module.activation)
    return linear(graph, hidden, module.down)


def residual(graph: Graph, x: Value, module: nn.Module, sublayer: Callable[[Value], Value]) -> Value:
    """(B, T, D) to the same."""
    if isinstance(module, PreNorm):
        return graph.op("Add", x, sublayer(norm(graph, x, module.norm)))
    if isinstance(module, PostNorm):
        return norm(graph, graph.op("Add", x, sublayer(x)), module.norm)
    return sublayer(x)


# -- positions ----------------------------------------------------------------------------------------------------------


def places(graph: Graph, x: Value) -> Value:
    """The positions (1, T) of ids (B, T), or vectors (B, T, F)."""
    length = graph.op("Squeeze", graph.op("Shape", x, start=1, end=2), [0])
    return graph.op("Unsqueeze", graph.op("Range", 0, length, 1), [0])


def embedding(graph: Graph, ids: Value, module: InputEmbedding, positions: Value, lengths: Value) -> Value:
    """ids (B, T), or vectors (B, T, F), of lengths (B,), to (B, T, D)."""
    x = tokens(graph, ids, module.tokens)
    if module.positions is None:
        return x
    encoded = encoding(graph, module.positions, positions, lengths)
    if module.join is None:
        return graph.op("Add", x, encoded)
    encoded = graph.op("Expand", encoded, graph.op("Shape", x))
    return linear(graph, graph.op("Concat", x, encoded, axis=-1), module.join)


def tokens(graph: Graph, ids: Value, module: nn.Module) -> Value:
    """ids (B, T), or vectors (B, T, F), to (B, T, D)."""
    if not isinstance(module, TokenEmbedding):
        assert isinstance(module, nn.Linear)
        return linear(graph, ids, module)
    vectors = graph.op("Gather", module.weight, ids)
    return vectors if module.scale == 1 else graph.op("Mul", vectors, module.scale)


def encoding(graph: Graph, module: nn.Module, positions: Value, lengths: Value) -> Value:
    """Positions (1 or R, T) of sequences of lengths (B,) to (1 or B, T, D), or (1 or B, T, 1) alike in every feature."""
    if isinstance(module, Learned):
        return graph.op("Gather", module.weight, positions)
    if isinstance(module, Sinusoidal):
        return _sinusoids(graph, positions, module.table.shape[1], module.base)
    numbers = graph.cast(positions, np.float32)
    if isinstance(module, Fraction):
        last = graph.op("Max", graph.op("Sub", lengths, 1), 1)
        numbers = graph.op("Div", numbers, graph.op("Unsqueeze", graph.cast(last, np.float32), [1]))
    else:
        assert isinstance(module, Index)
    return graph.op("Unsqueeze", numbers, [-1])


def _sinusoids(graph: Graph, positions: Value, width: int, base: float) -> Value:
    angles = _angles(graph, positions, frequencies(width, base))
    waves = [graph.op("Unsqueeze", graph.op(kind, angles), [-1]) for kind in ("Sin", "Cos")]
    both = graph.op("Reshape", graph.op("Concat", *waves, axis=-1), [0, 0, -1])
    return both if width % 2 == 0 else graph.op("Slice", both, [0], [width], [2])


def frequencies(width: int, base: float) -> Array:
    """How far each pair of features turns from one position to the next, (width / 2,)."""
    turns: Array = base ** -(np.arange(0, width, 2, dtype=np.float64) / width)
    return turns


def rotation(graph: Graph, positions: Value, turns: Array) -> Rotation:
    """How positions (1 or R, T) turn queries and keys; turns: `frequencies` of a head."""
    angles = graph.op("Unsqueeze", _angles(graph, positions, turns), [1])
    return Rotation(graph.op("Cos", angles), graph.op("Sin", angles))


def _angles(graph: Graph, positions: Value, turns: Array) -> Value:
    """(1 or R, T) to (1 or R, T, K): within a full turn in double precision, and in single from there."""
    exact = graph.op("Unsqueeze", graph.cast(positions, np.float64), [-1])
    inside = graph.op("Mod", graph.op("Mul", exact, turns), np.array(2 * math.pi), fmod=1)
    return graph.cast(inside, np.float32)


def relative_bias(graph: Graph, module: RelativeBias, queries: Value, keys: Value) -> Value:
    """Positions (1 or R, T) and (1 or R, S) to what their distances add to the scores, (1 or R, H, T, S)."""
    most = module.max_distance
    distances = graph.op("Sub", graph.op("Unsqueeze", keys, [1]), graph.op("Unsqueeze", queries, [2]))
    place = graph.op("Add", graph.op("Clip", distances, -most, most), most)
    by_distance = as_array(module.weight)[module.buckets.cpu().numpy()]
    return graph.op("Transpose", graph.op("Gather", by_distance, place), perm=[0, 3, 1, 2])


# -- attention ----------------------------------------------------------------------------------------------------------


def real_keys(graph: Graph, lengths: Value, keys: Value) -> Value:
    """Which of the keys at (1, S) are real in rows of lengths (B,): (B, 1, 1, S)."""
    return graph.op("Less", graph.op("Unsqueeze", keys, [1, 2]), graph.op("Unsqueeze", lengths, [1, 2, 3]))


def earlier_keys(graph: Graph, queries: Value, keys: Value) -> Value:
    """Which keys at (1 or R, S), -1 for none, are no later than queries at (1 or R, T): (1 or R, 1, T, S)."""
    own = graph.op("Unsqueeze", keys, [1, 2])
    earlier = graph.op("LessOrEqual", own, graph.op("Unsqueeze", queries, [1, 3]))
    return graph.op("And", earlier, graph.op("GreaterOrEqual", own, 0))


def near_keys(graph: Graph, allowed: Value, queries: Value, keys: Value, window: int | None) -> Value:
    """Those of the allowed keys that are at most so far away."""
    if window is None:
        return allowed
    distances = graph.op("Sub", graph.op("Unsqueeze", keys, [1, 2]), graph.op("Unsqueeze", queries, [1, 3]))
    return graph.op("And", allowed, graph.op("LessOrEqual", graph.op("Abs", distances), window))


def keys_values(graph: Graph, module: Any, memory: Value, turned: Rotation | None = None) -> tuple[Value, Value]:
    """(B, S, D) to keys (B, G, S, K) and values (B, G, S, V)."""
    key = _split_heads(graph, linear(graph, memory, module.key), n_key_heads(module))
    value = _split_heads(graph, linear(graph, memory, module.value), n_key_heads(module))
    return (key if turned is None else _rotated(graph, key, turned)), value


def attend(graph: Graph, module: Any, states: Value, key: Value, value: Value, look: Look) -> Value:
    """(B, T, D) attending to ready keys and values, to (B, T, D); heads may share keys and values in groups."""
    query = _split_heads(graph, linear(graph, states, module.query), module.n_heads)
    if look.rotation is not None:
        query = _rotated(graph, query, look.rotation)
    if module.scale != 1:
        query = graph.op("Mul", query, float(module.scale))
    n_groups, allowed = n_key_heads(module), look.allowed
    grouped = n_groups != module.n_heads
    if grouped:  # (B, G, H / G, T, K), for which a key of each group serves
        width = module.query.out_features // module.n_heads
        query = graph.op("Reshape", query, [0, n_groups, module.n_heads // n_groups, -1, width])
        key, value = (graph.op("Unsqueeze", one, [2]) for one in (key, value))
        allowed = None if allowed is None else graph.op("Unsqueeze", allowed, [1])
    scores = graph.op("MatMul", query, _swapped(graph, key, 5 if grouped else 4))
    if look.bias is not None:
        scores = graph.op("Add", scores, look.bias)
    if allowed is not None:
        scores = graph.op("Where", allowed, scores, HIDDEN)
    heads = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
    if grouped:
        heads = graph.op("Reshape", heads, [0, module.n_heads, -1, module.output.in_features // module.n_heads])
    joined = graph.op("Reshape", graph.op("Transpose", heads, perm=[0, 2, 1, 3]), [0, 0, -1])
    return linear(graph, joined, module.output)


def n_key_heads(module: Any) -> int:
    """How many heads of keys and values attention has: queries may share them."""
    return int(getattr(module, "n_key_heads", module.n_heads))


def _split_heads(graph: Graph, x: Value, n_heads: int) -> Value:
    """(B, T, H · K) to (B, H, T, K)."""
    return graph.op("Transpose", graph.op("Reshape", x, [0, 0, n_heads, -1]), perm=[0, 2, 1, 3])


def _swapped(graph: Graph, x: Value, n_axes: int) -> Value:
    """The last two axes changed for each other."""
    *others, rows, columns = range(n_axes)
    return graph.op("Transpose", x, perm=[*others, columns, rows])


def _rotated(graph: Graph, x: Value, turned: Rotation) -> Value:
    """(B, H, T, K) to the same: pairs of neighbouring features turned."""
    pairs = graph.op("Reshape", x, [0, 0, 0, -1, 2])
    first, second = (graph.op("Gather", pairs, number, axis=4) for number in (0, 1))
    cosines, sines = turned.cosines, turned.sines
    new_first = graph.op("Sub", graph.op("Mul", first, cosines), graph.op("Mul", second, sines))
    new_second = graph.op("Add", graph.op("Mul", first, sines), graph.op("Mul", second, cosines))
    both = [graph.op("Unsqueeze", one, [-1]) for one in (new_first, new_second)]
    return graph.op("Reshape", graph.op("Concat", *both, axis=-1), [0, 0, 0, -1])


def encoder_layer(graph: Graph, layer: Any, x: Value, look: Look) -> Value:
    """(B, T, D) to the same."""

    def hear(x: Value) -> Value:
        return attend(graph, layer.self_attention, x, *keys_values(graph, layer.self_attention, x, look.rotation), look)

    x = residual(graph, x, layer.self_attention_residual, hear)
    x = residual(graph, x, layer.feed_forward_residual, lambda x: feed_forward(graph, x, layer.feed_forward))
    return x
