"""Arrays in files, and those of an NPZ: a header is checked against what follows it, and rows are streamed.

So no header can fill the memory, and nothing is unpickled.
"""

import lzma
import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tokenize import TokenError
from typing import Any, BinaryIO, Literal, cast

import numpy as np
import numpy.typing as npt

from regard.data.formats.files import DAMAGE, open_seekable
from regard.data.formats.rows import excerpt
from regard.errors import DataError

Array = npt.NDArray[Any]

MAX_BYTES = 1 << 30  # of a row, or of an array that is read as a whole
REMEDY = "Save it with numpy.savez, as an array of numbers (numpy.ascontiguousarray) of at least one dimension."
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What zipfile, the decompressors and numpy raise on damaged data.
_DAMAGE = (*DAMAGE, zipfile.BadZipFile, lzma.LZMAError, struct.error)
_NO_NPZ = (*_DAMAGE, ValueError, LookupError, OverflowError, TokenError, OSError, RuntimeError)


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a file: what its header says, and the stream of what follows; `file` is its name in errors.

    columns_first: whether it is stored in the order of Fortran, so that no row stands together
    """

    file: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: BinaryIO
    columns_first: bool = False

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def text(self) -> str:
        count = " × ".join(f"{count:,}" for count in self.shape)
        return f"{count} numbers of {self.dtype}" if count else f"one number of {self.dtype}"

    def rows(self) -> Iterator[Array]:
        """Yield the rows of the array, one at a time; the stream must end with them."""
        row_shape = self.shape[1:]
        n_bytes = math.prod(row_shape) * self.dtype.itemsize
        if self.columns_first and row_shape:
            raise DataError(f"{self.file}: its columns are stored first, and rows are read.", REMEDY)
        self._refuse_large(n_bytes, "in a row")
        for number in range(self.shape[0]):
            content = self._read(n_bytes)
            if len(content) < n_bytes:
                raise self._lies(f"the data ends in row {number:,}")
            yield np.frombuffer(content, self.dtype).reshape(row_shape)
        if self._read(1):
            raise self._lies("more data follows")

    def whole(self) -> Array:
        """Return the whole array."""
        self._refuse_large(self.n_bytes, "as a whole")
        order: Literal["F", "C"] = "F" if self.columns_first else "C"
        content = self._read(self.n_bytes) + self._read(1)
        return np.frombuffer(content, self.dtype).reshape(self.shape, order=order)

    def check_size(self, n_bytes: int) -> None:
        """Refuse a header that does not fit the bytes that follow it."""
        if n_bytes != self.n_bytes:
            raise self._lies(f"{n_bytes:,} bytes follow instead of {self.n_bytes:,}")

    def _refuse_large(self, n_bytes: int, which: str) -> None:
        if n_bytes > MAX_BYTES:
            raise DataError(
                f"{self.file}: {n_bytes:,} bytes {which}, at most {MAX_BYTES:,} are read.", "Save it as several arrays."
            )

    def _read(self, count: int) -> bytes:
        try:
            return self.stream.read(count)
        except _DAMAGE as error:
            raise DataError(
                f"{self.file}: its packed data is damaged or incomplete ({excerpt(str(error))}).",
                "Copy the file again.",
            ) from None

    def _lies(self, what: str) -> DataError:
        return DataError(f"{self.file}: its header says {self.text}, and {what}.", "Copy the file again, or fix it.")


@contextmanager
def open_npz(file: str, remedy: str) -> Iterator[zipfile.ZipFile]:
    """Open an NPZ file; DataError with this remedy if it turns out to be none, or damaged."""
    try:
        with open_seekable(file) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except _NO_NPZ as error:
        raise DataError(f"{file}: not a whole NPZ file of numbers: {excerpt(str(error))}.", remedy) from None


def npz_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays of an NPZ file."""
    return list(dict.fromkeys(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")))


@contextmanager
def npz_array(file: str, archive: zipfile.ZipFile, name: str) -> Iterator[StoredArray]:
    """Open an array of an NPZ file behind its header, which is known to fit its size."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as opened:
        stream = cast(BinaryIO, opened)
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"'{name}' is of version {version}")
        shape, columns_first, dtype = _HEADERS[version](stream)
        array = StoredArray(f"{file}, array '{name}'", shape, dtype, stream, columns_first)
        if dtype.hasobject:
            raise DataError(
                f"{array.file}: it holds Python objects, which are never read.",
                "Save numbers as numbers, and the names of classes as text: array.astype(str).",
            )
        if dtype.fields or not shape or min(shape) < 0:
            raise DataError(f"{array.file}: numbers were expected, not {array.text}.", REMEDY)
        array.check_size(info.file_size - stream.tell())
        yield array
