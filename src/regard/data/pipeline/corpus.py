"""A corpus on disk: encoded once, then read through memory maps, so that memory does not grow with it.

A corpus is a folder of columns of equal height. A ragged column has rows of any length (token ids, the bytes of a
text or of an image) and is two files, the values of all rows end to end and the offsets where rows begin; a number
column has one number a row. All files are raw little-endian integers; `index.json` says what they are and how long they
must be, and has their hashes: a corpus of which a bit has changed is not opened.

    index.json   source.values  source.offsets   source_text.values  source_text.offsets   line.values

This file knows no tokenizer and no format: what the columns mean is the caller's.
"""

import fcntl
import hashlib
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

TEXT, BYTES, NUMBER = "text", "bytes", "numbers"  # kinds of columns beside ids; the last has one number a row
_INDEX = "index.json"
BUILDING = ".building"  # the end of a folder's name until it is whole
_BUFFER = 1 << 16
_FORMAT = 2
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
    """An opened corpus: columns by name, and the facts that its builder left beside them.

    damage: what was wrong with the one in the cache in whose place it was built; "" if nothing was
    """

    folder: Path
    rows: int
    ragged: Mapping[str, Ragged]
    numbers: Mapping[str, npt.NDArray[np.int64]]
    facts: Mapping[str, Any]
    damage: str = ""

    def __len__(self) -> int:
        return self.rows

    @property
    def rebuilt(self) -> list[str]:
        """Say that the cache held a damaged one, if it did."""
        return [f"in the cache, {self.damage} It was built anew."] if self.damage else []

    @classmethod
    def open(cls, folder: str | Path) -> "Corpus":
        """Map a corpus into memory, after checking that each file is as it was written."""
        folder = Path(folder)
        try:
            index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
            if index["format"] != _FORMAT:
                raise _damaged(folder, f"it is of format {index['format']}, not {_FORMAT}")
            if index.pop("sha256") != _hash_of(index):
                raise _damaged(folder, f"{_INDEX} has changed since it was written")
            rows = index["rows"]
            ragged, numbers = {}, {}
            for name, column in index["columns"].items():
                if column["kind"] == NUMBER:
                    [own] = column["hashes"]
                    numbers[name] = _map(folder / f"{name}.values", "i8", rows, own)
                    continue
                of_values, of_offsets = column["hashes"]
                values = _map(folder / f"{name}.values", column["dtype"], column["values"], of_values)
                ragged[name] = Ragged(values, _map(folder / f"{name}.offsets", "i8", rows + 1, of_offsets))
            return cls(folder, rows, ragged, numbers, index["facts"])
        except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
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
            writer.add(source=8000, source_text=TEXT, line=NUMBER)
            writer.append(source=[17, 4], source_text="A dog", line=1)

    Where the folder exists by then, because another process was faster, that one stays and this one is discarded.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.facts: Mapping[str, Any] = {}
        self.rows = 0
        self._columns: dict[str, _Column] = {}
        self._lock = -1
        self._temporary = self.folder.with_name(f".{self.folder.name}-{uuid.uuid4().hex}{BUILDING}")

    def add(self, **columns: int | str) -> None:
        """Add columns: TEXT, BYTES, NUMBER, or of ids how many there are; two bytes each where that allows it."""
        for name, kind in columns.items():
            if self.rows or name in self._columns:
                raise ValueError(f"column {name!r} comes twice, or after the first row")
            path = self._temporary / name
            if isinstance(kind, int):
                self._columns[name] = _Column(path, "ids", "u2" if kind <= 1 << 16 else "u4")
            else:
                self._columns[name] = _Column(path, kind, "i8" if kind == NUMBER else "u1")

    def append(self, **row: Sequence[int] | Integers | str | bytes | int) -> None:
        """Append one row: ids, a text, bytes or a number for each column."""
        if row.keys() != self._columns.keys():
            raise ValueError(f"a row needs the columns {sorted(self._columns)}, not {sorted(row)}")
        for name, value in row.items():
            self._columns[name].append(value)
        self.rows += 1

    def __enter__(self) -> "CorpusWriter":
        with _disk_errors(self.folder):
            self._lock = _make_locked(self._temporary)
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
            os.close(self._lock)

    def _finish(self) -> None:
        columns = {}
        for name, column in self._columns.items():
            column.flush(sync=True)
            values = {"dtype": column.dtype, "values": column.n_values}
            columns[name] = {"kind": column.kind, **values, "hashes": column.hashes}
        index = {"format": _FORMAT, "rows": self.rows, "columns": columns, "facts": self.facts}
        with _disk_errors(self.folder):
            with (self._temporary / _INDEX).open("w", encoding="utf-8") as file:
                json.dump({**index, "sha256": _hash_of(index)}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            try:
                self._temporary.rename(self.folder)
            except OSError:
                if not self.folder.is_dir():
                    raise
            _sync_folder(self.folder.parent)


def _make_locked(folder: Path) -> int:
    """Make a folder and hold an flock on it: one that nobody holds was left by a killed process. Return its descriptor."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a file system without it
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists():
                return descriptor
            os.close(descriptor)  # taken for abandoned before it was locked


class _Column:
    """One column while it is written: values, and for a ragged one offsets, through small buffers."""

    def __init__(self, path: Path, kind: str, dtype: str) -> None:
        self.kind = kind
        self.dtype = dtype
        self.n_values = 0
        self._values = array(_CODES[dtype])
        self._offsets = array("q", [0])
        self._files: list[IO[bytes]] = []
        self._hashes = [hashlib.sha256() for _ in range(1 if kind == NUMBER else 2)]
        self._path = path

    @property
    def hashes(self) -> list[str]:
        """Of what was written of the values, and of the offsets if there are such."""
        return [hash.hexdigest() for hash in self._hashes]

    def append(self, value: Any) -> None:
        before = len(self._values)
        if self.kind == TEXT:
            self._values.frombytes(value.encode("utf-8"))
        elif self.kind == BYTES:
            self._values.frombytes(value)
        elif self.kind == NUMBER:
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
                suffixes = [".values"] if self.kind == NUMBER else [".values", ".offsets"]
                self._files = [self._path.with_name(self._path.name + suffix).open("wb") for suffix in suffixes]
            for file, hash, buffer in zip(self._files, self._hashes, (self._values, self._offsets), strict=False):
                if sys.byteorder == "big":
                    buffer.byteswap()
                hash.update(buffer)
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


def _hash_of(index: Mapping[str, Any]) -> str:
    """Return a hash of what an index says, whatever its layout."""
    return hashlib.sha256(json.dumps(index).encode()).hexdigest()


def _map(path: Path, dtype: str, count: int, sha256: str) -> npt.NDArray[Any]:
    """Map a file of `count` little-endian integers, once it is known to be as it was written."""
    if dtype not in _CODES:
        raise ValueError(f"unknown type {dtype}")
    kind = np.dtype("<" + dtype)
    size = path.stat().st_size if path.exists() else -1
    if size != count * kind.itemsize:
        found = "is missing" if size < 0 else f"has {size:,} bytes"
        raise _damaged(path.parent, f"{path.name} {found}, expected {count * kind.itemsize:,} bytes")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise _damaged(path.parent, f"{path.name} has changed since it was written")
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
