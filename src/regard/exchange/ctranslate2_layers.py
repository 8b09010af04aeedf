"""The layers of a CTranslate2 model, filled with our weights: linear layers, norms, attention, feed-forward networks.

    ours      query, key, value (D, D) each ── output
    theirs    linear_0 = [query; key; value]  ── linear_1 = output                                 self-attention
              linear_0 = query ── linear_1 = [key; value] ── linear_2 = output                     cross-attention

A spec of theirs says which layers there are, and takes their numbers. What is added to what, and where the norms stand, is
the same in both. This file knows no config.
"""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

Weights = Mapping[str, Tensor]


def numbers(*tensors: Tensor) -> NDArray[Any]:
    """Return tensors one below the other, in memory of their own: the library quantises in place."""
    return torch.cat([tensor.detach().to("cpu", torch.float32) for tensor in tensors]).numpy()


def fill_linear(spec: Any, weights: Weights, *names: str) -> None:
    """Fill a linear layer with one of ours, or with several that read the same."""
    spec.weight = numbers(*(weights[f"{name}.weight"] for name in names))
    if f"{names[0]}.bias" in weights:
        spec.bias = numbers(*(weights[f"{name}.bias"] for name in names))


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    """Fill a layer norm, or an RMS norm, which has no shift."""
    spec.gamma = numbers(weights[f"{name}.weight"])
    if f"{name}.bias" in weights:
        spec.beta = numbers(weights[f"{name}.bias"])


def fill_stack(spec: Any, weights: Weights, side: str) -> None:
    """Fill all layers of a side, encoder or decoder, and the norm behind them."""
    for number, layer in enumerate(spec.layer):
        _fill_attention(layer.self_attention, weights, f"{side}.{number}.self_attention")
        if hasattr(layer, "attention"):
            _fill_attention(layer.attention, weights, f"{side}.{number}.cross_attention")
        _fill_feed_forward(layer.ffn, weights, f"{side}.{number}.feed_forward")
    if hasattr(spec, "layer_norm"):
        fill_norm(spec.layer_norm, weights, f"{side}_norm")


def _fill_attention(spec: Any, weights: Weights, name: str) -> None:
    query, key, value = f"{name}.query", f"{name}.key", f"{name}.value"
    *inputs, output = spec.linear
    for linear, names in zip(
        inputs, [(query, key, value)] if len(inputs) == 1 else [(query,), (key, value)], strict=True
    ):
        fill_linear(linear, weights, *names)
    fill_linear(output, weights, f"{name}.output")
    fill_norm(spec.layer_norm, weights, f"{name}_residual.norm")


def _fill_feed_forward(spec: Any, weights: Weights, name: str) -> None:
    gated = hasattr(spec, "linear_0_noact")
    fill_linear(spec.linear_0, weights, f"{name}.gate" if gated else f"{name}.up")
    if gated:
        fill_linear(spec.linear_0_noact, weights, f"{name}.up")
    fill_linear(spec.linear_1, weights, f"{name}.down")
    fill_norm(spec.layer_norm, weights, f"{name}_residual.norm")
