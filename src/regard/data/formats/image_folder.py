"""Images in folders, one for each class; these may lie in folders of splits, such as train/ and test/.

    pets/cat/1.jpg  pets/dog/a/2.png                    the classes cat and dog
    pets/train/cat/1.jpg  pets/val/cat/7.jpg            the same, in splits

Hidden files and folders are ignored, linked ones are read. Files are read in the order of their names, or as somebody lists
them, by several threads at once.
"""

import hashlib
import os
import statistics
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeVar

from regard.data.formats.image_arrays import OTHER, ImageSource, LabelledImage
from regard.data.formats.rows import Bad, place_of
from regard.data.formats.splits import split_of
from regard.data.images.decoding import ENDINGS, BadImageError, ImageShape, own_shape, read_and_measure
from regard.errors import DataError
from regard.runtime import cores

N_MEASURED = 100  # images whose headers tell the size that suits all
LARGEST_OWN = 224  # pixels a side, of the size that is chosen for images without one in common
STEPS = ((64, 16), (32, 8), (8, 4))  # from so many pixels on it is a multiple of so many, which patches divide
AHEAD = 8  # files read ahead, for each thread
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    label: str  # "" outside of class folders
    member: str

    @property
    def is_image(self) -> bool:
        return self.path.suffix.lower() in ENDINGS


@dataclass(frozen=True, kw_only=True)
class ImageFolder(ImageSource):
    """The class folders in a folder, or in the folder of one split within it."""

    root: str
    split: str = ""  # the name of the split's folder

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        def read(file: _File) -> LabelledImage | Bad:
            if not file.is_image:
                return Bad(self.root, file.member, OTHER)
            if not file.label:
                return Bad(self.root, file.member, "in no class folder")
            return read_labelled_image(file.path, shape, label=file.label, root=self.root, member=file.member)

        return in_order(read, self._files())

    def own_shape(self) -> ImageShape:
        """Return the shape that `median_shape` finds."""
        shape = median_shape(file.path for file in self._files() if file.label and file.is_image)
        if shape is None:
            _refuse_no_classes(self._folder)
            raise DataError(f"{self._folder}: no image can be read.", "Check that it is the right folder.")
        return shape

    def class_folders(self) -> list[tuple[str, str]]:
        return [
            (shown(path.name), f"{self._prefix}/{shown(path.name)}") for path in _visible(self._folder, folders=True)
        ]

    def fingerprint(self) -> str:
        whole = hashlib.sha256(repr(self.class_folders()).encode())
        for line in in_order(_digest, self._files()):
            whole.update(line.encode())
        return whole.hexdigest()

    @property
    def _folder(self) -> Path:
        return Path(self.root) / self.split

    @property
    def _prefix(self) -> str:
        return f"/{shown(self.split)}" if self.split else ""

    def _files(self) -> Iterator[_File]:
        """Yield all files that are not hidden, in the order of their names, class by class."""
        for path in _visible(self._folder, folders=False):
            yield _File(path, "", f"{self._prefix}/{shown(path.name)}")
        for folder in _visible(self._folder, folders=True):
            for path in _files_below(folder):
                yield _File(path, shown(folder.name), f"{self._prefix}/{shown(str(path.relative_to(self._folder)))}")


@dataclass(frozen=True, kw_only=True)
class ListedImages(ImageSource):
    """Files of a folder in a fixed order, whatever their names end in: that they are images says whoever lists them."""

    root: str
    members: tuple[str, ...]

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        def read(member: str) -> LabelledImage | Bad:
            return read_labelled_image(self._path(member), shape, label="", root=self.root, member=member)

        return in_order(read, self.members)

    def own_shape(self) -> ImageShape:
        shape = median_shape(map(self._path, self.members))
        if shape is None:
            raise DataError(
                f"{place_of(self.root, self.members[0])}: neither this nor any other of the first images can be read.",
                "Check that these are images.",
            )
        return shape

    def fingerprint(self) -> str:
        whole = hashlib.sha256()
        contents = in_order(lambda member: content_of(self._path(member)), self.members)
        for member, content in zip(self.members, contents, strict=True):
            whole.update(f"{member!r} {content}\n".encode())
        return whole.hexdigest()

    def _path(self, member: str) -> Path:
        return Path(place_of(self.root, member))


