"""Labelled images, from folders and files to training and validation: decoded once, screened, held out, stored.

All images of one split become one corpus, in which the held out ones are rows like the others: which these are is a
matter of numbers, and costs no second decoding. Its columns stand in `stored_images.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.config import DataConfig
from regard.data.formats.columns import listed
from regard.data.formats.image_folder import LARGEST_OWN
from regard.data.images.decoding import ImageShape, suited
from regard.data.images.sources import find_images, find_split
from regard.data.images.storage import ImageSet, stored_images
from regard.data.images.survey import ImageSource
from regard.data.labelled.survey import sorted_labels
from regard.data.pipeline.bad_rows import Progress, allowed_share
from regard.errors import DataError, did_you_mean

N_NAMED = 5  # classes that a told decision lists


@dataclass(frozen=True, kw_only=True)
class ImageData:
    """Training and validation images, and what was seen on the way."""

    train: ImageSet
    valid: ImageSet
    shape: ImageShape
    labels: tuple[str, ...]
    counts: Mapping[str, int]  # of each label in training
    mean: tuple[float, ...]  # of each channel of the training images, of pixels from 0 to 1
    deviation: tuple[float, ...]  # likewise
    n_held_out: int  # 0 where there was validation data
    told: tuple[tuple[str, str], ...]  # decisions that a person should know of, label and text
    hashes: Mapping[str, str]  # the content of each folder or file


def prepare_images(
    data: DataConfig,
    *,
    size: int = 0,
    channels: int = 0,
    usual: int = LARGEST_OWN,
    labels: tuple[str, ...] | None = None,
    progress: Progress,
) -> ImageData:
    """Read, screen, hold out and store images, or find them stored.

    size, channels:  what all images become; 0 takes what suits the training images
    usual:           what photographs become, where no size is asked for
    labels:          those that are known already, as from another run; None takes them from the training images
    """
    if not data.train:
        raise DataError("There is nothing to train on.", "Give a folder of class folders, or files, with --train.")
    share = allowed_share(data.on_bad)
    sources = find_images(data.train, split="train")
    shape = _shape(sources, size, channels, usual)
    valid_sources = find_images(data.valid, split="valid") if data.valid else find_split(data.train, "valid")
    found = stored_images(sources, shape, progress)
    found.faults.enforce(share)
    _refuse_empty(found, share)
    known = labels if labels is not None else sorted_labels(found.corpus.facts["labels"])
    train = _numbered(found, known, trained=labels is None)
    _refuse_one_class(train)
    kept: list[str] = []
    if valid_sources:
        valid = stored_images(valid_sources, shape, progress)
        valid.faults.enforce(share)
        valid = _numbered(valid, known, trained=labels is None)
    else:
        train, valid, kept = _split(train, known, data.valid_size)
    counts = dict(zip(known, np.bincount(train.classes, minlength=len(known)).tolist(), strict=True))
    mean, deviation = train.statistics()
    return ImageData(
        train=train,
        valid=valid,
        shape=shape,
        labels=known,
        counts=counts,
        mean=mean,
        deviation=deviation,
        n_held_out=0 if valid_sources else len(valid),
        told=_told(data, train, valid, counts, kept),
        hashes=train.hashes if not valid_sources else _both(train.hashes, valid.hashes),
    )


def read_images(
    names: Sequence[str],
    data: DataConfig,
    *,
    shape: ImageShape,
    labels: tuple[str, ...],
    split: str = "test",
    progress: Progress,
) -> ImageSet:
    """Return all good images of some folders and files with labels that are known, to be scored.

    Where these are divided into splits, those of one split; its `faults` say which were bad.
    """
    found = stored_images(find_images(names, split=split), shape, progress)
    found.faults.enforce(allowed_share(data.on_bad))
    return _numbered(found, labels, trained=False)


def _shape(sources: Sequence[ImageSource], size: int, channels: int, usual: int) -> ImageShape:
    """Return what all images become: as asked, else as it suits the first source, in colours if any has them."""
    if size and channels:
        return ImageShape(size, channels)
    own = [source.own_shape() for source in sources]
    return ImageShape(size or suited(own[0].size, usual), channels or max(shape.channels for shape in own))


def _numbered(images: ImageSet, labels: Sequence[str], *, trained: bool) -> ImageSet:
    """Return the same images with their classes in the order of `labels`; one that is none of them is an error."""
    numbers = {label: number for number, label in enumerate(labels)}
    found = list(images.corpus.facts["labels"])
    for own, label in enumerate(found):
        if label in numbers:
            continue
        [place] = images.places([int(np.argmax(images.classes == own))])
        if trained:
            raise DataError(
                f"{place}: the class '{label}' does not occur in training.",
                "Add training images of it, or leave such images out of validation.",
            )
        raise DataError(
            f"{place}: the class '{label}' is none of the {len(labels):,} that the model knows.",
            did_you_mean(label, labels),
        )
    order = np.array([numbers[label] for label in found], np.int64)
    return replace(images, classes=order[images.classes])


def _split(images: ImageSet, labels: Sequence[str], wanted: int) -> tuple[ImageSet, ImageSet, list[str]]:
    """Hold out images for validation; return the others, these, and the classes of which none is held out.

    Equal images fall on one side. A class of which all images would be held out stays in training.
    """
    held_out = images.held_out(wanted)
    there, left = (np.bincount(own, minlength=len(labels)) for own in (images.classes, images.classes[~held_out]))
    lost = (there > 0) & (left == 0)
    held_out &= ~lost[images.classes]
    if not held_out.any():
        raise DataError(
            f"{', '.join(images.roots)}: no image can be held out for validation without the last of a class.",
            "Give more images, or give validation images with --valid.",
        )
    training, valid = (
        replace(images, rows=rows, classes=images.classes[rows])
        for rows in (np.flatnonzero(~held_out), np.flatnonzero(held_out))
    )
    return training, valid, [label for label, gone in zip(labels, lost.tolist(), strict=True) if gone]


def _refuse_empty(train: ImageSet, share: float) -> None:
    """Refuse a class folder of training without a good image, unless bad images are borne."""
    empty = train.empty_folders
    if empty and share < 1:
        raise DataError(
            f"{empty[0]}: no image that can be read is in this class folder.",
            "Add images, remove the folder, or leave it out with --on-bad keep-going.",
        )


def _refuse_one_class(train: ImageSet) -> None:
    labels = train.corpus.facts["labels"]
    if len(labels) == 1:
        [only] = labels
        raise DataError(
            f"{', '.join(train.roots)}: all images are of the class '{only}'.",
            "Give images of two classes at least, each class in a folder of its own.",
        )


def _both(train: Mapping[str, str], valid: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of training and validation; of what holds both, both."""
    return {**valid, **{root: own + valid.get(root, "") for root, own in train.items()}}


