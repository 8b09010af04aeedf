"""Stacks of layers: what a network declares of its depth.

Layer-wise learning-rate decay goes by it (`training/fine_tuning.py`), and so does which matrices are trained by Muon
(`training/optimizer.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import nn


@dataclass(frozen=True)
class Stack:
    """The layers of a network, or of a part of one, from the bottom to the top.

    below: what lies below all of them: embeddings, positions, a stem
    """

    layers: Iterable[nn.Module]
    below: Sequence[nn.Module] = ()


@runtime_checkable
class HasStacks(Protocol):
    """A network that declares its stacks. What belongs to none, such as a head or the norm behind a stack, is the top."""

    def stacks(self) -> Sequence[Stack]:
        """The stacks, in the order in which they are read."""
        ...


def find_stacks(model: nn.Module) -> list[Stack]:
    """Return the stacks that a network and its parts declare; of a custom one that declares none, its lists of layers."""
    declared = [stack for module in model.modules() if isinstance(module, HasStacks) for stack in module.stacks()]
    if declared:
        return declared
    embeddings = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    lists: dict[str, nn.ModuleList] = {}
    for path, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and not any(path.startswith(f"{outer}.") for outer in lists):
            lists[path] = module
    return [Stack(layers, below=embeddings) for layers in lists.values()]
