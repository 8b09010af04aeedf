"""Encoder-only networks as one ONNX graph: BERT and recurrent encoders, with the head of their task.

    ids (B, T), or vectors (B, T, F), and lengths (B,) ── states (B, T, D) ── [pooling] ── head ── logits

Which of two texts a token belongs to is seen from the end token between them, so that ids are all that a caller gives.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.exchange.onnx_graph import Graph, Value, as_array
from regard.exchange.onnx_layers import (
    Look,
    activation,
    embedding,
    encoder_layer,
    encoding,
    linear,
    norm,
    output,
    places,
    real_keys,
    tokens,
)
from regard.models.bert import Bert
from regard.models.recurrent_encoder import RecurrentEncoderModel
from regard.parts import heads
from regard.parts.recurrent import GRU, LSTM, Cell, Elman, RecurrentLayer, ReluElman, SigmoidElman

# ONNX's operator for each cell, its options, and the order of its gates.
_RECURRENT: dict[type[Cell], tuple[str, dict[str, Any], tuple[str, ...]]] = {
    Elman: ("RNN", {"activations": ["Tanh"]}, ("sum",)),
    ReluElman: ("RNN", {"activations": ["Relu"]}, ("sum",)),
    SigmoidElman: ("RNN", {"activations": ["Sigmoid"]}, ("sum",)),
    LSTM: ("LSTM", {}, ("input_gate", "output_gate", "forget_gate", "candidate")),
    GRU: ("GRU", {"linear_before_reset": 1}, ("update_gate", "reset_gate", "candidate")),
}


def encoder_only_graph(model: Bert | RecurrentEncoderModel, *, end_id: int | None) -> Graph:
    """The graph of an encoder; end_id: the token that ends each text, None for sequences of vectors."""
    graph = Graph(model)
    n_features = model.config.n_features
    if n_features:
        inputs = graph.input("vectors", np.float32, "batch", "length", n_features)
    else:
        inputs = graph.input("ids", np.int64, "batch", "length")
    lengths = graph.input("lengths", np.int64, "batch")
    if isinstance(model, Bert):
        states, width = _bert(graph, model, inputs, lengths, end_id), model.config.d_model
    else:
        states, width = _recurrent(graph, model, inputs, lengths), model.encoder.d_output
    graph.output("states", states, np.float32, "batch", "length", width)
    head = model.head
    read = _pooled(graph, model, states, lengths) if head.pools else states
    if isinstance(head, heads.WordHead):
        read = norm(graph, activation(graph, linear(graph, read, head.dense), head.activation), head.norm)
        graph.output("logits", output(graph, read, head.output), np.float32, "batch", "length", model.config.vocab)
    elif isinstance(head, heads.SequenceHead):  # of which that of tokens is one
        shape = ("batch",) if head.pools else ("batch", "length")
        graph.output("logits", linear(graph, read, head.output), np.float32, *shape, model.config.n_outputs)
    return graph


def _bert(graph: Graph, model: Bert, inputs: Value, lengths: Value, end_id: int | None) -> Value:
    entry, positions = model.embedding, places(graph, inputs)
    x = graph.op("Add", tokens(graph, inputs, entry.tokens), encoding(graph, entry.positions, positions, lengths))
    segments = graph.op("Gather", entry.segments.weight, _segments(graph, model, inputs, end_id))
    x = norm(graph, graph.op("Add", x, segments), entry.norm)
    look = Look(real_keys(graph, lengths, positions))
    for layer in model.encoder:
        x = encoder_layer(graph, layer, x, look)
    return x


def _segments(graph: Graph, model: Bert, ids: Value, end_id: int | None) -> Value | int:
    """To which text each token belongs, (B, T): to the second, if the end of the first stands before it."""
    if end_id is None or model.config.n_segments == 1:
        return 0
    ends = graph.cast(graph.op("Equal", ids, end_id), np.int64)
    return graph.op("Min", graph.op("CumSum", ends, 1, exclusive=1), 1)


def _recurrent(graph: Graph, model: RecurrentEncoderModel, inputs: Value, lengths: Value) -> Value:
    x = embedding(graph, inputs, model.embedding, places(graph, inputs), lengths)
    x = graph.op("Transpose", x, perm=[1, 0, 2])  # (T, B, D)
    short = graph.cast(lengths, np.int32)
    for layer in model.encoder.layers:
        assert isinstance(layer, RecurrentLayer)
        x = _recurrent_layer(graph, layer, x, short)
    return graph.op("Transpose", x, perm=[1, 0, 2])


def _recurrent_layer(graph: Graph, layer: RecurrentLayer, x: Value, lengths: Value) -> Value:
    """(T, B, I), of lengths (B,), to (T, B, D · directions)."""
    cells = [layer.forwards, *([] if layer.backwards is None else [layer.backwards])]
    kind, options, gates = _RECURRENT[type(cells[0])]
    options = {**options, "activations": options["activations"] * len(cells)} if "activations" in options else options
    states = graph.op(
        kind,
        x,
        _stacked([_in_order(cell, cell.input_weight, gates) for cell in cells]),
        _stacked([_in_order(cell, cell.state_weight, gates) for cell in cells]),
        _stacked([_biases(cell, gates) for cell in cells]),
        lengths,
        hidden_size=cells[0].d_state,
        direction="forward" if len(cells) == 1 else "bidirectional",
        **options,
    )  # (T, directions, B, D)
    return graph.op("Reshape", graph.op("Transpose", states, perm=[0, 2, 1, 3]), [0, 0, -1])


def _in_order(cell: Cell, weight: Tensor, gates: tuple[str, ...]) -> Tensor:
    return torch.cat([weight[cell.rows(gate)] for gate in gates])


def _biases(cell: Cell, gates: tuple[str, ...]) -> Tensor:
    """The biases of the input, and behind them those of the state, of which only the GRU's candidate has one."""
    second = torch.zeros_like(cell.bias)
    if isinstance(cell, GRU):
        second[cell.rows("candidate")] = cell.state_bias
    return torch.cat([_in_order(cell, bias, gates) for bias in (cell.bias, second)])


def _stacked(weights: list[Tensor]) -> Any:
    return as_array(torch.stack(weights))


def _pooled(graph: Graph, model: Any, states: Value, lengths: Value) -> Value:
    """(B, T, D), of lengths (B,), to one state per sequence (B, D)."""
    pooling = model.pooling
    if pooling is heads.class_state:
        state = graph.op("Gather", states, 0, axis=1)
    elif pooling is heads.mean_state:
        state = _mean(graph, states, lengths)
    else:
        last = graph.op("Unsqueeze", graph.op("Sub", lengths, 1), [1])
        state = graph.op("GatherND", states, last, batch_dims=1)
        if pooling is heads.last_state_of_both:
            width = model.config.d_state
            first = graph.op("Gather", states, 0, axis=1)
            ends = graph.op("Slice", state, [0], [width], [1]), graph.op("Slice", first, [width], [2 * width], [1])
            state = graph.op("Concat", *ends, axis=1)
    pooler = getattr(model, "pooler", None)
    return state if pooler is None else graph.op("Tanh", linear(graph, state, pooler.dense))


def _mean(graph: Graph, states: Value, lengths: Value) -> Value:
    real = graph.op("Less", places(graph, states), graph.op("Unsqueeze", lengths, [1]))  # (B, T)
    kept = graph.op("Where", graph.op("Unsqueeze", real, [2]), states, 0.0)
    count = graph.cast(graph.op("Max", lengths, 1), np.float32)
    return graph.op("Div", graph.op("ReduceSum", kept, [1], keepdims=0), graph.op("Unsqueeze", count, [1]))