def _told(
    data: DataConfig, train: ImageSet, valid: ImageSet, counts: Mapping[str, int], kept: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """What the report before the first step says of decisions that were taken."""
    told = [("size", train.fitted)] if train.fitted else []
    held_out = train.corpus is valid.corpus
    if held_out and find_split(data.train, "test"):
        told.append(("held out", "no split is of validation; the split test is left for `regard evaluate`"))
    if kept:
        told.append(("not held out", f"all images of {_named(kept)}, of which too few are there"))
    missing = [label for label, count in counts.items() if not count]
    if missing:
        told.append(("empty", f"no training image is of the class {_named(missing)}"))
    told += [("empty", f"no image in {folder}") for folder in train.empty_folders]
    told += [("left out", sentence) for sentence in train.faults.sentences()]
    if not held_out:
        told += [("left out", f"of validation, {sentence}") for sentence in valid.faults.sentences()]
        shared = int(np.isin(valid.corpus.numbers["hash"], train.corpus.numbers["hash"]).sum())
        if shared:
            told.append(("note", f"{shared:,} of {len(valid):,} validation images stand in training too"))
    return tuple(told)


def _named(labels: Sequence[str]) -> str:
    shown = [f"'{label}'" for label in labels[:N_NAMED]]
    rest = len(labels) - len(shown)
    return listed([*shown, f"{rest:,} more"] if rest else shown)
