"""Stacks of layers: what a network declares of its depth, for layer-wise learning-rate decay (`training/fine_tuning.py`)."""

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
