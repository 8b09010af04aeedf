"""Gradient norms by layer, from input to output: they show where a deep network's gradients vanish or explode.

Of weight matrices and convolutions alone: biases and the scales of norms are numbers of another kind, which would blur it.
"""

from itertools import accumulate

import torch
from torch import Tensor, nn

from regard.parts.convolution import ImageConvolution


def is_recorded(step: int, *, every: int) -> bool:
    """Whether the norms of this update are written down: of the first, and of each so many after it; of none for 0."""
    return every > 0 and (step - 1) % every == 0


def norms_by_layer(model: nn.Module, *, weight: float) -> dict[str, float]:
    """Return the norm of each layer's gradient, from the gradients of a sum over `weight`: those of the mean.

    Layers come as the model lists them, from input to output. One that is frozen, or has no matrix, has no norm. A matrix
    that several share counts once, where it is listed first.
    """
    layers = layer_names(model)
    gradients: dict[str, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.dim() > 1:
            gradients.setdefault(layers[name], []).append(parameter.grad)
    return {
        layer: float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(found)))) / weight
        for layer, found in gradients.items()
    }


def layer_names(model: nn.Module) -> dict[str, str]:
    """Return the layer of each parameter: `stem.layer`, `stage.0.block.0.layers.1`, `encoder.0`, `embedding`.

    A convolution of images is a layer. Any other is the largest part of the network in which there are no lists of parts, as
    a layer of a stack, with all that it holds.
    """
    divided: set[str] = set()  # too large to be a layer
    for path, module in model.named_modules():
        if isinstance(module, nn.ModuleList | nn.Sequential):
            divided.update(_prefixes(path))
        elif isinstance(module, ImageConvolution):
            divided.update(_prefixes(path)[:-1])
    return {name: next(path for path in _prefixes(name) if path not in divided) for name, _ in model.named_parameters()}


def _prefixes(path: str) -> list[str]:
    """Of `a.b.c`: a, a.b, a.b.c."""
    return list(accumulate(path.split("."), "{}.{}".format))
