"""A dataset, ready for a task: its training and its validation split, and notes for the report before the first step.

How often a file is parsed, and why. Memory must not grow with a file, so nothing of it is kept between two passes but what
lies on the disk, and a pass is made only for what the one before it had to find out:

    files ──► 1 survey ───────► 2 vocabulary size ──► 3 vocabulary ──► 4 encoding ───────► stored corpora, mapped
              bad rows,           and letter case;       the training    training and
              validation split    stops as soon as       split alone     validation at once
                                  both are known

A survey and stored corpora are remembered under a hash of the files' content and the settings: a second run makes pass 2
and 3 alone, one that brings a vocabulary along pass 2 for letter case, and one that goes on makes none. Validation files of
their own are parsed once, for 4. Images, which are dear to decode, are decoded once and stored first; their split is a
matter of row numbers. Tables of captions are surveyed each time, for the images that they name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.corpus import Corpus
from regard.errors import DataError

Notes = tuple[tuple[str, str], ...]  # what a person should know, a label and a text each
Split = TypeVar("Split")


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


def refuse_empty(count: int, name: str, noun: str) -> None:
    """Refuse a split without examples; `name` says whether it is for training or validation."""
    if not count:
        raise DataError(f"No {noun} is left for {name}.", "Give more, or give validation files with --valid.")
