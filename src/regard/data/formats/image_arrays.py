"""Labelled images, where they come from, and arrays of them: images of one size row by row, with an array of their labels.

The place of an image is the file or folder that a person named, its root, and a member of it: "/cat/1.jpg" of a folder,
":17" of a file of many images, which count from 0 as in numpy. A bad image is a `Bad` of that root and member.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

from regard.data.formats.rows import Bad, place_of
from regard.data.formats.stored_arrays import Array, StoredArray
from regard.data.images.decoding import BadImageError, ImageShape, Pixels, check_pixels, fit, scaled
from regard.errors import DataError

_LABEL_KINDS = "biuU"  # truth values, whole numbers, texts
# A file in a class folder that does not claim to be an image: skipped and told, but nothing is wrong with the data.
OTHER = "no image by its name"


@dataclass(frozen=True, slots=True, eq=False)
class LabelledImage:
    """An image (size, size, channels), its label, its place, and whether it had to be scaled or cut."""

    pixels: Pixels
    label: str
    root: str
    member: str
    fitted: bool

    @property
    def place(self) -> str:
        return place_of(self.root, self.member)


class ImageSource(ABC):
    """Where labelled images come from: a folder, or a file of many images, the root that a person named."""

    root: str

    @abstractmethod
    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        """Yield all images in a fixed order, in that shape."""

    @abstractmethod
    def own_shape(self) -> ImageShape:
        """Return the shape that suits the images best, without decoding any."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that the images, their labels and their members depend on."""

    def class_folders(self) -> list[tuple[str, str]]:
        """Return the label and the member of each class folder; none where classes have no folders."""
        return []


def labelled_rows(
    images: StoredArray, labels: StoredArray, shape: ImageShape, *, root: str, name: str = ""
) -> Iterator[LabelledImage | Bad]:
    """Yield images with their labels, once their headers are known to fit each other.

    name: that of the array, where the root holds several of images
    """
    shape_of(images)
    if labels.dtype.kind not in _LABEL_KINDS or math.prod(labels.shape[1:]) != 1:
        raise DataError(
            f"{labels.file}: one whole number or text an image was expected, not {labels.text}.",
            "Save the number or the name of the class of each image.",
        )
    if images.shape[0] != labels.shape[0]:
        raise DataError(
            f"{images.file}: {images.shape[0]:,} images, and {labels.file} holds {labels.shape[0]:,} labels.",
            "Give each image its label.",
        )
    for number, (row, label_row) in enumerate(zip(images.rows(), labels.rows(), strict=True)):
        member = f":{name}[{number}]" if name else f":{number}"
        label = str(label_row.item()).strip()
        if not label:
            yield Bad(root, member, "empty label")
            continue
        try:
            pixels, fitted = _fitted(row, shape, root + member)
        except BadImageError as error:
            yield Bad(root, member, error.reason)
        else:
            yield LabelledImage(pixels, label, root, member, fitted)


def _fitted(row: Array, shape: ImageShape, place: str) -> tuple[Pixels, bool]:
    """Return a row (H, W), (H, W, C) or (C, H, W) as an image of that shape, and whether its size was another."""
    values = _channels_last(row)
    pixels = scaled(values, place)
    if pixels.shape == shape.dimensions:
        return pixels, False
    fitted = pixels.shape[:2] != shape.dimensions[:2]
    return fit(Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels), shape, place), fitted


def _channels_last(row: Array) -> Array:
    if row.ndim == 2:
        return row[:, :, None]
    return np.ascontiguousarray(row.transpose(1, 2, 0)) if _is_channels_first(row.shape) else row


def _is_channels_first(shape: tuple[int, ...]) -> bool:
    channels, height, width = shape
    return channels in (1, 3) and (width not in (1, 3, 4) or channels != height == width)


def shape_of(array: StoredArray) -> ImageShape:
    """Return the shape of an array's images; DataError if it holds none, or such as are too large."""
    own = array.shape[1:]
    if len(own) == 3 and _is_channels_first(own):
        own = (own[1], own[2], own[0])
    good_size = len(own) == 2 or (len(own) == 3 and own[2] in (1, 3, 4))
    if not good_size or 0 in own or array.dtype.kind not in "uf":
        raise DataError(
            f"{array.file}: images were expected, (N, height, width) or with 1, 3 or 4 channels, not {array.text}.",
            "Save them so, as uint8.",
        )
    check_pixels(array.file, own[1], own[0])
    return ImageShape(min(own[:2]), 1 if len(own) == 2 or own[2] == 1 else 3)