def folder_splits(root: str) -> dict[str, list[ImageFolder]]:
    """Return the folders of each split of a folder, by the split: train, valid, test; else the folder itself, under "".

    A folder is one of splits if all folders in it have the names of splits, or one has that of train and another of another.
    """
    _refuse_no_classes(Path(root))
    splits: dict[str, list[ImageFolder]] = {}
    others = False
    for folder in _visible(Path(root), folders=True):
        split = split_of(folder.name)
        others |= not split
        if split:
            splits.setdefault(split, []).append(ImageFolder(root=root, split=folder.name))
    if others and not ("train" in splits and len(splits) > 1):
        return {"": [ImageFolder(root=root)]}
    return splits


def read_labelled_image(path: Path, shape: ImageShape, *, label: str, root: str, member: str) -> LabelledImage | Bad:
    """Return the image of a file, or why there is none."""
    try:
        pixels, fitted = read_and_measure(path, shape)
    except BadImageError as error:
        return Bad(root, member, error.reason)
    return LabelledImage(pixels, label, root, member, fitted)


def median_shape(paths: Iterable[Path]) -> ImageShape | None:
    """Return the median of the shorter sides of the first images, 224 at most; grey if all are; None if none can be read.

    Where these differ, it is rounded down to a number that patches divide.
    """
    shapes = []
    for path in islice(paths, N_MEASURED):
        try:
            shapes.append(own_shape(path))
        except BadImageError:
            continue  # which is counted when it is read
    if not shapes:
        return None
    size = int(statistics.median_low(shape.size for shape in shapes))
    if len({shape.size for shape in shapes}) > 1:
        size -= size % next((step for least, step in STEPS if size >= least), 1)
    return ImageShape(min(size, LARGEST_OWN), max(shape.channels for shape in shapes))


def content_of(path: Path) -> str:
    """Return the SHA-256 of a file, or that it cannot be opened."""
    with suppress(OSError):
        if path.is_file():  # and no pipe, which nobody may write to
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
    return "cannot be opened"


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield what `work` makes of each item, in their order, while threads work ahead a little."""
    pool = ThreadPoolExecutor(cores())
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > AHEAD * cores():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def shown(name: str) -> str:
    """Return the name of a file as text, also where it is no UTF-8."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in those below it, in the order of their names; linked folders too, none twice."""
    real = folder.resolve()
    met = {real, *real.parents}  # a link to one of these would lead into other classes
    for inner, names, files in os.walk(folder, onerror=_refuse, followlinks=True):
        below = {name: Path(inner, name).resolve() for name in sorted(names) if not name.startswith(".")}
        names.clear()
        for name, place in below.items():
            if place not in met:
                met.add(place)
                names.append(name)
        yield from (Path(inner, name) for name in sorted(files) if not name.startswith("."))


def _visible(folder: Path, *, folders: bool) -> list[Path]:
    """Return what is in a folder and not hidden: the folders, or all else."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir() == folders]
    except OSError as error:
        _refuse(error)
    return sorted(found, key=lambda path: path.name)


def _refuse_no_classes(folder: Path) -> None:
    """Refuse a folder without a folder in it."""
    if _visible(folder, folders=True):
        return
    images = sum(path.suffix.lower() in ENDINGS for path in _visible(folder, folders=False))
    only = f", only {images:,} image{'s' if images > 1 else ''} without a label" if images else ""
    raise DataError(
        f"{folder}: no class folder is in it{only}.",
        "Give a folder with a folder of images for each class; or name files inside it: IDX, or .npz.",
    )


def _refuse(error: OSError) -> NoReturn:
    raise DataError(
        f"{error.filename}: the folder cannot be read ({error.strerror}).", "Check its name and its permissions."
    ) from None


def _digest(file: _File) -> str:
    """Return a line that says which file this is and what is in it; of one that is no image, only the first."""
    content = content_of(file.path) if file.is_image else ""
    return f"{file.member!r} {file.is_image} {content}\n"
