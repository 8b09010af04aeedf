"""Whether two results of one network differ by rounding: each is held against the same pass in float64.

A network may make rounding large, layer by layer, so that no fixed tolerance tells it from a fault. In float64 rounding is
nothing: what is a fault stays. And two results that are rounded are about equally far from the exact one; of a result that
is wrong and one that is rounded, the first is much farther.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor, nn

from regard.inspection.attention_replay import Numbers, recorded
from regard.inspection.cell import difference
from regard.inspection.trace import Subject, Trace, read_by

EXACT = 1e-6  # of two results in float64, whose arrays are kept in float32
MOST_APART = 64.0  # times as far from the exact result may one rounded result be as another


@dataclass(frozen=True)
class Doubled:
    """A trace and its network, in float64 as soon as somebody asks."""

    trace: Trace
    subject: Subject

    @cached_property
    def exact(self) -> Trace | None:
        """The trace of the same pass in float64; None where the network has a kernel that knows no float64."""
        model = deepcopy(self.subject.model).double()
        for module in model.modules():
            module.register_forward_pre_hook(_as_double)  # pixels come as float32
        try:
            return read_by(self.trace, replace(self.subject, model=model))
        except RuntimeError:
            return None

    def explains(self, tap: str, one: Numbers, other: Numbers, again: Callable[[Trace], float]) -> str:
        """In words, that two results of a tap differ by rounding; empty if they do not.

        again: by how much the two differ in float64
        """
        if self.exact is None or tap not in self.exact:
            return ""
        truth = np.asarray(recorded(self.exact, [tap])[tap].values, np.float64)
        try:
            exactly = again(self.exact)
        except RuntimeError:
            return ""
        near, far = sorted((difference(one, truth), difference(other, truth)))
        if not (exactly <= EXACT and far <= MOST_APART * near):
            return ""
        return f"rounding: from the same in float64 they are {near:.1e} and {far:.1e}"


def _as_double(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one.double() if isinstance(one, Tensor) and one.is_floating_point() else one for one in given)
