"""Atomic and durable writes: what is still there after a kill, a power cut or a full disk.

What is being written carries a name that starts with `.tmp-`, is fsynced, and takes its real name by a rename. So a
real name always stands for something whole. Whoever holds the run's lock may delete what a killed process left behind.
A folder that is moved or deleted meanwhile is not made again. No link is followed, and nothing behind one is deleted.
"""

import errno
import json
import math
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from regard.errors import TrainingError

TEMPORARY = ".tmp-"
MEGABYTE = 1_000_000


def temporary_name(path: Path, *, purpose: str = "new") -> Path:
    """Return a name beside `path` that no reader takes for the real one."""
    return path.with_name(f"{TEMPORARY}{purpose}-{path.name}-{os.getpid()}")


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk; for files inside a folder that is renamed later."""
    with path.open("xb") as file:
        file.write(content)
    sync(path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at any instant either the old content or the new one is there, never a part."""
    temporary = temporary_name(path)
    with disk_errors(path.parent, needed=len(content)):
        try:
            temporary.unlink(missing_ok=True)  # what a killed process of the same number left
            write_synced(temporary, content)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


def discard(folder: Path) -> None:
    """Delete a folder, if it is there. Its name goes first, so that a kill leaves no half of it under that name."""
    if not folder.exists():
        return
    doomed = temporary_name(folder, purpose="gone")
    folder.rename(doomed)
    sync(folder.parent)
    delete_tree(doomed)


def delete_tree(folder: Path) -> None:
    """Delete a folder as far as that can be done; a link in its place stays, and so does what links inside lead to."""
    with suppress(RecursionError):  # folders in folders, deeper than anything of ours
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left half-written in this folder; only for the holder of the run's lock."""
    for path in [] if folder.is_symlink() else folder.glob(f"{TEMPORARY}*"):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            delete_tree(path)
        elif stat.S_ISREG(mode):
            path.unlink(missing_ok=True)


@contextmanager
def disk_errors(folder: Path, *, needed: int) -> Iterator[None]:
    """Turn what the system says when `needed` bytes cannot be written in `folder` into a TrainingError."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if not folder.is_dir():
            raise gone(folder) from error
        if is_full_disk(error):
            raise full_disk(folder, needed=needed) from error
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TrainingError(
            f"{folder} cannot be written: {reason}.",
            "Check the folder's permissions and the disk. What was written before is intact.",
        ) from error


def gone(folder: Path) -> TrainingError:
    """Return the error for a folder that was there when training began."""
    return TrainingError(
        f"{folder} was moved or deleted while it was being trained.",
        "If it was moved, go on from its last checkpoint: regard resume NEW_FOLDER",
    )


def require_space(folder: Path, *, needed: int) -> None:
    """Raise a TrainingError where less than `needed` bytes are free."""
    if shutil.disk_usage(folder).free < needed:
        raise full_disk(folder, needed=needed)


def full_disk(folder: Path, *, needed: int) -> TrainingError:
    """Return the error that says how much is needed (rounded up) and how much is free (rounded down)."""
    free = shutil.disk_usage(folder).free
    return TrainingError(
        f"The disk is full: {math.ceil(needed / MEGABYTE)} MB needed, {free // MEGABYTE} MB free in {folder}.",
        "Free some space, then go on with `regard resume`: what was written before is intact.",
    )


def is_full_disk(error: OSError | SafetensorError) -> bool:
    """Tell whether the disk, or the user's share of it, is full. safetensors gives the number only in its text."""
    numbers = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError):
        return error.errno in numbers
    return any(f"(os error {number})" in str(error) for number in numbers)


def as_json(value: Any, *, indent: int | None = None) -> bytes:
    """Return valid JSON, which has no NaN and no infinity: they become null. Other numbers come back bit for bit."""
    return json.dumps(without_non_finite(value), indent=indent, ensure_ascii=False, allow_nan=False).encode()


def without_non_finite(value: Any) -> Any:
    """Return the same value with None in the place of each NaN and infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_non_finite(item) for item in value]
    return value
