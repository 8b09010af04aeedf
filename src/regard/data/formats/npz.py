"""NPZ files of images: arrays `images` and `labels`, or `x` and `y`; or such for splits: x_train, y_train, x_test, y_test.

Images are (N, H, W), (N, H, W, C) or (N, C, H, W), of uint8, of uint16, or of numbers from 0 to 1.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regard.data.formats.columns import listed
from regard.data.formats.image_arrays import ImageSource, LabelledImage, labelled_rows, shape_of
from regard.data.formats.rows import Bad
from regard.data.formats.splits import split_of
from regard.data.formats.stored_arrays import npz_array, npz_names, open_npz
from regard.data.images.decoding import ImageShape
from regard.data.pipeline.hashes import content_hash
from regard.errors import DataError

REMEDY = "Save it with numpy.savez(file, images=…, labels=…)."
_IMAGES, _LABELS = ("images", "image", "x"), ("labels", "label", "y")


@dataclass(frozen=True, kw_only=True)
class NpzImages(ImageSource):
    """Two arrays of an NPZ file, by their names: of images and of their labels."""

    root: str
    images_name: str
    labels_name: str
    whole: bool  # whether the file has no other images

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        name = "" if self.whole else self.images_name
        with (
            open_npz(self.root, REMEDY) as archive,
            npz_array(self.root, archive, self.images_name) as images,
            npz_array(self.root, archive, self.labels_name) as labels,
        ):
            yield from labelled_rows(images, labels, shape, root=self.root, name=name)

    def own_shape(self) -> ImageShape:
        with open_npz(self.root, REMEDY) as archive, npz_array(self.root, archive, self.images_name) as images:
            return shape_of(images)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{content_hash(self.root)} {self.images_name}".encode()).hexdigest()


def npz_splits(file: str) -> dict[str, list[NpzImages]]:
    """Return the images of each split of an NPZ file, by the split: train, valid, test, or "" for all there are."""
    with open_npz(file, REMEDY) as archive:
        names = npz_names(archive)
    roles: dict[tuple[str, str], str] = {}
    for name in names:
        if role := _role(name):
            if role in roles:
                raise DataError(
                    f"{file}: both '{roles[role]}' and '{name}' are {role[1]} by their names.",
                    "Leave one of them out, or name splits: x_train, x_test.",
                )
            roles[role] = name
    splits = [split for split, kind in roles if kind == "images"]
    if not splits:
        raise DataError(
            f"{file}: no array is called images or x; there is: {listed(sorted(names)) if names else 'nothing'}.",
            REMEDY,
        )
    for (split, kind), name in roles.items():
        other = "labels" if kind == "images" else "images"
        if (split, other) not in roles:
            raise DataError(
                f"{file}: the {kind} '{name}' have no {other}; there is: {listed(sorted(names))}.",
                f"Save the {other} beside them, as {f'{split}_{other}' if split else other}.",
            )
    return {
        split: [
            NpzImages(
                root=file,
                images_name=roles[split, "images"],
                labels_name=roles[split, "labels"],
                whole=len(splits) == 1,
            )
        ]
        for split in splits
    }


def _role(name: str) -> tuple[str, str] | None:
    """Return the split ("" for none) and the kind that the name of an array tells: x_train is of train, and images."""
    words = re.sub("[-_ ]", "", name).casefold()
    for kind, spellings in (("images", _IMAGES), ("labels", _LABELS)):
        for spelling in spellings:
            for rest in (words.removeprefix(spelling), words.removesuffix(spelling)):
                if rest != words and (not rest or split_of(rest)):
                    return split_of(rest), kind
    return None
