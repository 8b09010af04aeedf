"""Labelled images by whatever a person names: a folder of class folders, IDX files, an NPZ file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.data.formats.columns import listed
from regard.data.formats.files import check_regular
from regard.data.formats.idx import called_idx, is_idx, pair_idx
from regard.data.formats.image_folder import folder_parts
from regard.data.formats.npz import npz_parts
from regard.data.images.survey import ImageSource
from regard.data.labelled.rows import PARTS, check_part
from regard.errors import DataError

ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".rar")


def find_images(names: Sequence[str], *, part: str) -> list[ImageSource]:
    """Return what holds the images of a part (train, valid, test) of some folders and files.

    What is not divided into parts is taken whole; with "" as the part, all of it. Of IDX files, those of labels may be
    named too, next to their images.
    """
    check_part(part)
    found: list[ImageSource] = []
    for root, parts in _divided(names):
        own = parts.get(part) or parts.get("") if part else [one for every in parts.values() for one in every]
        if own is None:
            there = listed(sorted(parts))
            raise DataError(f"{root}: it is divided into {there}, and has no part {part}.", _spellings(part))
        found += own
    return found


def find_part(names: Sequence[str], part: str) -> list[ImageSource]:
    """Return what holds the images of a part in those folders and files that are divided and have it; perhaps nothing."""
    check_part(part)
    return [one for _, parts in _divided(names) for one in parts.get(part, ())]


def _divided(names: Sequence[str]) -> list[tuple[str, Mapping[str, Sequence[ImageSource]]]]:
    """Return each folder and file with what holds the images of its parts."""
    if not all(names) or not names:
        problem = "The name of a folder or file is empty." if names else "No image was named."
        raise DataError(problem, "Name a folder of class folders, IDX files, or an .npz file.")
    found: list[tuple[str, Mapping[str, Sequence[ImageSource]]]] = []
    idx: list[str] = []
    for name in names:
        if Path(name).is_dir():
            found.append((name, folder_parts(name)))
            continue
        check_regular(name)
        if name.lower().removesuffix(".gz").endswith(".npz"):
            found.append((name, npz_parts(name)))
        elif is_idx(name) or called_idx(name):
            idx.append(name)
        else:
            unpack, sort = "Unpack it, and name the folder of class folders.", "Put images into a folder for each class"
            raise DataError(
                f"{name}: labelled images were expected: a folder of class folders, an IDX file, or an .npz file.",
                unpack if name.lower().endswith(ARCHIVES) else f"{sort}, and name the folder around these.",
            )
    return found + [(pair.root, {"": [pair]}) for pair in pair_idx(idx)]


def _spellings(part: str) -> str:
    return f"It may be called {listed(PARTS[part], last='or')}."
