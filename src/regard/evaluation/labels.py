"""How good labels are: accuracy, macro F1, the confusion matrix, and the F1 of entities as CoNLL counts it.

Knows class numbers and tags, no model. All shares are in percent.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.scores import Score

Integers = NDArray[np.int64]
Classes = Sequence[int] | NDArray[np.integer]  # class numbers (N,), from 0
Tags = Sequence[Sequence[str]]  # a row of tags a sentence

OUTSIDE = "O"
MARKS = ("B-", "I-")


@dataclass(frozen=True, order=True)
class Span:
    """An entity of one sentence: its kind, and the words from `start` to below `end`."""

    start: int
    end: int
    kind: str


def accuracy(gold: Classes, predicted: Classes, *, unit: str = "examples") -> Score:
    """The share of what is labelled right; `unit` says what has a label."""
    right = _as_pairs(gold, predicted)
    return share_right(int((right[0] == right[1]).sum()), right.shape[1], unit=unit)


def top_accuracy(gold: Classes, outputs: NDArray[np.floating], top: int, *, unit: str = "examples") -> Score:
    """The share of what has its class among the `top` likeliest by outputs (N, K); of equal ones the first are those."""
    likeliest = np.argsort(-outputs, axis=1, kind="stable")[:, :top]
    right = (likeliest == np.asarray(gold)[:, None]).any(1)
    return share_right(int(right.sum()), len(right), unit=unit, name=f"top_{top}")


def share_right(n_right: int, n: int, *, unit: str, name: str = "accuracy") -> Score:
    """The accuracy of what was counted on the way; no number where there is nothing."""
    return Score(name=name, value=_percent(n_right, n), signature=f"{unit}:{n}")


def macro_f1(gold: Classes, predicted: Classes, n_classes: int, *, unit: str = "examples") -> Score:
    """The mean of the classes' F1, each class counting the same.

    A class that occurs neither in gold nor predicted has no F1, and does not count: the signature says how many do.
    """
    matrix = confusion(gold, predicted, n_classes)
    n_labels = matrix.sum(0) + matrix.sum(1)
    occurring = n_labels > 0
    f1 = 200 * matrix.diagonal()[occurring] / n_labels[occurring]
    signature = f"{unit}:{matrix.sum()}|averaging:macro|classes:{occurring.sum()} of {n_classes}"
    return Score(name="macro_f1", value=float(f1.mean()) if len(f1) else float("nan"), signature=signature)


def confusion(gold: Classes, predicted: Classes, n_classes: int) -> Integers:
    """How often each class was taken for which: (n_classes, n_classes), a row for each gold class."""
    rows, columns = _as_pairs(gold, predicted)
    counts = np.bincount(rows * n_classes + columns, minlength=n_classes * n_classes)
    return counts.reshape(n_classes, n_classes).astype(np.int64)


def entity_scores(gold: Tags, predicted: Tags) -> list[Score]:
    """F1, precision and recall of whole entities, over all sentences (Tjong Kim Sang and De Meulder 2003).

    Right is only one whose kind and both ends are, as conlleval counts.
    """
    n_gold = n_predicted = n_right = 0
    for wanted, found in zip(gold, predicted, strict=True):
        if len(wanted) != len(found):
            raise ValueError(f"{len(wanted)} gold tags, {len(found)} predicted")
        spans, guesses = set(entities(wanted)), set(entities(found))
        n_gold, n_predicted, n_right = n_gold + len(spans), n_predicted + len(guesses), n_right + len(spans & guesses)
    signature = f"sentences:{len(gold)}|entities:{n_gold}|predicted:{n_predicted}|averaging:micro|scheme:BIO"
    shares = (
        ("entity_f1", _percent(2 * n_right, n_gold + n_predicted)),
        # conlleval has 0 where nothing is predicted; where there is nothing to find, nothing can be said.
        ("entity_precision", _percent(n_right, n_predicted) if n_predicted or not n_gold else 0.0),
        ("entity_recall", _percent(n_right, n_gold)),
    )
    return [Score(name=name, value=value, signature=signature) for name, value in shares]


def entities(tags: Sequence[str]) -> Iterator[Span]:
    """Yield the entities of a sentence's BIO tags.

    As conlleval reads them: B- begins an entity, and so does an I- that continues none of its kind.
    """
    start, kind = 0, ""
    for place, tag in enumerate((*tags, OUTSIDE)):
        mark, own = (tag[:2], tag[2:]) if tag.startswith(MARKS) else ("", "")
        if kind and (mark != "I-" or own != kind):
            yield Span(start, place, kind)
            kind = ""
        if own and not kind:
            start, kind = place, own


def are_entities(tags: Collection[str]) -> bool:
    """Tell whether tags mark entities: all of them are O, B-… or I-…, and not O alone."""
    marked = [tag for tag in tags if tag != OUTSIDE]
    return bool(marked) and all(tag.startswith(MARKS) and len(tag) > 2 for tag in marked)


def _as_pairs(gold: Classes, predicted: Classes) -> Integers:
    """Gold and predicted class numbers, (2, N)."""
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels, {len(predicted)} predicted")
    return np.stack([np.asarray(gold, np.int64), np.asarray(predicted, np.int64)])


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else float("nan")
