"""Files as people name them: found or not, gzipped or not. Knows bytes only; lines begin in `rows.py`."""

import difflib
import gzip
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError

# What reading a damaged gzip file raises. Not OSError as such: a full disk or a lost network drive is another matter.
DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error)
CHUNK_BYTES = 1 << 18


def check_file(file: str) -> None:
    """Raise DataError if `file` is missing, a folder, or empty."""
    path = Path(file)
    if path.is_dir():
        raise DataError(f"{file}: a file was expected, this is a folder.", "Name the files inside it.")
    if not path.exists():
        raise DataError(f"{file}: there is no such file.", _near_file(path))
    # A pipe has size 0 too, and is not empty.
    if path.is_file() and path.stat().st_size == 0:
        raise empty(file)


@contextmanager
def open_file(file: str) -> Iterator[BinaryIO]:
    """Open `file` for reading bytes, through gzip if its name ends in .gz."""
    check_file(file)
    try:
        raw = Path(file).open("rb")  # noqa: SIM115 (closed below; only the opening is guarded here)
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}).", "Check its permissions.") from None
    with raw:
        if not file.lower().endswith(".gz"):
            yield raw
            return
        with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
            # GzipFile is a BinaryIO in all but its declared type.
            yield stream  # type: ignore[misc]


@contextmanager
def open_seekable(file: str) -> Iterator[BinaryIO]:
    """Open `file` for a reader that jumps about in it: a gzipped one is unpacked into a temporary file first."""
    with open_file(file) as stream:
        if not isinstance(stream, gzip.GzipFile):
            yield stream
            return
        with tempfile.TemporaryFile() as unpacked:
            try:
                while chunk := stream.read(CHUNK_BYTES):
                    unpacked.write(chunk)
            except DAMAGE:
                raise damaged(file) from None
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


def _near_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"The folder {folder} does not exist either."
    near = difflib.get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1, cutoff=0.6)
    return f"Did you mean {folder / near[0]}?" if near else f"No file in {folder} has a similar name."
