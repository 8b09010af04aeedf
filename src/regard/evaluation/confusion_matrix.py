"""The confusion matrix: how often each class was taken for which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.table import Table

Integers = NDArray[np.int64]
Classes = Sequence[int] | NDArray[np.integer]  # class numbers (N,), from 0


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix:
    """Counts, a row for each expected class and a column for each predicted one, in the order of `labels`."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def shares(self) -> NDArray[np.float64]:
        """The counts as shares of their row, 0 to 1; NaN in the row of a class that was never expected."""
        counts = np.array(self.counts, np.float64).reshape(len(self.labels), -1)
        with np.errstate(invalid="ignore"):
            shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def most_confused(self, n: int = 10) -> list[dict[str, Any]]:
        """The `n` commonest mistakes: the expected class, the predicted one and how often; the commonest first."""
        mistakes = [one for one in self.records() if one["expected"] != one["predicted"] and one["count"]]
        return sorted(mistakes, key=lambda one: -one["count"])[:n]

    def table(self) -> Table:
        """One row per expected class."""
        rows = zip(self.labels, self.counts, strict=True)
        return Table(
            headings=("expected \\ predicted", *self.labels),
            rows=tuple((label, *(f"{count:,}" for count in row)) for label, row in rows),
        )

    def lines(self) -> list[str]:
        """The table as text."""
        return self.table().lines()

    def records(self) -> list[dict[str, Any]]:
        """One flat dict per cell."""
        return [
            {"expected": expected, "predicted": predicted, "count": count}
            for expected, row in zip(self.labels, self.counts, strict=True)
            for predicted, count in zip(self.labels, row, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """All facts as data that `json.dumps` takes."""
        return {"labels": list(self.labels), "confusion": [list(row) for row in self.counts]}

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def confusion_matrix(gold: Classes, predicted: Classes, labels: Sequence[str]) -> ConfusionMatrix:
    """Count how often each class of `labels` was taken for which."""
    counts = confusion_counts(gold, predicted, len(labels))
    return ConfusionMatrix(labels=tuple(labels), counts=tuple(tuple(row) for row in counts.tolist()))


def confusion_counts(gold: Classes, predicted: Classes, n_classes: int) -> Integers:
    """The same as an array (n_classes, n_classes)."""
    rows, columns = paired_classes(gold, predicted)
    counts = np.bincount(rows * n_classes + columns, minlength=n_classes * n_classes)
    return counts.reshape(n_classes, n_classes).astype(np.int64)


def paired_classes(gold: Classes, predicted: Classes) -> Integers:
    """Gold and predicted class numbers, (2, N)."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels, {len(predicted)} predicted")
    return np.stack([np.asarray(gold, np.int64), np.asarray(predicted, np.int64)])
