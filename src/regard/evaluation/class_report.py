"""Precision, recall, F1 and support of each class, and their micro, macro and weighted averages."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.metrics import METRICS
from regard.evaluation.sufficient_statistics import Floats
from regard.evaluation.table import Table

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ClassScores:
    """One class, or an average over them: shares in percent, and how many of it there are to find (support).

    Precision is 0 where a class is never predicted, and recall NaN where there is none to find. Of a class that occurs
    nowhere all three are NaN.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, kw_only=True)
class ClassReport:
    """The classes in their order; then the averages: micro (all examples alike), macro (all classes alike), weighted
    (classes by their support). An average leaves out classes of which it has no number."""

    unit: str  # what has a class: examples, words, entities
    classes: tuple[ClassScores, ...]
    averages: tuple[ClassScores, ...]

    def table(self) -> Table:
        """One row per class and per average."""
        averages = [(f"{one.label} average", one) for one in self.averages]
        rows = [(one.label, one) for one in self.classes] + averages
        return Table(
            headings=("class", "precision", "recall", "F1", self.unit),
            rows=tuple((label, *_cells(one)) for label, one in rows),
        )

    def lines(self) -> list[str]:
        """The table as text."""
        return self.table().lines()

    def records(self) -> list[dict[str, Any]]:
        """One flat dict per class."""
        return [asdict(one) for one in self.classes]

    def to_json(self) -> dict[str, Any]:
        """All facts as data that `json.dumps` takes."""
        averages = {one.label: {k: v for k, v in asdict(one).items() if k != "label"} for one in self.averages}
        return {"unit": self.unit, "classes": self.records(), "averages": averages}

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def class_report(
    labels: Sequence[str], *, n_correct: Integers, n_predicted: Integers, n_gold: Integers, unit: str
) -> ClassReport:
    """Report on classes of which so many (K,) were found correctly, were predicted, and were there to be found."""
    precision, recall, f1 = precision_recall_f1(np.stack((n_correct, n_predicted, n_gold), axis=1).astype(np.float64))
    classes = tuple(
        ClassScores(label=label, precision=float(p), recall=float(r), f1=float(f), support=int(n))
        for label, p, r, f, n in zip(labels, precision, recall, f1, n_gold, strict=True)
    )
    total = np.array([n_correct.sum(), n_predicted.sum(), n_gold.sum()], np.float64)
    averages = {
        "micro": [float(one) for one in precision_recall_f1(total)],
        "macro": [_mean(one, np.ones(len(one))) for one in (precision, recall, f1)],
        "weighted": [_mean(one, n_gold.astype(np.float64)) for one in (precision, recall, f1)],
    }
    return ClassReport(
        unit=unit,
        classes=classes,
        averages=tuple(
            ClassScores(label=label, precision=p, recall=r, f1=f, support=int(n_gold.sum()))
            for label, (p, r, f) in averages.items()
        ),
    )


def precision_recall_f1(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1 (…) in percent from counts (…, 3) of what is correct, predicted and there to be found."""
    n_correct, n_predicted, n_gold = counts[..., 0], counts[..., 1], counts[..., 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        # conlleval has 0 where nothing is predicted; where there is nothing to find, nothing can be said.
        precision = np.where((n_predicted == 0) & (n_gold > 0), 0.0, 100 * n_correct / n_predicted)
        recall: Floats = 100 * n_correct / n_gold
        f1: Floats = 100 * (2 * n_correct) / (n_predicted + n_gold)
    return precision, recall, f1


def _mean(values: Floats, weights: Floats) -> float:
    """The weighted mean of those that are numbers; NaN of none."""
    defined = ~np.isnan(values) & (weights > 0)
    return float((values[defined] * weights[defined]).sum() / weights[defined].sum()) if defined.any() else float("nan")


def _cells(scores: ClassScores) -> tuple[str, ...]:
    shares = (scores.precision, scores.recall, scores.f1)
    return (*(METRICS["macro_f1"].format(share, precise=True) for share in shares), f"{scores.support:,}")
