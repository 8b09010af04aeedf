"""A dataset, ready for a task: its training and its validation split, and notes for the report before the first step.

How often a file is parsed, and why. Memory must not grow with a file, so nothing of it is kept between two passes but what
lies on the disk, and a pass is made only for what the one before it had to find out:

    files ──► 1 survey ───────► 2 vocabulary size ──► 3 vocabulary ──► 4 encoding ───────► stored corpora, mapped
              bad rows,           stops as soon as       the training    training and
              validation split    the size is known      split alone     validation at once

A survey and stored corpora are remembered under a hash of the files' content and the settings: a second run makes pass 2
and 3 alone, and one that brings its vocabulary along, as a run that goes on does, makes none. Validation files of their own
are parsed once, for 4. Images, which are dear to decode, are decoded once and stored first; their split is a matter of row
numbers. Tables of captions are surveyed each time, for the images that they name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.data.formats.columns import listed
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.corpus import Corpus
from regard.errors import DataError, did_you_mean

Notes = tuple[tuple[str, str], ...]  # what a person should know, a label and a text each
Split = TypeVar("Split")
N_NAMED = 5  # labels that a note lists


@dataclass(frozen=True, kw_only=True)
class Dataset(Generic[Split]):
    """The training and the validation split, and what was seen on the way."""

    train: Split
    valid: Split
    train_files: tuple[str, ...]  # to which the numbers in the column `file` of a corpus point
    valid_files: tuple[str, ...]
    n_held_out: int  # how much of the training files is the validation split; 0 where there was validation data
    notes: Notes
    hashes: Mapping[str, str]  # the content of each file or folder


def left_out(train: Iterable[BadRows], valid: Iterable[BadRows]) -> Notes:
    """Note which rows were left out of training and of validation."""
    of_training = [sentence for bad_rows in train for sentence in bad_rows.sentences()]
    of_validation = [f"of validation, {sentence}" for bad_rows in valid for sentence in bad_rows.sentences()]
    return tuple(("left out", sentence) for sentence in (*of_training, *of_validation))


def rebuilt(*corpora: Corpus) -> Notes:
    """Note what was damaged in the cache."""
    return tuple(("damaged", sentence) for sentence in dict.fromkeys(one for own in corpora for one in own.rebuilt))


def label_notes(noun: str, kept: Iterable[str], counts: Mapping[str, int]) -> Notes:
    """Note the labels of which nothing is held out, lest none is left, and those without training examples."""
    kept, empty = sorted(kept), [label for label, count in counts.items() if not count]
    notes = [("not held out", f"all {noun}s of {_named(kept)}, of which too few are there")] if kept else []
    return (*notes, *([("empty", f"no training {noun} has the label {_named(empty)}")] if empty else ()))


def refuse_empty(count: int, name: str, noun: str) -> None:
    """Refuse a split without examples; `name` says whether it is for training or validation."""
    if not count:
        raise DataError(f"No {noun} is left for {name}.", "Give more, or give validation files with --valid.")


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
        return DataError(
            f"{place}: the {noun} '{label}' does not occur in training.",
            "Add training examples of it, or leave such examples out of validation.",
        )
    return DataError(
        f"{place}: the {noun} '{label}' is none of the {len(known):,} that the model knows.",
        did_you_mean(label, known),
    )


def _named(labels: Sequence[str]) -> str:
    shown = [f"'{label}'" for label in labels[:N_NAMED]]
    rest = len(labels) - len(shown)
    return listed([*shown, f"{rest:,} more"] if rest else shown)
