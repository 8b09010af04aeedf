"""A baseline: a frozen dataclass of arrays, which is all that is kept of it; and what such arrays are held to.

A baseline predicts what a model predicts, in the same form (logits, probabilities, tokens), so that the same metrics score
both. Its arrays may come from a file that somebody else has written: `__post_init__` checks whatever is used of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer]

MOST_ENTRIES = 2_000_000  # numbers in one table of a baseline: eight megabytes
LARGEST = 1e30  # of a logit


@dataclass(frozen=True, eq=False)
class Baseline:
    """What all have in common; `name` as people call it: "naive Bayes"."""

    name: ClassVar[str]

    @property
    def n_inputs(self) -> int | None:
        """How many features it reads; None where these are hashed, so that any will do."""
        return None

    @property
    def n_outputs(self) -> int:
        """How many classes, numbers or tokens it chooses from."""
        raise NotImplementedError

    @property
    def arrays(self) -> dict[str, Array]:
        """All that is to be kept of it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], *, n_inputs: int, n_outputs: int) -> Self:
        """Make it from what was kept; ValueError where that is not such as was learned for data of these sizes."""
        names = {field.name for field in fields(cls)}
        if arrays.keys() != names:
            raise ValueError(f"of {cls.name}, {', '.join(sorted(names ^ arrays.keys()))} is missing or too much")
        found = cls(**arrays)
        if found.n_inputs not in (None, n_inputs) or found.n_outputs != n_outputs:
            raise ValueError(f"{cls.name} is of other data than the run's")
        return found


def sum_by(places: Integers, weights: Array, n: int) -> npt.NDArray[np.float64]:
    """Add up weights (N,) by their places (N,) from 0 to below n: (n,)."""
    found: npt.NDArray[np.float64] = np.bincount(places, weights.astype(np.float64), minlength=n).astype(np.float64)
    return found


def as_logits(numbers: Array) -> Floats:
    """Numbers in single precision, which holds only so large ones."""
    found: Floats = np.clip(numbers, -LARGEST, LARGEST).astype(np.float32)
    return found


def require_numbers(array: Array, *shape: int | None) -> None:
    """Refuse an array of another shape (None for any length), or of anything but numbers that single precision holds."""
    _require_shape(array, shape)
    if array.dtype.kind != "f" or not (np.abs(array) <= np.finfo(np.float32).max).all():
        raise ValueError("finite numbers were expected")


def require_integers(array: Array, *shape: int | None, least: int = 0, below: int | None = None) -> None:
    """Refuse an array of another shape, of other numbers than integers, or with one outside the range."""
    _require_shape(array, shape)
    if array.dtype.kind not in "iu":
        raise ValueError("whole numbers were expected")
    if array.size and (array.min() < least or (below is not None and array.max() >= below)):
        raise ValueError("a number is outside its range")


def _require_shape(array: Array, shape: tuple[int | None, ...]) -> None:
    if array.ndim != len(shape) or any(wanted not in (None, n) for n, wanted in zip(array.shape, shape, strict=True)):
        raise ValueError(f"an array has the shape {array.shape}, and {shape} was expected")
