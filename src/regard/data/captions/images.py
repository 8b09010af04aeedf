"""The images that tables of captions name, as a source of images without labels; and those that no row names."""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard.data.formats.image_folder import content_of, in_order, median_shape, read_labelled_image, shown
from regard.data.formats.rows import Bad, place_of
from regard.data.images.decoding import ENDINGS, ImageShape
from regard.data.images.rows import LabelledImage
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class ListedImages:
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

    def class_folders(self) -> list[tuple[str, str]]:
        return []

    def fingerprint(self) -> str:
        whole = hashlib.sha256()
        contents = in_order(lambda member: content_of(self._path(member)), self.members)
        for member, content in zip(self.members, contents, strict=True):
            whole.update(f"{member!r} {content}\n".encode())
        return whole.hexdigest()

    def _path(self, member: str) -> Path:
        return Path(place_of(self.root, member))


def unnamed(places: Iterable[str], named: Collection[str]) -> list[str]:
    """Return the files that claim to be images, lie in one folder with some of `places`, and are not `named`; in order."""
    found: list[str] = []
    for folder in sorted({place.rpartition("/")[0] for place in places}):
        with suppress(OSError), os.scandir(folder or "/") as entries:  # they are only told of
            found += (
                place
                for entry in entries
                if Path(entry.name).suffix.lower() in ENDINGS and not entry.name.startswith(".") and entry.is_file()
                if (place := f"{folder}/{shown(entry.name)}") not in named
            )
    return sorted(found)
