"""Labelled images by whatever a person names: a folder of class folders, IDX files, an NPZ file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.data.formats.columns import listed
from regard.data.formats.files import check_regular
from regard.data.formats.idx import called_idx, is_idx, pair_idx
from regard.data.formats.image_arrays import ImageSource
from regard.data.formats.image_folder import folder_splits
from regard.data.formats.npz import npz_splits
from regard.data.formats.splits import check_splits, not_divided, spellings
from regard.errors import DataError

ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".rar")


def find_images(names: Sequence[str], *, split: str, asked: bool = False) -> list[ImageSource]:
    """Return what holds the images of a split (train, valid, test) of some folders and files; with "", all of them.

    What is not divided into splits is taken whole, unless somebody asked for that split. Of IDX files, those of labels
    may be named too, next to their images.
    """
    check_splits(split)
    found: list[ImageSource] = []
    for root, splits in _divided(names):
        if asked and "" in splits:
            raise not_divided(root, split)
        own = splits.get(split) or splits.get("") if split else [one for every in splits.values() for one in every]
        if own is None:
            there = listed(sorted(splits))
            problem = f"{root}: it is divided into {there}, and has no split {split}."
            raise DataError(problem, f"It may be called {spellings(split)}.")
        found += own
    return found


def find_split(names: Sequence[str], split: str) -> list[ImageSource]:
    """Return what holds the images of a split in those folders and files that are divided and have it; perhaps nothing."""
    check_splits(split)
    return [one for _, splits in _divided(names) for one in splits.get(split, ())]


def _divided(names: Sequence[str]) -> list[tuple[str, Mapping[str, Sequence[ImageSource]]]]:
    """Return each folder and file with what holds the images of its splits."""
    if not all(names) or not names:
        problem = "The name of a folder or file is empty." if names else "No image was named."
        raise DataError(problem, "Name a folder of class folders, IDX files, or an .npz file.")
    found: list[tuple[str, Mapping[str, Sequence[ImageSource]]]] = []
    idx: list[str] = []
    for name in names:
        if Path(name).is_dir():
            found.append((name, folder_splits(name)))
            continue
        check_regular(name)
        if name.lower().removesuffix(".gz").endswith(".npz"):
            found.append((name, npz_splits(name)))
        elif is_idx(name) or called_idx(name):
            idx.append(name)
        else:
            unpack, sort = "Unpack it, and name the folder of class folders.", "Put images into a folder for each class"
            raise DataError(
                f"{name}: labelled images were expected: a folder of class folders, an IDX file, or an .npz file.",
                unpack if name.lower().endswith(ARCHIVES) else f"{sort}, and name the folder around these.",
            )
    return found + [(pair.root, {"": [pair]}) for pair in pair_idx(idx)]
