"""Metrics of classification: accuracy, top-k accuracy, macro F1, and a report on each class.

Knows class numbers, no model. All shares are in percent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.class_report import ClassReport, class_report
from regard.evaluation.confusion_matrix import Classes, Integers, confusion_counts, paired_classes
from regard.evaluation.intervals import wilson
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Statistics, SummedCounts, share_statistics


def accuracy(gold: Classes, predicted: Classes, *, unit: str = "examples") -> Score:
    """The share of correct classes; `unit` says what has a class."""
    wanted, found = paired_classes(gold, predicted)
    return share_correct(int((wanted == found).sum()), len(wanted), unit=unit)


def top_accuracy(gold: Classes, outputs: NDArray[np.floating], top: int, *, unit: str = "examples") -> Score:
    """The share of examples whose class is among the `top` likeliest by outputs (N, K); of equal ones the first are."""
    return top_statistics(gold, outputs, top, unit=unit).score


def share_correct(n_correct: int, n: int, *, unit: str, name: str = "accuracy") -> Score:
    """The accuracy of what was counted on the way; NaN where there is nothing."""
    value = 100 * n_correct / n if n else float("nan")
    return Score(name=name, value=value, signature=f"{unit}:{n}", interval=wilson(n_correct, n))


def macro_f1(gold: Classes, predicted: Classes, n_classes: int, *, unit: str = "examples") -> Score:
    """The mean of the classes' F1, each class counting the same.

    A class that occurs neither in gold nor predicted has no F1, and does not count: the signature says how many do.
    """
    matrix = confusion_counts(gold, predicted, n_classes)
    n_labels = matrix.sum(0) + matrix.sum(1)
    occurring = n_labels > 0
    f1 = 200 * matrix.diagonal()[occurring] / n_labels[occurring]
    signature = f"{unit}:{matrix.sum()}|averaging:macro|classes:{occurring.sum()} of {n_classes}"
    return Score(name="macro_f1", value=float(f1.mean()) if len(f1) else float("nan"), signature=signature)


def classification_report(
    gold: Classes, predicted: Classes, labels: Sequence[str], *, unit: str = "examples"
) -> ClassReport:
    """Precision, recall, F1 and support of each class, by its number's label."""
    matrix = confusion_counts(gold, predicted, len(labels))
    return class_report(labels, n_correct=matrix.diagonal(), n_predicted=matrix.sum(0), n_gold=matrix.sum(1), unit=unit)


def class_statistics(gold: Classes, predicted: Classes, n_classes: int, *, unit: str = "examples") -> list[Statistics]:
    """What each example adds to accuracy and to macro F1."""
    wanted, found = paired_classes(gold, predicted)
    score = macro_f1(wanted, found, n_classes, unit=unit)
    return [
        share_statistics("accuracy", wanted == found, unit=unit),
        _ClassCounts(metric="macro_f1", signature=score.signature, gold=wanted, predicted=found, n_classes=n_classes),
    ]


def top_statistics(gold: Classes, outputs: NDArray[np.floating], top: int, *, unit: str = "examples") -> SummedCounts:
    """What each example adds to top-k accuracy by outputs (N, K)."""
    likeliest = np.argsort(-outputs, axis=1, kind="stable")[:, :top]
    return share_statistics(f"top_{top}", (likeliest == np.asarray(gold)[:, None]).any(1), unit=unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassCounts(Statistics):
    """The statistics of macro F1: each class's correct, expected and predicted examples.

    They would be three columns per class, nearly all zero; so they are counted anew for each selection.
    """

    gold: Integers
    predicted: Integers
    n_classes: int

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def value(self) -> float:
        return macro_f1(self.gold, self.predicted, self.n_classes).value

    def resampled(self, times: Floats) -> Floats:
        return self._macro_f1(self._counted(self.gold, times), self._counts(times))

    def swapped(self, other: Self, mine: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        here, there = mine.astype(np.float64), (~mine).astype(np.float64)
        n_gold = np.bincount(self.gold, minlength=self.n_classes).astype(np.float64)
        first = self._counts(here) + other._counts(there)
        second = self._counts(there) + other._counts(here)
        return self._macro_f1(n_gold, first), self._macro_f1(n_gold, second)

    def _counts(self, weights: Floats) -> Floats:
        """How often (2, R, K) each class is predicted, and correctly, with examples weighted (R, N)."""
        correct = self.predicted == self.gold
        return np.stack((self._counted(self.predicted, weights), self._counted(self.predicted, weights * correct)))

    def _counted(self, classes: Integers, weights: Floats) -> Floats:
        """The weights (R, N) summed by class, (R, K)."""
        n_rows, n_classes = len(weights), self.n_classes
        places = classes + n_classes * np.arange(n_rows)[:, None]
        counted: NDArray[Any] = np.bincount(places.ravel(), weights.ravel(), minlength=n_rows * n_classes)
        return counted.reshape(n_rows, n_classes)

    @staticmethod
    def _macro_f1(n_gold: Floats, counts: Floats) -> Floats:
        n_predicted, n_correct = counts
        n_labels = n_gold + n_predicted
        n_occurring = (n_labels > 0).sum(axis=1)
        f1: Floats = (200 * n_correct / np.maximum(n_labels, 1)).sum(axis=1) / n_occurring
        return f1
