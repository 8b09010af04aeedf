"""The splits of a dataset, train, valid and test, by the names that files, folders, arrays and cells give them."""

from collections.abc import Sequence

from regard.data.formats.columns import listed
from regard.errors import DataError, UsageError, did_you_mean

SPLITS = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "dev", "validation", "development"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {spelling: split for split, spellings in SPLITS.items() for spelling in spellings}


def split_of(name: str) -> str:
    """Return the split that a name means, "" if none."""
    return _SPLIT_OF.get(name.strip().casefold(), "")


def check_splits(*splits: str) -> None:
    """Refuse what is no split; "" stands for all."""
    for split in splits:
        if split and split not in SPLITS:
            raise UsageError(f"The split must be train, valid or test, not '{split}'.", did_you_mean(split, SPLITS))


def spellings(split: str) -> str:
    """Return what a split may be called, as a sentence lists it."""
    return listed([f"'{one}'" for one in SPLITS[split]], last="or")


def not_divided(name: str, split: str) -> DataError:
    """Return the error for a split that was asked for, of data that is not divided into such."""
    return DataError(
        f"{name}: it is not divided into splits, and the split {split} was asked for.",
        "Leave --split out to score all of it, unless the run was trained on it.",
    )


def no_row_of_split(files: Sequence[str], column: str, split: str) -> DataError:
    """Return the error for tables of which no good row is of a split, though a column divides them."""
    return DataError(
        f"{', '.join(files)}: in no good row does the column '{column}' say {spellings(split)}.",
        "Give rows of that split; name another column with --split-column; or rename this one, if it does not say splits.",
    )
