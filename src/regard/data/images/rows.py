"""Labelled images, and where they come from.

The place of an image is the file or folder that a person named, its root, and a member of it: "/cat/1.jpg" of a folder,
":17" of a file of many images, which count from 0 as in numpy. A bad image is a `Bad` of that root and member.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from regard.data.formats.rows import Bad, place_of
from regard.data.images.decoding import ImageShape, Pixels

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


class ImageSource(Protocol):
    """Where labelled images come from: a folder, or a file of many images."""

    @property
    def root(self) -> str:
        """What a person named."""
        ...

    def images(self, shape: ImageShape) -> Iterator[LabelledImage | Bad]:
        """Yield all images in a fixed order, in that shape."""
        ...

    def own_shape(self) -> ImageShape:
        """Return the shape that suits the images best, without decoding any."""
        ...

    def class_folders(self) -> list[tuple[str, str]]:
        """Return the label and the member of each class folder; none where classes have no folders."""
        ...

    def fingerprint(self) -> str:
        """Return a hash of everything that the images, their labels and their members depend on."""
        ...
