"""Metrics of tagging: accuracy of tags; precision, recall and F1 of named entities (BIO tags) as conlleval counts them.

Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 Shared Task", 2003. All shares are in percent.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.evaluation.class_report import ClassReport, class_report, precision_recall_f1
from regard.evaluation.classification import classification_report
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, SummedCounts, share_statistics

Tags = Sequence[Sequence[str]]  # one sequence of tags per sentence

OUTSIDE = "O"
MARKS = ("B-", "I-")


@dataclass(frozen=True, order=True)
class Span:
    """An entity of one sentence: its kind, and the words from `start` to below `end`."""

    start: int
    end: int
    kind: str


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


def entity_scores(gold: Tags, predicted: Tags) -> list[Score]:
    """F1, precision and recall of whole entities, over all sentences; correct is one whose kind and both ends are."""
    return [statistics.score for statistics in entity_statistics(gold, predicted)]


def entity_statistics(gold: Tags, predicted: Tags) -> list[SummedCounts]:
    """What each sentence adds to entity F1, precision and recall: its correct, predicted and expected entities, (N, 3)."""
    rows = [(len(wanted & found), len(found), len(wanted)) for wanted, found in _paired_entities(gold, predicted)]
    counts = np.array(rows, dtype=np.float64).reshape(-1, 3)
    _, n_predicted, n_gold = counts.sum(axis=0)
    signature = f"sentences:{len(gold)}|entities:{n_gold:.0f}|predicted:{n_predicted:.0f}|averaging:micro|scheme:BIO"
    formulas = {"entity_f1": _f1, "entity_precision": _precision, "entity_recall": _recall}
    return [
        SummedCounts(metric=name, signature=signature, counts=counts, formula=formula)
        for name, formula in formulas.items()
    ]


def tag_statistics(gold: Tags, predicted: Tags, *, labels: Collection[str], unit: str = "words") -> list[SummedCounts]:
    """What each sentence adds to the accuracy of its words' tags and, if all `labels` mark some, to the entity scores."""
    pairs = list(_paired(gold, predicted))
    n_correct = [sum(one == other for one, other in zip(*pair, strict=True)) for pair in pairs]
    n_words = [len(wanted) for wanted, _ in pairs]
    accuracy = share_statistics("accuracy", np.array(n_correct), np.array(n_words), unit=unit)
    return [accuracy, *(entity_statistics(gold, predicted) if are_entities(labels) else [])]


def entity_report(gold: Tags, predicted: Tags) -> ClassReport:
    """Precision, recall, F1 and support of the entities of each kind, in the order of the alphabet."""
    n_correct, n_predicted, n_gold = Counter[str](), Counter[str](), Counter[str]()
    for wanted, found in _paired_entities(gold, predicted):
        n_correct.update(_kinds(wanted & found))
        n_predicted.update(_kinds(found))
        n_gold.update(_kinds(wanted))
    kinds = sorted(n_predicted | n_gold)
    correct, predictions, support = (
        np.array([counts[kind] for kind in kinds], np.int64) for counts in (n_correct, n_predicted, n_gold)
    )
    return class_report(kinds, n_correct=correct, n_predicted=predictions, n_gold=support, unit="entities")


def tag_report(gold: Tags, predicted: Tags, *, unit: str = "words") -> ClassReport:
    """Precision, recall, F1 and support of each tag; a tag's recall is the accuracy of the words that have it."""
    pairs = list(_paired(gold, predicted))
    tags = sorted({tag for pair in pairs for own in pair for tag in own})
    number = {tag: place for place, tag in enumerate(tags)}
    wanted, found = ([number[tag] for pair in pairs for tag in pair[side]] for side in (0, 1))
    return classification_report(wanted, found, tags, unit=unit)


def _precision(sums: Floats) -> Floats:
    return precision_recall_f1(sums)[0]


def _recall(sums: Floats) -> Floats:
    return precision_recall_f1(sums)[1]


def _f1(sums: Floats) -> Floats:
    return precision_recall_f1(sums)[2]


def _kinds(spans: Iterable[Span]) -> list[str]:
    return [span.kind for span in spans]


def _paired_entities(gold: Tags, predicted: Tags) -> Iterator[tuple[set[Span], set[Span]]]:
    for wanted, found in _paired(gold, predicted):
        yield set(entities(wanted)), set(entities(found))


def _paired(gold: Tags, predicted: Tags) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    for wanted, found in zip(gold, predicted, strict=True):
        if len(wanted) != len(found):
            raise ValueError(f"{len(wanted)} gold tags, {len(found)} predicted")
        yield wanted, found
