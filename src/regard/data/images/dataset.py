"""The dataset of labelled images: decoded once, stored, and split by row numbers, which costs no second decoding.

All images of one split become one corpus, in which the held out ones are rows like the others. Its columns stand in
`storage.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.config import DataConfig
from regard.data.formats.image_arrays import ImageSource
from regard.data.formats.image_folder import LARGEST_OWN
from regard.data.images.decoding import ImageShape, suited
from regard.data.images.sources import find_images, find_split
from regard.data.images.storage import ImageSet, stored_images
from regard.data.pipeline.dataset import (
    Dataset,
    Notes,
    rebuilt,
    refuse_empty,
)
from regard.data.pipeline.label_set import label_notes, sorted_labels, unknown_label
from regard.data.pipeline.source import Progress, require_training_files
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class ImageDataset(Dataset[ImageSet]):
    """Training and validation images; `train_files` and `valid_files` are the folders and files of these."""

    labels: tuple[str, ...]
    counts: Mapping[str, int]  # of each label in training


def prepare_images(
    data: DataConfig,
    *,
    usual: int = LARGEST_OWN,
    labels: tuple[str, ...] | None = None,
    progress: Progress,
) -> ImageDataset:
    """Read, store and split images, or find them stored.

    usual:   what photographs become, where no size is asked for
    labels:  those that are known already, as from another run; None takes them from the training images
    """
    require_training_files(data, "Give a folder of class folders, or files, with --train.")
    sources = find_images(data.train, split="train")
    shape = common_shape(sources, data, usual)
    valid_sources = find_images(data.valid, split="valid") if data.valid else find_split(data.train, "valid")
    train = _good(stored_images(sources, shape, progress), data)
    _refuse_empty_folders(train, data.on_bad)
    known = labels if labels is not None else sorted_labels(train.corpus.facts["labels"])
    train = _numbered(train, known, trained=labels is None)
    _refuse_one_class(train)
    kept: list[str] = []
    if valid_sources:
        valid = _numbered(_good(stored_images(valid_sources, shape, progress), data), known, trained=labels is None)
    else:
        held_out, kept_classes = train.held_out(data.valid_size)
        refuse_empty(int(held_out.sum()), "validation", "image")
        train, valid, kept = train.select(~held_out), train.select(held_out), [known[number] for number in kept_classes]
    counts = dict(zip(known, np.bincount(train.classes, minlength=len(known)).tolist(), strict=True))
    return ImageDataset(
        train=train,
        valid=valid,
        train_files=train.roots,
        valid_files=valid.roots,
        labels=known,
        counts=counts,
        n_held_out=0 if valid_sources else len(valid),
        notes=_notes(data, train, valid, counts, kept),
        hashes=train.hashes if not valid_sources else _both(train.hashes, valid.hashes),
    )


def read_images(
    names: Sequence[str],
    data: DataConfig,
    *,
    shape: ImageShape,
    labels: tuple[str, ...],
    split: str = "test",
    asked: bool = False,
    progress: Progress,
) -> ImageSet:
    """Return all good images of some folders and files with labels that are known, to be scored.

    Where these are divided into splits, those of one split; its `left_out` says which were bad.
    asked: whether somebody asked for the split, so that all must be divided
    """
    images = stored_images(find_images(names, split=split, asked=asked), shape, progress)
    return _numbered(_good(images, data), labels, trained=False)


def common_shape(sources: Sequence[ImageSource], data: DataConfig, usual: int) -> ImageShape:
    """Return what all images become: as asked, else as it suits the first source, in colours if any has them."""
    size, channels = data.image_size, data.channels
    if size and channels:
        return ImageShape(size, channels)
    own = [source.own_shape() for source in sources]
    return ImageShape(size or suited(own[0].size, usual), channels or max(shape.channels for shape in own))


def shared_images(train: ImageSet, valid: ImageSet) -> Notes:
    """Note how many validation images stand in training too."""
    shared = int(np.isin(valid.content_hashes(), train.content_hashes()).sum())
    return (("note", f"{shared:,} of {len(valid):,} validation images stand in training too"),) if shared else ()


def _good(images: ImageSet, data: DataConfig) -> ImageSet:
    images.bad_images.enforce(data.on_bad, images.roots)
    return images


def _numbered(images: ImageSet, labels: Sequence[str], *, trained: bool) -> ImageSet:
    """Return the same images with their classes in the order of `labels`; one that is none of them is an error."""
    numbers = {label: number for number, label in enumerate(labels)}
    found = list(images.corpus.facts["labels"])
    for own, label in enumerate(found):
        if label not in numbers:
            [place] = images.places([int(np.argmax(images.classes == own))])
            raise unknown_label(place, label, labels, noun="class", trained=trained)
    order = np.array([numbers[label] for label in found], np.int64)
    return replace(images, classes=order[images.classes])


def _refuse_empty_folders(train: ImageSet, on_bad: str) -> None:
    """Refuse a class folder of training without a good image, unless bad images are left out."""
    empty = train.empty_folders
    if empty and on_bad == "stop":
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


def _notes(data: DataConfig, train: ImageSet, valid: ImageSet, counts: Mapping[str, int], kept: Sequence[str]) -> Notes:
    notes = [*rebuilt(train.corpus, valid.corpus), *([("size", train.fitted)] if train.fitted else [])]
    held_out = train.corpus is valid.corpus
    if held_out and find_split(data.train, "test"):
        notes.append(("held out", "no split is of validation; the split test is left for `regard evaluate`"))
    notes += label_notes("image", kept, counts)
    notes += [("empty", f"no image in {folder}") for folder in train.empty_folders]
    notes += [("left out", sentence) for sentence in train.left_out()]
    if not held_out:
        notes += [("left out", f"of validation, {sentence}") for sentence in valid.left_out()]
        notes += shared_images(train, valid)
    return tuple(notes)
