"""Networks over images as one ONNX graph: ViT, ResNet, ConvNet. pixels (B, C, H, W), normalised, to logits (B, N)."""

from typing import Any

import numpy as np
from torch import nn

from regard.exchange.onnx_graph import Graph, Value
from regard.exchange.onnx_layers import Look, encoder_layer, linear, norm
from regard.models.convnet import ConvNet
from regard.models.resnet import ResNet
from regard.models.vit import ViT, ViTConfig
from regard.parts.convolution import (
    IMAGE_ACTIVATIONS,
    BatchNorm,
    Concatenation,
    ImageConvolution,
    PlainBlock,
    ResidualBlock,
)

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}


def image_graph(model: ViT | ResNet | ConvNet) -> Graph:
    """The graph of a network over images; only a ViT asks for images of one size."""
    graph = Graph(model)
    config = model.config
    size = (config.image_size, config.image_size) if isinstance(config, ViTConfig) else ("height", "width")
    pixels = graph.input("pixels", np.float32, "batch", config.n_channels, *size)
    state = _vit(graph, model, pixels) if isinstance(model, ViT) else _mean(graph, _features(graph, model, pixels))
    graph.output("logits", linear(graph, state, model.head.output), np.float32, "batch", config.n_outputs)
    return graph


def _vit(graph: Graph, model: ViT, pixels: Value) -> Value:
    """(B, C, H, W) to the last state of the class token (B, D)."""
    entry, n_channels, size = model.embedding, model.embedding.n_channels, model.embedding.patch_size
    edge = entry.image_size // size
    grid = graph.op("Reshape", pixels, [0, n_channels, edge, size, edge, size])
    by_patch = graph.op("Transpose", grid, perm=[0, 2, 4, 1, 3, 5])
    patches = linear(graph, graph.op("Reshape", by_patch, [0, edge * edge, -1]), entry.patches)
    shape = graph.op("Concat", graph.op("Shape", pixels, start=0, end=1), [1, model.config.d_model], axis=0)
    x = graph.op("Concat", graph.op("Expand", entry.class_token, shape), patches, axis=1)
    x = graph.op("Add", x, entry.positions.weight)
    for layer in model.encoder:
        x = encoder_layer(graph, layer, x, Look())
    return norm(graph, graph.op("Gather", x, 0, axis=1), model.encoder_norm)


def _mean(graph: Graph, features: Value) -> Value:
    """(B, D, H, W) to (B, D)."""
    return graph.op("ReduceMean", features, [2, 3], keepdims=0)


def _features(graph: Graph, model: ResNet | ConvNet, pixels: Value) -> Value:
    """(B, C, H, W) to the last map (B, D, H', W')."""
    x = pixels
    if isinstance(model, ConvNet):
        for layer in model.layers:
            x = _convolution(graph, x, layer)
            x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        return x
    x = _convolution(graph, x, model.stem.layer)
    if isinstance(model.stem.pool, nn.MaxPool2d):
        x = graph.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for name in model.block_names:
        x = _block(graph, x, model.get_submodule(name))
    return x


def _block(graph: Graph, x: Value, block: Any) -> Value:
    """(B, C, H, W) to what the layers of a block make of it, and its skip."""
    found = x
    for layer in block.layers:
        found = _convolution(graph, found, layer)
    if isinstance(block, PlainBlock):
        return _activation(graph, found, block.activation)
    assert isinstance(block, ResidualBlock)
    skipped = _convolution(graph, x, block.shortcut) if isinstance(block.shortcut, ImageConvolution) else x
    if isinstance(block.join, Concatenation):
        found = _convolution(graph, graph.op("Concat", found, skipped, axis=1), block.join.mix)
    else:
        found = graph.op("Add", found, skipped)
    return _activation(graph, found, block.activation)


def _convolution(graph: Graph, x: Value, layer: Any) -> Value:
    """activation(norm(convolution(x)))."""
    own: nn.Conv2d = layer.convolution
    weights = (own.weight,) if own.bias is None else (own.weight, own.bias)
    height, width = (int(size) for size in own.padding)
    x = graph.op("Conv", x, *weights, strides=list(own.stride), pads=[height, width, height, width])
    if isinstance(layer.norm, BatchNorm):
        kept = layer.norm.running_mean, layer.norm.running_variance
        x = graph.op("BatchNormalization", x, layer.norm.weight, layer.norm.bias, *kept, epsilon=layer.norm.epsilon)
    return _activation(graph, x, layer.activation)


def _activation(graph: Graph, x: Value, function: Any) -> Value:
    name = next(name for name, known in IMAGE_ACTIVATIONS.items() if known is function)
    return x if name == "none" else graph.op(_ACTIVATIONS[name], x)
