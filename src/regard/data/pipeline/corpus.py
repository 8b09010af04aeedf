"""A corpus on disk: encoded once, then read through memory maps, so that memory does not grow with it.

A corpus is a folder of columns of equal height. A ragged column has rows of any length (token ids, the bytes of a
text or of an image) and is two files, the values of all rows end to end and the offsets where rows begin; a number
column has one number a row. All files are raw little-endian integers; `index.json` says what they are and how long they
must be.

    index.json   source.values  source.offsets   source_text.values  source_text.offsets   line.values

This file knows no tokenizer and no format: what the columns mean is the caller's.
"""

import json
import os
import shutil
import sys
import uuid
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from regard.errors import DataError

Integers = npt.NDArray[np.integer]

_INDEX = "index.json"
BUILDING = ".building"  # the end of a folder's name until it is whole
_BUFFER = 1 << 16
_FORMAT = 1
_CODES = {"u1": "B", "u2": "H", "u4": "I", "i8": "q"}  # numpy's name of a type, and the one of Python's `array`


class Ragged:
    """Rows of integers of any length: values end to end, and offsets (rows + 1) that say where each begins."""

    def __init__(self, values: Integers, offsets: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Integers:
        """Return one row, as a view of the map."""
        row = range(len(self))[row]
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, rows: Sequence[int] | Integers) -> list[Integers]:
        """Return several rows."""
        return [self[int(row)] for row in rows]

    def text(self, row: int) -> str:
        """Return one row of a text column."""
        return self[row].tobytes().decode("utf-8")


@dataclass(frozen=True)
class Corpus:
    """An opened corpus: columns by name, and the facts that its builder left beside them."""

    folder: Path
    rows: int
    ragged: Mapping[str, Ragged]
    numbers: Mapping[str, npt.NDArray[np.int64]]
    facts: Mapping[str, Any]

    def __len__(self) -> int:
        return self.rows

    @classmethod
    def open(cls, folder: str | Path) -> "Corpus":
        """Map a corpus into memory, after checking that each file is as long as it should be."""
        folder = Path(folder)
        try:
            index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
            if index["format"] != _FORMAT:
                raise _damaged(folder, f"it is of format {index['format']}, not {_FORMAT}")
            rows = index["rows"]
            ragged, numbers = {}, {}
            for name, column in index["columns"].items():
                if column["kind"] == "numbers":
                    numbers[name] = _map(folder / f"{name}.values", "i8", rows)
                    continue
                values = _map(folder / f"{name}.values", column["dtype"], column["values"])
                offsets = _map(folder / f"{name}.offsets", "i8", rows + 1)
                if offsets[0] != 0 or offsets[-1] != len(values):
                    raise _damaged(folder, f"the offsets of {name} do not fit its values")
                ragged[name] = Ragged(values, offsets)
            return cls(folder, rows, ragged, numbers, index["facts"])
        except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(folder, f"{_INDEX} cannot be read ({error})") from error
        except OSError as error:
            raise DataError(
                f"{folder}: the corpus cannot be read: {error.strerror or error}.",
                "Check its permissions, or let REGARD_CACHE name another folder.",
            ) from error


