"""An array with named axes, of which some have a label for each place: what a trace is made of."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError, did_you_mean
from regard.runs.disk import without_non_finite

Values = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False, repr=False)
class NamedArray:
    """Numbers with the names of their axes: `array.at(head=3, target=4)`; numpy takes it as an array.

    labels: by axis, what stands at each place of it
    """

    values: Values
    axes: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.axes):
            raise ValueError(f"{self.values.ndim} axes have {len(self.axes)} names: {', '.join(self.axes)}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.values, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        """Numbers by their places, as numpy has it."""
        return self.values[index]

    def at(self, **places: int) -> "NamedArray":
        """The part at some places, each by the name of its axis; those axes are gone then."""
        index: list[Any] = [slice(None)] * self.values.ndim
        for name, place in places.items():
            if name not in self.axes:
                raise UsageError(f"There is no axis '{name}': they are {', '.join(self.axes)}.", self._near(name))
            axis = self.axes.index(name)
            if not -self.shape[axis] <= place < self.shape[axis]:
                raise UsageError(
                    f"The axis {name} has {self.shape[axis]} places, and none is {place}.", "They count from 0."
                )
            index[axis] = place
        left = tuple(axis for axis in self.axes if axis not in places)
        return NamedArray(
            self.values[tuple(index)], left, {axis: self.labels[axis] for axis in left if axis in self.labels}
        )

    def to_json(self, *, blob: bool = False) -> dict[str, Any]:
        """Axes, shape, labels and numbers, as data that `json.dumps` takes: lists in which what is not finite is null, or
        with `blob` float16 in base64, little end first, row by row, in which it stays."""
        facts = {
            "axes": list(self.axes),
            "shape": list(self.shape),
            "labels": {axis: list(own) for axis, own in self.labels.items()},
        }
        if not blob:
            return {**facts, "values": without_non_finite(self.values.tolist())}
        with np.errstate(over="ignore"):
            half = np.ascontiguousarray(self.values, dtype="<f2")
        return {**facts, "dtype": "float16", "base64": base64.b64encode(half.tobytes()).decode("ascii")}

    def _near(self, name: str) -> str:
        return did_you_mean(name, self.axes)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis} {size}" for axis, size in zip(self.axes, self.shape, strict=True))
        return f"<NamedArray ({sizes}) {self.values.dtype}>"

    def _repr_svg_(self) -> str | None:
        """A notebook shows maps by themselves."""
        from regard.inspection.notebook import svg_of

        return svg_of(self)
