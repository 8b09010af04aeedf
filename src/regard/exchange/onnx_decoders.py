"""Decoders as ONNX graphs with a KV cache: the encoder, the first step that reads a prompt, and the steps of one token.

    encoder   source ids, lengths ── states, and each layer's keys and values of the memory
    first     ids (B, T) of lengths ── logits after each row's last id, and the cache: keys and values of all T positions
    next      one more id per row, and the cache ── logits, and the cache with a slot more

Rows may have read prompts of different lengths: the caller says which position each slot of the cache holds, -1 for none.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from regard.exchange.onnx_graph import Graph, Value
from regard.exchange.onnx_layers import (
    Look,
    Rotation,
    attend,
    earlier_keys,
    embedding,
    encoder_layer,
    feed_forward,
    frequencies,
    keys_values,
    n_key_heads,
    near_keys,
    norm,
    output,
    places,
    real_keys,
    relative_bias,
    residual,
    rotation,
)
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.llama import Llama, NoScaling
from regard.models.t5 import T5
from regard.models.transformer import Transformer

KeyValues = tuple[Value, Value]
Decoder = EncoderDecoder | DecoderOnly


def encoder_graph(model: Transformer | T5) -> Graph:
    """ids (B, S) and lengths (B,) to the states (B, S, D), and keys and values (B, H, S, K) of each decoder layer."""
    graph = Graph(model)
    ids = graph.input("ids", np.int64, "batch", "source")
    lengths = graph.input("lengths", np.int64, "batch")
    positions = places(graph, ids)
    allowed = near_keys(graph, real_keys(graph, lengths, positions), positions, positions, model.window)
    bias = None
    if isinstance(model, T5):
        bias = relative_bias(graph, model.encoder_relative_bias, positions, positions)
    look = Look(allowed, bias, _rotation(graph, model, positions))
    x = embedding(graph, ids, model.source_embedding, positions, lengths)
    for layer in model.encoder:
        x = encoder_layer(graph, layer, x, look)
    x = norm(graph, x, model.encoder_norm)
    graph.output("states", x, np.float32, "batch", "source", _width(model))
    for number, layer in enumerate(_layers(model)):
        pair = keys_values(graph, layer.cross_attention, x)
        for name, value, width in zip(("key", "value"), pair, _widths(layer.cross_attention), strict=True):
            shape = ("batch", layer.cross_attention.n_heads, "source", width)
            graph.output(f"memory_{name}_{number}", value, np.float32, *shape)
    return graph


def first_graph(model: Decoder) -> Graph:
    """ids (B, T) of lengths (B,), and the memory if there is one, to logits (B, V) and the cache.

    A decoder-only model gives the states (B, T, D) of all ids, too, from which texts get their vectors.
    """
    graph = Graph(model)
    ids = graph.input("ids", np.int64, "batch", "length")
    lengths = graph.input("lengths", np.int64, "batch")
    positions = places(graph, ids)
    states = _decode(graph, model, ids, lengths, positions, positions, None)
    last = graph.op("Unsqueeze", graph.op("Sub", lengths, 1), [1])
    if isinstance(model, DecoderOnly):
        graph.output("states", states, np.float32, "batch", "length", _width(model))
    logits = output(graph, graph.op("GatherND", states, last, batch_dims=1), model.output)
    graph.output("logits", logits, np.float32, "batch", len(model.output.weight))
    return graph


def next_graph(model: Decoder) -> Graph:
    """ids (B, 1) behind `lengths` (B,) others, those at positions `held` (B, L) in the cache; to the same."""
    graph = Graph(model)
    ids = graph.input("ids", np.int64, "batch", 1)
    lengths = graph.input("lengths", np.int64, "batch")
    held = graph.input("held", np.int64, "batch", "cached")
    cache = []
    for number, layer in enumerate(_layers(model)):
        shapes = [
            ("batch", n_key_heads(layer.self_attention), "cached", width) for width in _widths(layer.self_attention)
        ]
        key = graph.input(f"cached_key_{number}", np.float32, *shapes[0])
        cache.append((key, graph.input(f"cached_value_{number}", np.float32, *shapes[1])))
    positions = graph.op("Unsqueeze", lengths, [1])
    keys = graph.op("Concat", held, positions, axis=1)
    states = _decode(graph, model, ids, lengths, positions, keys, cache)
    logits = output(graph, graph.op("Squeeze", states, [1]), model.output)
    graph.output("logits", logits, np.float32, "batch", len(model.output.weight))
    return graph


def _decode(
    graph: Graph,
    model: Decoder,
    ids: Value,
    lengths: Value,
    positions: Value,
    keys: Value,
    cache: list[KeyValues] | None,
) -> Value:
    """The states (B, T, D) of ids at positions (1 or B, T), which attend to keys at (1 or B, L + T); puts the cache out."""
    allowed = near_keys(graph, earlier_keys(graph, positions, keys), positions, keys, model.window)
    bias = relative_bias(graph, model.decoder_relative_bias, positions, keys) if isinstance(model, T5) else None
    look = Look(allowed, bias, _rotation(graph, model, positions))
    memory, memory_look = _memory(graph, model)
    entry = model.target_embedding if isinstance(model, EncoderDecoder) else model.embedding
    x = embedding(graph, ids, entry, positions, lengths)
    for number, layer in enumerate(_layers(model)):
        x = _hear(graph, x, layer, number, cache[number] if cache else None, look)
        if memory:
            x = _ask(graph, x, layer, memory[number], memory_look)
        x = residual(graph, x, layer.feed_forward_residual, partial(feed_forward, graph, module=layer.feed_forward))
    return norm(graph, x, model.decoder_norm)


def _hear(graph: Graph, x: Value, layer: Any, number: int, cached: KeyValues | None, look: Look) -> Value:
    """Self-attention of a layer, over what the cache holds and what is new; the grown cache is an output."""
    attention = layer.self_attention

    def attend_to_cache(x: Value) -> Value:
        key, value = keys_values(graph, attention, x, look.rotation)
        if cached is not None:
            key, value = (graph.op("Concat", cached[0], key, axis=2), graph.op("Concat", cached[1], value, axis=2))
        for name, kept, width in zip(("key", "value"), (key, value), _widths(attention), strict=True):
            graph.output(f"{name}_{number}", kept, np.float32, "batch", n_key_heads(attention), "grown", width)
        return attend(graph, attention, x, key, value, look)

    return residual(graph, x, layer.self_attention_residual, attend_to_cache)


def _ask(graph: Graph, x: Value, layer: Any, memory: KeyValues, look: Look) -> Value:
    """Cross-attention of a layer."""

    def attend_to_memory(x: Value) -> Value:
        return attend(graph, layer.cross_attention, x, *memory, look)

    return residual(graph, x, layer.cross_attention_residual, attend_to_memory)


def _memory(graph: Graph, model: Decoder) -> tuple[list[KeyValues], Look]:
    """The inputs that a decoder reads of an encoder: keys and values of each layer, and how many of each row are real."""
    if not isinstance(model, EncoderDecoder):
        return [], Look()
    memory = []
    for number, layer in enumerate(_layers(model)):
        shapes = [("batch", layer.cross_attention.n_heads, "source", width) for width in _widths(layer.cross_attention)]
        key = graph.input(f"memory_key_{number}", np.float32, *shapes[0])
        memory.append((key, graph.input(f"memory_value_{number}", np.float32, *shapes[1])))
    lengths = graph.input("source_lengths", np.int64, "batch")
    n_keys = graph.op("Squeeze", graph.op("Shape", memory[0][0], start=2, end=3), [0])
    keys = graph.op("Unsqueeze", graph.op("Range", 0, n_keys, 1), [0])
    return memory, Look(real_keys(graph, lengths, keys))


def _rotation(graph: Graph, model: Decoder, positions: Value) -> Rotation | None:
    """How positions (1 or B, T) turn queries and keys, if they are rotary."""
    if isinstance(model, Transformer) and model.config.positions == "rotary":
        width = model.config.d_model // model.config.n_heads
        return rotation(graph, positions, frequencies(width, model.config.position_base))
    if isinstance(model, Llama):
        turns, scaling = frequencies(model.config.head_width, model.config.position_base), model.config.rotary_scaling
        if not isinstance(scaling, NoScaling):
            turns = turns * scaling.slowed(torch.from_numpy(2 * np.pi / turns)).numpy()
        return rotation(graph, positions, turns)
    return None


def _layers(model: Decoder) -> list[Any]:
    """The decoder's layers, of which nn.ModuleList says only that they are modules."""
    return list(model.decoder)


def _widths(attention: Any) -> tuple[int, int]:
    """How wide a head's keys and values are."""
    n_heads = n_key_heads(attention)
    return attention.key.out_features // n_heads, attention.value.out_features // n_heads


def _width(model: Decoder) -> int:
    return int(model.output.weight.shape[1])