class CorpusWriter:
    """Writes a corpus row by row in bounded memory; the folder appears whole at the end of the `with`, or not at all.

    Name the columns first, then append rows:

        with CorpusWriter(folder) as writer:
            writer.add_ids("source", vocab_size=8000)
            writer.add_text("source_text")
            writer.add_numbers("line")
            writer.append(source=[17, 4], source_text="A dog", line=1)

    Where the folder exists by then, because another process was faster, that one stays and this one is discarded.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.facts: Mapping[str, Any] = {}
        self.rows = 0
        self._columns: dict[str, _Column] = {}
        self._temporary = self.folder.with_name(f".{self.folder.name}-{uuid.uuid4().hex}{BUILDING}")

    def add_ids(self, name: str, *, vocab_size: int) -> None:
        """Add a ragged column of token ids, two bytes each where the vocabulary allows it."""
        self._add(name, "ids", "u2" if vocab_size <= 1 << 16 else "u4")

    def add_text(self, name: str) -> None:
        """Add a column of texts."""
        self._add(name, "text", "u1")

    def add_bytes(self, name: str) -> None:
        """Add a ragged column of bytes."""
        self._add(name, "bytes", "u1")

    def add_numbers(self, name: str) -> None:
        """Add a column of one number a row."""
        self._add(name, "numbers", "i8")

    def _add(self, name: str, kind: str, dtype: str) -> None:
        if self.rows or name in self._columns:
            raise ValueError(f"column {name!r} comes twice, or after the first row")
        self._columns[name] = _Column(self._temporary / name, kind, dtype)

    def append(self, **row: Sequence[int] | Integers | str | bytes | int) -> None:
        """Append one row: ids, a text, bytes or a number for each column."""
        if row.keys() != self._columns.keys():
            raise ValueError(f"a row needs the columns {sorted(self._columns)}, not {sorted(row)}")
        for name, value in row.items():
            self._columns[name].append(value)
        self.rows += 1

    def __enter__(self) -> "CorpusWriter":
        with _disk_errors(self.folder):
            self._temporary.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for column in self._columns.values():
                column.close()
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _finish(self) -> None:
        columns = {}
        for name, column in self._columns.items():
            column.flush(sync=True)
            columns[name] = {"kind": column.kind, "dtype": column.dtype, "values": column.n_values}
        index = {"format": _FORMAT, "rows": self.rows, "columns": columns, "facts": self.facts}
        with _disk_errors(self.folder):
            with (self._temporary / _INDEX).open("w", encoding="utf-8") as file:
                json.dump(index, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            try:
                self._temporary.rename(self.folder)
            except OSError:
                if not self.folder.is_dir():
                    raise
            _sync_folder(self.folder.parent)


class _Column:
    """One column while it is written: values, and for a ragged one offsets, through small buffers."""

    def __init__(self, path: Path, kind: str, dtype: str) -> None:
        self.kind = kind
        self.dtype = dtype
        self.n_values = 0
        self._values = array(_CODES[dtype])
        self._offsets = array("q", [0])
        self._files: list[IO[bytes]] = []
        self._path = path

    def append(self, value: Any) -> None:
        before = len(self._values)
        if self.kind == "text":
            self._values.frombytes(value.encode("utf-8"))
        elif self.kind == "bytes":
            self._values.frombytes(value)
        elif self.kind == "numbers":
            self._values.append(value)
        else:
            self._values.extend(value)
        self.n_values += len(self._values) - before
        self._offsets.append(self.n_values)
        if len(self._values) >= _BUFFER or len(self._offsets) >= _BUFFER:
            self.flush()

    def flush(self, *, sync: bool = False) -> None:
        with _disk_errors(self._path.parent):
            if not self._files:
                suffixes = [".values"] if self.kind == "numbers" else [".values", ".offsets"]
                self._files = [self._path.with_name(self._path.name + suffix).open("wb") for suffix in suffixes]
            for file, buffer in zip(self._files, (self._values, self._offsets), strict=False):
                if sys.byteorder == "big":
                    buffer.byteswap()
                buffer.tofile(file)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
        del self._values[:], self._offsets[:]

    def close(self) -> None:
        for file in self._files:
            # What matters is written and synced by now. On a full disk closing fails again, and has nothing to add.
            with suppress(OSError):
                file.close()


def _map(path: Path, dtype: str, count: int) -> npt.NDArray[Any]:
    """Map a file of `count` little-endian integers."""
    if dtype not in _CODES:
        raise ValueError(f"unknown type {dtype}")
    kind = np.dtype("<" + dtype)
    size = path.stat().st_size if path.exists() else -1
    if size != count * kind.itemsize:
        found = "is missing" if size < 0 else f"has {size:,} bytes"
        raise _damaged(path.parent, f"{path.name} {found}, expected {count * kind.itemsize:,} bytes")
    # An empty file cannot be mapped. The plain view of a map is quicker to slice than the map's own class.
    return np.asarray(np.memmap(path, dtype=kind, mode="r")) if count else np.empty(0, dtype=kind)


class DamagedError(DataError):
    """A corpus that is not whole: encoding the text again will fix it."""


def _damaged(folder: Path, reason: str) -> DamagedError:
    return DamagedError(f"{folder}: not a whole corpus: {reason}.", "Remove the folder and encode the text again.")


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn the system's error on writing into one for people."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder}: the corpus could not be written: {error.strerror or error}.",
            "Free some space, or let REGARD_CACHE name a folder on another disk.",
        ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
