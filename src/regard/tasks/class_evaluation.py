"""Evaluation of classes, of texts and of images alike: their probabilities, the scores of each, the confusion matrix."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.evaluation import classification
from regard.evaluation.confusion_matrix import Classes, ConfusionMatrix, confusion_matrix
from regard.evaluation.sufficient_statistics import Floats, Statistics
from regard.tasks.evaluation import Section

MAX_CLASSES = 20  # of a confusion matrix that fits on a page


def class_probabilities(logits: npt.NDArray[np.floating], labels: Sequence[str]) -> dict[str, float]:
    """The probability of each class by its logits (K,), the likeliest first."""
    probabilities = softmax(logits)
    order = np.argsort(-probabilities, kind="stable").tolist()
    return {labels[number]: float(probabilities[number]) for number in order}


def softmax(logits: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Logits (…, K) to probabilities."""
    return torch.from_numpy(np.asarray(logits, np.float64)).softmax(-1).numpy()


def class_statistics(gold: Classes, predicted: Classes, labels: Sequence[str], *, unit: str) -> list[Statistics]:
    """What each example adds to accuracy and to macro F1, for paired tests.

    Two runs compare by macro F1 if they know the same classes, which its signature names; which of these occur is left out,
    as that depends on what a run predicts.
    """
    accuracy, macro_f1 = classification.class_statistics(gold, predicted, len(labels), unit=unit)
    classes = hashlib.sha256("\n".join(labels).encode()).hexdigest()[:8]
    return [accuracy, replace(macro_f1, signature=f"{accuracy.signature}|averaging:macro|classes:{classes}")]


def class_costs(logits: Tensor, targets: Tensor, loss: Callable[[Tensor, Tensor], tuple[Tensor, float]]) -> Floats:
    """What examples add to the loss and to the accuracy: its loss, its weight, whether it is right, and 1; (B, 4).

    loss: from logits (B, K) and targets (B,) to the sum of their losses and its weight
    """
    right = (logits.argmax(1) == targets).tolist()
    found = [loss(logits[row : row + 1], targets[row : row + 1]) for row in range(len(targets))]
    return np.array([(float(own), weight, one, 1.0) for (own, weight), one in zip(found, right, strict=True)])


def class_sections(
    gold: Classes, predicted: Classes, labels: Sequence[str], *, unit: str
) -> tuple[ConfusionMatrix, tuple[Section, ...]]:
    """The confusion matrix, and the tables of an evaluation: precision, recall and F1 of each class, and that matrix."""
    matrix = confusion_matrix(gold, predicted, labels)
    report = classification.classification_report(gold, predicted, labels, unit=unit)
    return matrix, (
        Section(name="classes", table=report.table(), data=report.to_json()),
        Section(name="labels", table=None, data=matrix.labels),
        Section(name="confusion", table=matrix.table() if len(labels) <= MAX_CLASSES else None, data=matrix.counts),
    )
