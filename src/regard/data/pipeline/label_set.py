"""The labels of a dataset: their order, notes on near-equal and rare ones before the first step, and an unknown one.

Labels are never merged: who wrote them knows whether "Negative" and "NEGATIVE" are one class, or "a" and "A" two.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from regard.data.formats.columns import listed
from regard.data.pipeline.dataset import Notes
from regard.errors import DataError, did_you_mean

N_NAMED = 5  # labels that a note lists
N_GROUPS = 3  # groups of near-equal labels that a note lists
RARE = 2  # examples at most
LARGE = 50  # examples of the most frequent label, beside which others are rare

_SEPARATORS = re.compile(r"(?<=[^\W_])[\s_\-‐-—]+(?=[^\W_])")  # between letters or digits: -1 is not 1
_ENDS = " \t\"'“”‘’«»`"
_STOPS = re.compile(r"(?<=[^\W_])[.,;:]+$")


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return labels in order: as numbers where all are whole numbers, else as texts."""
    labels = list(labels)
    if all(label.isdecimal() for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def unknown_label(place: str, label: str, known: Sequence[str], *, noun: str, trained: bool) -> DataError:
    """Return the error for a label that is none of those that are learned.

    trained: whether these are the labels of the training files, or a run's own
    """
    if trained:
        near = [one for one in known if plain_label(one) == plain_label(label)]
        remedy = "Add training examples of it, or leave such examples out of validation."
        if near:
            remedy = f"Write it as '{near[0]}', if that is meant: labels are compared letter by letter."
        return DataError(f"{place}: the {noun} '{label}' does not occur in training.", remedy)
    return DataError(
        f"{place}: the {noun} '{label}' is none of the {len(known):,} that the model knows.",
        did_you_mean(label, known),
    )


def label_notes(noun: str, kept: Iterable[str], counts: Mapping[str, int], *, labelled: str = "") -> Notes:
    """Note what a person should know of labels and how often each occurs in training.

    noun:      what is held out
    kept:      labels of which nothing is held out, lest none is left
    labelled:  what has a label, where it is not what is held out, as the words of sentences
    """
    kept, empty = sorted(kept), [label for label, count in counts.items() if not count]
    notes = [("not held out", f"all {noun}s of {_named(kept)}, of which too few are there")] if kept else []
    notes += [("empty", f"no training {noun} has the label {_named(empty)}")] if empty else []
    return (*notes, *_near_notes(counts), *_rare_notes(counts, labelled or noun))


def near_equal(labels: Iterable[str]) -> list[list[str]]:
    """Return the groups of labels that differ only in case, white space, quotes, or "_" and "-", each in their order."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(plain_label(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def plain_label(label: str) -> str:
    """Return what near-equal labels have in common; never nothing: tags such as "." and "," are different."""
    plain = unicodedata.normalize("NFKC", label).casefold().strip(_ENDS)
    plain = _STOPS.sub("", _SEPARATORS.sub(" ", plain))
    return " ".join(plain.split()) or label


def _near_notes(counts: Mapping[str, int]) -> Notes:
    groups = near_equal(counts)
    if not groups:
        return ()
    shown = [listed([f"'{label}' ({counts[label]:,})" for label in group]) for group in groups[:N_GROUPS]]
    rest = len(groups) - len(shown)
    more = f"; and {rest:,} more such group{'s' * (rest > 1)}" if rest else ""
    consequence = "trained as different classes; if they mean the same, write them alike in the data"
    return (("near-equal", f"labels {'; '.join(shown)}{more}: {consequence}"),)


def _rare_notes(counts: Mapping[str, int], noun: str) -> Notes:
    rare = {label: count for label, count in counts.items() if 0 < count <= RARE}
    if not rare or max(counts.values()) < LARGE:
        return ()
    shown = [f"'{label}' ({count})" for label, count in list(rare.items())[:N_NAMED]]
    rest = len(rare) - len(shown)
    named = listed([*shown, f"{rest:,} more"] if rest else shown)
    have = f"{len(rare):,} of {len(counts):,} labels {'has' if len(rare) == 1 else 'have'} one or two training {noun}s"
    return (("rare", f"{have}, too few to be learned: {named}"),)


def _named(labels: Sequence[str]) -> str:
    shown = [f"'{label}'" for label in labels[:N_NAMED]]
    rest = len(labels) - len(shown)
    return listed([*shown, f"{rest:,} more"] if rest else shown)
