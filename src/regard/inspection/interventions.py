"""Interventions: what is cut out of a network, or put into it, while it runs; ablation and activation patching.

A head is cut before the output projection: what is left of a sublayer without any head is the bias of that projection.
A sublayer is cut by its output, so that only the residual connection goes on.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from regard.errors import UsageError, did_you_mean
from regard.inspection.axes import step_of
from regard.parts.taps import listening


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Heads of an attention, by their numbers, or a whole sublayer (no heads named): feed-forward, attention, block."""

    module: str
    heads: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.module}:{','.join(map(str, self.heads))}" if self.heads else self.module

    @classmethod
    def parse(cls, text: str) -> "Cut":
        """From `decoder.2.cross_attention:3`, `…:0,3`, or the name of a sublayer alone."""
        module, colon, heads = text.partition(":")
        try:
            numbers = tuple(int(one) for one in heads.split(",")) if colon else ()
        except ValueError:
            raise UsageError(
                f"'{text}' does not name heads.", "Write the sublayer, and its heads: decoder.2.cross_attention:0,3"
            ) from None
        return cls(module=module, heads=numbers)

    def tap_of(self, model: nn.Module) -> str:
        """The tap that is replaced; refuse a sublayer or a head that the model does not have."""
        found = sublayers(model)
        if self.module not in found:
            raise UsageError(
                f"The model has no sublayer '{self.module}' that could be cut.", did_you_mean(self.module, found)
            )
        n_heads = int(getattr(model.get_submodule(self.module), "n_heads", 0))
        if self.heads and not n_heads:
            raise UsageError(f"{self.module} has no heads.", f"Cut it whole: {self.module}")
        for head in self.heads:
            if not 0 <= head < n_heads:
                raise UsageError(
                    f"{self.module} has the heads 0 to {n_heads - 1}, and no head {head}.", "Heads count from 0."
                )
        return f"{self.module}.{'heads' if self.heads else found[self.module]}"

    def apply(self, tensor: Tensor, step: int = 0) -> Tensor:
        """What takes the place of the tap: zeros, in the named heads (B, H, …) or everywhere, at every step."""
        if not self.heads:
            return torch.zeros_like(tensor)
        cut = tensor.clone()
        cut[:, list(self.heads)] = 0.0
        return cut


def sublayers(model: nn.Module) -> dict[str, str]:
    """By its path, everything that a residual connection goes around, and the tap at which it is cut."""
    found = ((path, getattr(module, "ablation_tap", "")) for path, module in model.named_modules())
    return {path: tap for path, tap in found if tap}


@dataclass(frozen=True, kw_only=True, eq=False)
class Patch:
    """A tap whose tensor is replaced by another, in a forward pass over whole sequences.

    values: without the batch, as a trace has it; of a tap that is shown step by step, the steps joined
    """

    name: str
    values: Tensor = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name} = {tuple(self.values.shape)}"

    def tap_of(self, model: nn.Module) -> str:
        return self.name

    def apply(self, tensor: Tensor, step: int = 0) -> Tensor:
        """What takes the place of the tap: all of the values, or those of a step."""
        values = self.values[None] if self.values.dim() == tensor.dim() - 1 else self.values
        if values.shape != tensor.shape:
            values = step_of(self.name, values, step)
        if values.shape != tensor.shape:
            raise UsageError(
                f"{self.name} has the shape {tuple(tensor.shape[1:])} here, and {tuple(self.values.shape)} was to take its "
                "place.",
                "Take it from a trace of as many tokens. A search writes one token after another: while it does, only what "
                "is read at once can be patched, as an encoder.",
            )
        return torch.empty_like(tensor).copy_(values)  # in the same layout, by which some kernels are chosen


Intervention = Cut | Patch


@contextmanager
def intervening(model: nn.Module, interventions: Sequence[Intervention]) -> Iterator[None]:
    """Run the block with a network that is changed so; no interventions change nothing, bit for bit."""
    with ExitStack() as stack:
        for one in interventions:
            steps = itertools.count()  # taps inside a recurrence are shown once per step
            replace = partial(_replacement, one, steps)
            stack.enter_context(listening(model, one.tap_of(model), replace))
        yield


def _replacement(one: Intervention, steps: Iterator[int], name: str, tensor: Tensor) -> Tensor:
    return one.apply(tensor, next(steps))


def as_patches(values: Mapping[str, object]) -> tuple[Patch, ...]:
    """Patches from arrays or tensors by the names of taps."""
    return tuple(Patch(name=name, values=torch.as_tensor(_numbers(own))) for name, own in values.items())


def _numbers(values: object) -> object:
    return getattr(values, "values", values) if not isinstance(values, Tensor) else values
