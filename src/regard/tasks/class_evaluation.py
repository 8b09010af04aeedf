"""Evaluation of classes, of texts and of images alike: their probabilities, the scores of each, the confusion matrix."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from regard.evaluation.classification import classification_report
from regard.evaluation.confusion_matrix import Classes, ConfusionMatrix, confusion_matrix
from regard.tasks.evaluation import Section

MAX_CLASSES = 20  # of a confusion matrix that fits on a page


def class_probabilities(logits: npt.NDArray[np.floating], labels: Sequence[str]) -> dict[str, float]:
    """The probability of each class by its logits (K,), the likeliest first."""
    probabilities = torch.from_numpy(np.asarray(logits, np.float64)).softmax(-1).numpy()
    order = np.argsort(-probabilities, kind="stable").tolist()
    return {labels[number]: float(probabilities[number]) for number in order}


def class_sections(
    gold: Classes, predicted: Classes, labels: Sequence[str], *, unit: str
) -> tuple[ConfusionMatrix, tuple[Section, ...]]:
    """The confusion matrix, and the tables of an evaluation: precision, recall and F1 of each class, and that matrix."""
    matrix = confusion_matrix(gold, predicted, labels)
    report = classification_report(gold, predicted, labels, unit=unit)
    return matrix, (
        Section(name="classes", table=report.table(), data=report.to_json()),
        Section(name="labels", table=None, data=matrix.labels),
        Section(name="confusion", table=matrix.table() if len(labels) <= MAX_CLASSES else None, data=matrix.counts),
    )
