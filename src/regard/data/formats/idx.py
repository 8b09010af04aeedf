"""IDX files, as MNIST has them, gzipped or not: images (N, H, W) or (N, H, W, C) in one, labels (N,) in another."""

import hashlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.data.formats.files import check_regular, open_file
from regard.data.formats.image_arrays import ImageSource, LabelledImage, labelled_rows, shape_of
from regard.data.formats.rows import Bad
from regard.data.formats.stored_arrays import StoredArray
from regard.data.images.decoding import ImageShape
from regard.data.pipeline.hashes import content_hash
from regard.errors import DataError

# The third byte of a file: what its numbers are.
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


@dataclass(frozen=True, kw_only=True)
class IdxImages(ImageSource):
    """An IDX file of images, and that of their labels."""

    root: str
    labels: str

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        with open_file(self.root) as stream:
            images = _open_whole(self.root, stream)
            if images.dtype != np.uint8:
                raise DataError(
                    f"{self.root}: images of bytes were expected, not {images.text}.", "Save them as uint8."
                )
            with open_file(self.labels) as label_stream:
                labels = _open_whole(self.labels, label_stream)
                yield from labelled_rows(images, labels, shape, root=self.root)

    def own_shape(self) -> ImageShape:
        with open_file(self.root) as stream:
            return shape_of(_open_whole(self.root, stream))

    def fingerprint(self) -> str:
        return hashlib.sha256((content_hash(self.root) + content_hash(self.labels)).encode()).hexdigest()


def is_idx(file: str) -> bool:
    """Say whether a file begins as an IDX file does."""
    with open_file(file) as stream:
        return _is_magic(stream.read(4))


def _is_magic(beginning: bytes) -> bool:
    return len(beginning) == 4 and beginning[:2] == b"\0\0" and beginning[2] in _TYPES and 1 <= beginning[3] <= 4


def called_idx(file: str) -> bool:
    """Say whether a file is called as IDX files are, such as t10k-images-idx3-ubyte, whatever it holds."""
    return re.search("idx[1-4]|-ubyte", Path(file).name) is not None


def pair_idx(files: list[str]) -> list[IdxImages]:
    """Put each IDX file of images together with its labels.

    These are the file that is named too and called so; else one that is named next to it; else one that lies beside it.
    """
    dimensions = {}
    for file in files:
        check_regular(file)
        with open_file(file) as stream:
            dimensions[file] = len(_open_array(file, stream).shape)
    named = {Path(file): file for file in files if dimensions[file] == 1}
    labels_of = {
        file: next(named[path] for path in called)
        for file in files
        if dimensions[file] > 1 and (called := [path for path in _label_files(file) if path in named])
    }
    waiting = [file for file in files if file not in {*labels_of, *labels_of.values()}]
    while waiting:
        first, second = waiting[0], waiting[1] if len(waiting) > 1 else ""
        if second and (dimensions[first] == 1) != (dimensions[second] == 1):
            images, labels = (second, first) if dimensions[first] == 1 else (first, second)
            del waiting[:2]
        elif dimensions[first] == 1:
            raise DataError(
                f"{first}: these are labels, and no file of images came with it.", "Name the images file too."
            )
        else:
            images, labels = first, _labels_beside(first)
            del waiting[:1]
        labels_of[images] = labels
    return [IdxImages(root=file, labels=labels_of[file]) for file in files if file in labels_of]


def _open_array(file: str, stream: BinaryIO) -> StoredArray:
    remedy = "Check that it is the right file, and whole."
    magic = stream.read(4)
    if not _is_magic(magic):
        told = magic.hex(" ") or "nothing"
        raise DataError(
            f"{file}: an IDX file begins with 00 00, a type and 1 to 4 dimensions, not with {told}.", remedy
        )
    counts = stream.read(4 * magic[3])
    if len(counts) < 4 * magic[3]:
        raise DataError(f"{file}: the IDX file ends within its header, after {4 + len(counts)} bytes.", remedy)
    return StoredArray(file, struct.unpack(f">{magic[3]}I", counts), np.dtype(_TYPES[magic[2]]), stream)


def _open_whole(file: str, stream: BinaryIO) -> StoredArray:
    """Open an array whose header fits the size of its file, as far as that tells: not of a gzipped one."""
    array = _open_array(file, stream)
    if not file.lower().endswith(".gz"):
        array.check_size(Path(file).stat().st_size - 4 - 4 * len(array.shape))
    return array


def _label_files(images: str) -> list[Path]:
    """Return what the labels of a file of images may be called, such as train-labels-idx1-ubyte.gz."""
    path = Path(images)
    named = re.sub("idx[34]", "idx1", re.sub("images?", "labels", path.name))
    if named == path.name:
        return []
    plain = named.removesuffix(".gz")
    return [path.with_name(name) for name in dict.fromkeys((named, plain, f"{plain}.gz"))]


def _labels_beside(images: str) -> str:
    """Return the labels file that lies beside a file of images."""
    candidates = _label_files(images)
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        looked = f", such as {candidates[0]}" if candidates else ""
        raise DataError(f"{images}: there is no file of labels beside it{looked}.", "Name the labels file behind it.")
    return str(found)
