"""Files as people name them: found or not, gzipped or not. Knows bytes only; lines begin in `rows.py`."""

import difflib
import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError

# What reading a damaged gzip file raises. Not OSError as such: a full disk or a lost network drive is another matter.
DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error)
CHUNK_BYTES = 1 << 18
LONGEST_NAME = 1000  # characters of a path that an error shows


def check_file(file: str) -> None:
    """Raise DataError if `file` is missing, a folder, or empty."""
    _status(file)


def check_files(files: Sequence[str | os.PathLike[str]], remedy: str) -> list[str]:
    """Return the names of files that all pass `check_file`; the remedy is for none at all."""
    if not files:
        raise DataError("No file was given.", remedy)
    names = [os.fspath(file) for file in files]
    for name in names:
        check_file(name)
    return names


def check_regular(file: str) -> None:
    """Raise DataError if `file` is missing, empty or can be read only once, as a pipe. Nothing is opened.

    For a file that is read several times: a pipe is empty the second time, and one that nobody writes to waits for ever.
    """
    mode = _status(file).st_mode
    if not stat.S_ISREG(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise DataError(f"{file}: this is {kind}, and the file is read several times.", "Write it to a file first.")


@contextmanager
def open_file(file: str) -> Iterator[BinaryIO]:
    """Open `file` for reading bytes, through gzip if its name ends in .gz; DataError if that turns out to be damaged."""
    check_file(file)
    with open_packed(file) as raw:
        if not file.lower().endswith(".gz"):
            yield raw
            return
        with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
            try:
                # GzipFile is a BinaryIO in all but its declared type.
                yield stream  # type: ignore[misc]
            except DAMAGE:
                raise damaged(file) from None


@contextmanager
def open_seekable(file: str) -> Iterator[BinaryIO]:
    """Open `file` for a reader that jumps about in it: a gzipped one is unpacked into a temporary file first."""
    if not file.lower().endswith(".gz"):
        with open_file(file) as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as unpacked:
        with open_file(file) as stream:
            shutil.copyfileobj(stream, unpacked, CHUNK_BYTES)
        unpacked.seek(0)
        yield unpacked


def empty(file: str) -> DataError:
    """Return the error for a file without content."""
    return DataError(f"{file}: the file is empty.", "Check the step that wrote it.")


def damaged(file: str, *, line: int | None = None) -> DataError:
    """Return the error for a gzip file that breaks off or is none; `line` is the last one that could be read."""
    where = "" if line is None else f" after line {line}"
    return DataError(
        f"{file}: damaged or incomplete gzip data{where}.", f"Copy it again; `gzip -t {file}` tells when it is whole."
    )


def open_packed(file: str) -> BufferedReader:
    """Open `file` for reading its bytes as they lie there, packed or not."""
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise _unreadable(file, error) from None


def _status(file: str) -> os.stat_result:
    """Return what the system knows of a file; DataError if that cannot be, or is not, a file with content."""
    path = Path(file)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last is for a NUL in the name
        raise DataError(f"{file}: there is no such file.", _near_file(path)) from None
    except OSError as error:
        raise _unreadable(file, error) from None
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{file}: a file was expected, this is a folder.", "Name the files inside it.")
    # A pipe has size 0 too, and is not empty.
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise empty(file)
    return status


def _unreadable(file: str, error: OSError) -> DataError:
    remedy = "Check its permissions." if isinstance(error, PermissionError) else "Check its name and its disk."
    name = file if len(file) <= LONGEST_NAME else f"{file[:LONGEST_NAME]}…"
    return DataError(f"{name}: cannot be read ({error.strerror}).", remedy)


def _near_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"The folder {folder} does not exist either."
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"Did you mean {folder / near[0]}?" if near else f"No file in {folder} has a similar name."
