"""Large maps: blocks of positions where there are too many to draw each, and a part of a map at full resolution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError

MOST_CELLS = 128  # of a row or a column


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Weights of which each stands for so many rows and columns: the largest of them, as most weights are near 0.

    NaN, as of masked cells, where the whole block is.
    """

    values: NDArray[Any]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    size: tuple[int, int]

    @property
    def legend(self) -> str:
        """What a cell shows."""
        rows, columns = self.size
        return (
            "attention weight" if self.size == (1, 1) else f"largest attention weight of {rows} × {columns} positions"
        )


def in_blocks(
    weights: NDArray[Any], row_labels: Sequence[str], column_labels: Sequence[str], most: int = MOST_CELLS
) -> Blocks:
    """Weights (…, T, S) as they are, or in blocks so large that there are at most so many rows and columns.

    A block's label is the number of its first position, and the token that stands there.
    """
    size = -(-weights.shape[-2] // most), -(-weights.shape[-1] // most)
    values = weights
    for axis, own in zip((-2, -1), size, strict=True):
        if own > 1:
            values = np.fmax.reduceat(values, range(0, values.shape[axis], own), axis=axis)
    rows, columns = (_labels(labels, own) for labels, own in zip((row_labels, column_labels), size, strict=True))
    return Blocks(values=values, row_labels=rows, column_labels=columns, size=size)


def _labels(labels: Sequence[str], size: int) -> tuple[str, ...]:
    if size == 1:
        return tuple(labels)
    return tuple(f"{place} {labels[place].strip()}" for place in range(0, len(labels), size))


@dataclass(frozen=True)
class Part:
    """A range of positions, from the first to before the last; all of them by default."""

    begin: int = 0
    end: int | None = None

    @classmethod
    def parse(cls, text: str, flag: str) -> "Part":
        """From `100:140`, `100:` or `:40`; empty for all."""
        begin, colon, end = text.partition(":")
        if not text:
            return cls()
        try:
            found = cls(int(begin or 0), int(end) if end else None)
        except ValueError:
            found = cls(-1)
        if not colon or found.begin < 0 or (found.end is not None and found.end <= found.begin):
            raise UsageError(
                f"{flag} '{text}' is no range of positions.",
                f"Give the first, and the one behind the last: {flag} 0:40",
            )
        return found

    def within(self, n: int, what: str) -> slice:
        """The positions that there are of it; refuse a range without any."""
        if self.begin >= n:
            raise UsageError(f"There are the {what} 0 to {n - 1}, and none from {self.begin} on.", "They count from 0.")
        return slice(self.begin, min(n, self.end or n))

    def __bool__(self) -> bool:
        return self != Part()
