"""The cost of a training step: FLOPs, and activation memory for the backward pass. Counted, not computed.

The model is on torch's device `meta`, where tensors have a shape and no content, and reads a synthetic batch: so a network
of any size is counted in seconds and takes no memory. A few examples are counted; a larger batch costs in proportion.

FLOPs    of matrix products, a multiply-add being two: projections, feed-forward, attention's scores and weighted sums (of
         all pairs, masked or not), convolutions (the zeros outside of the image, too), the output layer. The forward pass is
         counted by torch; the backward pass has two products of the same size for each of it, but one for the layer that
         reads pixels. What is not a product (look-ups, norms, pooling, Adam) is left out.
memory   every tensor that autograd keeps from the forward pass for the backward pass, once, without the weights. Of
         recurrent layers the steps are counted; torch's kernel for an LSTM on a CPU keeps about twice as much.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from regard.models.model_config import ModelConfig
from regard.models.presets import build_model
from regard.parts.attention_kernels import SHORT, SHORT_UNMASKED
from regard.parts.convolution import BatchNorm
from regard.parts.recurrent import Cell
from regard.parts.taps import listening
from regard.training.batch_shape import AnyBatchShape, ImageBatchShape
from regard.training.muon import ITERATIONS
from regard.training.saved_activations import SavedActivations
from regard.training.synthetic_batch import META, synthetic_loss

PASSES = 3  # a product forwards, and two backwards: the gradients of both its factors


def meta_model(config: ModelConfig) -> nn.Module:
    """Build a network without content on the device `meta`, ready to be counted."""
    with META:
        return build_model(config).train()


def min_batch_size(model: nn.Module) -> int:
    """Return how many examples a network needs to be trained at all: batch norm may ask for two."""
    return 2 if any(isinstance(module, BatchNorm) for module in model.modules()) else 1


def training_flops(model: nn.Module, batch: AnyBatchShape) -> float:
    """Return the FLOPs of one training step; every example costs the same."""

    def count(batch: AnyBatchShape) -> int:
        mode = _MetaMode()
        with _counting(model, mode), FlopCounterMode(display=False) as counter:
            synthetic_loss(model, batch)
        without = mode.first_product if isinstance(batch, ImageBatchShape) else 0  # pixels learn nothing
        return PASSES * int(counter.get_total_flops()) - without

    model.eval().requires_grad_(False)  # dropout is no product, and the loss shall not begin with the backward pass
    try:
        return batch.n_examples * _interpolated(count, batch.with_examples(1))
    finally:
        model.train().requires_grad_(True)


@dataclass(frozen=True, kw_only=True)
class Activations:
    """The bytes that autograd keeps for the backward pass: once, as the gradient of the output layer, and per example."""

    fixed: float
    per_example: float

    def of(self, n_examples: float) -> float:
        """The bytes of a step of so many examples."""
        return self.fixed + n_examples * self.per_example


def count_activations(model: nn.Module, batch: AnyBatchShape, *, on_cpu: bool, precision: str) -> Activations:
    """Count what autograd keeps for the backward pass of a step, from the fewest examples and one more.

    on_cpu: whether attention takes the formula for short sequences, as on a CPU, and not always the fused kernel.
    """

    def count(batch: AnyBatchShape) -> int:
        saved = SavedActivations(model)
        mode = _MetaMode(formula_up_to=(SHORT, SHORT_UNMASKED) if on_cpu else (0, 0), halved=precision == "bf16")
        with _counting(model, mode), saved.hooks():
            synthetic_loss(model, batch)
        return saved.n_bytes

    fewest = min_batch_size(model)
    few, more = (_interpolated(count, batch.with_examples(number)) for number in (fewest, fewest + 1))
    return Activations(fixed=few - fewest * (more - few), per_example=more - few)


def count_kernels(model: nn.Module, batch: AnyBatchShape) -> int:
    """Return how many kernels a step starts: those of the forward pass, and about two backwards for each.

    0 for recurrent layers: torch has a kernel for many of their steps.
    """
    if any(isinstance(module, Cell) for module in model.modules()):
        return 0
    counter = _KernelCounter()  # type: ignore[no-untyped-call]  # torch's
    with counter, _counting(model, _MetaMode()):
        synthetic_loss(model, _whole(batch.with_examples(min_batch_size(model))))
    return PASSES * int(counter.count)


def muon_flops(matrices: Iterable[nn.Parameter]) -> float:
    """Return the FLOPs by which Muon orthogonalises the momentum of these matrices, once."""
    total = 0.0
    for matrix in matrices:
        few, many = sorted((matrix.shape[0], matrix[0].numel()))
        total += ITERATIONS * (4 * few * few * many + 2 * few**3)
    return total


def _interpolated(count: Callable[[AnyBatchShape], float], batch: AnyBatchShape) -> float:
    """What a mean length of the target costs that lies between two whole ones."""
    if isinstance(batch, ImageBatchShape):
        return count(batch)
    whole = math.floor(batch.target_length)
    share = batch.target_length - whole
    shorter, longer = (replace(batch, target_length=length) for length in (whole, whole + 1))
    return count(shorter) if not share else (1 - share) * count(shorter) + share * count(longer)


def _whole(batch: AnyBatchShape) -> AnyBatchShape:
    return batch if isinstance(batch, ImageBatchShape) else replace(batch, target_length=round(batch.target_length))


@contextmanager
def _counting(model: nn.Module, mode: "_MetaMode") -> Iterator[None]:
    """Let a model run on shapes alone inside the block.

    Recurrent layers go step by step, as for somebody who listens to the state of their cells: torch's kernels want to know
    each row's length. The products are the same. Where nobody has a cell, nobody listens: a ViT has more to do if one does.
    """
    with_cells = any(isinstance(module, Cell) for module in model.modules())
    steps = listening(model, "*.state", lambda name, tensor: None) if with_cells else nullcontext()
    with steps, mode:
        yield


_QUESTIONS: Mapping[Any, Any] = {Tensor.__int__: 0, Tensor.__bool__: False, Tensor.item: 0}
_LAYERS = {F.linear, F.conv2d}
_PRODUCTS = {*_LAYERS, torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, torch.baddbmm}
_IN_FULL = {F.layer_norm, F.softmax, torch.softmax, Tensor.softmax}


class _MetaMode(TorchFunctionMode):
    """Does what a tensor without content, or without a real device, cannot do by itself.

    formula_up_to:  attention to so many keys, with a mask and without one, is computed by the formula, to more by the
                    fused kernel; None for always
    halved:         whether matrix products read bf16, as they do inside torch.autocast, which knows no `meta`
    first_product:  the FLOPs of the first layer, forwards
    """

    def __init__(self, *, formula_up_to: tuple[int, int] | None = None, halved: bool = False) -> None:
        super().__init__()
        self.formula_up_to = formula_up_to
        self.halved = halved
        self.first_product = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _QUESTIONS:  # such as: is a position too large for the table? Nothing depends on the answer
            return _QUESTIONS[func]
        if self.halved and (func in _PRODUCTS or func is F.scaled_dot_product_attention):
            args, kwargs = _cast(args, kwargs, torch.bfloat16)
        elif self.halved and func in _IN_FULL:
            args, kwargs = _cast(args, kwargs, torch.float32)
        if func is F.scaled_dot_product_attention:
            return self._attend(*args, **kwargs)
        outputs = func(*args, **kwargs)
        if func in _LAYERS and not self.first_product:
            self.first_product = 2 * outputs.numel() * args[1][0].numel()  # of the weights, those of one output
        return outputs

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, attn_mask: Any = None, is_causal: bool = False
    ) -> Tensor:
        # The kernel has no gradient for a bias that is learned.
        learned = attn_mask is not None and attn_mask.requires_grad
        unmasked = attn_mask is None and not is_causal
        if learned or self.formula_up_to is None or key.shape[-2] <= self.formula_up_to[unmasked]:
            # Adding a mask keeps nothing, and is no product.
            return (query @ key.transpose(-2, -1) * scale).softmax(-1) @ value
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        heads: Tensor = kernel(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]
        return heads


class _KernelCounter(TorchDispatchMode):
    """Counts operations that compute something; a view of a tensor starts no kernel."""

    count: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aliases = [argument.alias_info for argument in func._schema.arguments if argument.alias_info is not None]
        self.count += all(alias.is_write for alias in aliases)
        return func(*args, **(kwargs or {}))


def _cast(args: Any, kwargs: Mapping[str, Any], precision: torch.dtype) -> tuple[list[Any], dict[str, Any]]:
    def cast(value: Any) -> Any:
        is_number = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(precision) if is_number else value

    return [cast(value) for value in args], {name: cast(value) for name, value in kwargs.items()}
