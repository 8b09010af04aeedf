"""The header of a GGUF file: its metadata, and name, shape, type and place of each tensor, before any of them is read.

    GGUF, version ── number of tensors, of keys ── keys with their values ── tensors ── padding ── numbers

The format is llama.cpp's (versions 2 and 3, little-endian). The file may come from a stranger, so that it is read here byte
by byte and not by the reader of the `gguf` package, which believes every count: here each is held against the bytes that
are left. What the types of numbers mean is not this file's.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import LONGEST_SHOWN, DataError
from regard.regular_files import MEGABYTE, open_to_read
from regard.runs.tensor_header import Shape

SUFFIX, MAGIC, VERSIONS = ".gguf", b"GGUF", (2, 3)
MOST_HEADER = 64 * MEGABYTE  # a vocabulary of 256,000 tokens with its merges takes about 15
MOST_ITEMS = 4_000_000  # of a list
MOST_AXES = 4
MOST_ALIGNMENT = 1 << 20
ALIGNMENT = "general.alignment"
AGAIN = "Download it again."
# The types of values: numbers by their codes in `struct`, text and lists.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as the header has it: its axes in torch's order, the type of its numbers, its first byte in the file."""

    shape: Shape
    type: int
    start: int


@dataclass(frozen=True, kw_only=True)
class GgufHeader:
    """What stands in front of the numbers, and how many bytes the file has."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]
    file_size: int


def read_gguf_header(path: Path) -> GgufHeader:
    """Read the header of a file; DataError where it is none, ends early, or says what cannot be."""
    try:
        with open_to_read(path.resolve()) as file:
            return _Header(file).read()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Give a GGUF file that can be read.") from None
    except ValueError as error:
        raise damaged(path, str(error)) from None


def damaged(path: Path, reason: str) -> DataError:
    """Say what is wrong with a file."""
    remedy = AGAIN if path.suffix.lower() == SUFFIX else "Give a GGUF file, or the folder that holds config.json."
    return DataError(f"{path} is no GGUF file, or a damaged one: {reason}.", remedy)


class _Header:
    """One file, read from its first byte on."""

    def __init__(self, file: BufferedReader) -> None:
        self.file = file
        self.file_size = os.fstat(file.fileno()).st_size
        self.most = min(self.file_size, MOST_HEADER)
        self.place = 0

    def read(self) -> GgufHeader:
        if self.file_size < len(MAGIC) or self.take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin with GGUF")
        version = self.number("I")
        if version not in VERSIONS:
            raise ValueError(f"its version is {version}, and {' and '.join(map(str, VERSIONS))} are known")
        n_tensors, n_keys = self.number("Q"), self.number("Q")
        metadata: dict[str, Any] = {}
        for _ in range(n_keys):
            key = self.text()
            if key in metadata:
                raise ValueError(f"it has the key {key[:LONGEST_SHOWN]} twice")
            metadata[key] = self.value(self.number("I"))
        tensors: dict[str, StoredTensor] = {}
        for _ in range(n_tensors):
            name = self.text()
            if name in tensors:
                raise ValueError(f"it has the tensor {name[:LONGEST_SHOWN]} twice")
            tensors[name] = self.tensor(name)
        return GgufHeader(
            metadata=metadata, tensors=self.placed(tensors, _alignment(metadata)), file_size=self.file_size
        )

    def take(self, count: int) -> bytes:
        """The next bytes, of which there must be as many."""
        content = self.file.read(count) if self.place + count <= self.most else b""
        if len(content) < count:
            raise ValueError(f"its header does not end within {self.most:,} bytes")
        self.place += count
        return content

    def number(self, code: str) -> Any:
        [value] = struct.unpack(f"<{code}", self.take(struct.calcsize(code)))
        # The shortest decimal that is the same number in single precision: 1e-05, not 9.999999747378752e-06.
        return float(str(np.float32(value))) if code == "f" else value

    def text(self) -> str:
        try:
            return self.take(self.number("Q")).decode()
        except UnicodeDecodeError:
            raise ValueError("it has text that is not UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            raise ValueError(f"it has a value of the type {kind}, which GGUF does not have")
        kind, length = self.number("I"), self.number("Q")
        if length > MOST_ITEMS:
            raise ValueError(f"it has a list of {length:,} items, more than {MOST_ITEMS:,}")
        if kind == _TEXT:
            return [self.text() for _ in range(length)]
        if kind not in _NUMBERS:
            raise ValueError(f"it has a list of values of the type {kind}, which GGUF does not have")
        dtype = np.dtype(f"<{_NUMBERS[kind]}" if kind != 7 else "?")
        return np.frombuffer(self.take(length * dtype.itemsize), dtype).tolist()

    def tensor(self, name: str) -> StoredTensor:
        n_axes = self.number("I")
        if n_axes > MOST_AXES:
            raise ValueError(f"its tensor {name[:LONGEST_SHOWN]} has {n_axes:,} axes, more than {MOST_AXES}")
        shape = tuple(self.number("Q") for _ in range(n_axes))[::-1]  # GGUF begins with the last
        return StoredTensor(shape, self.number("I"), self.number("Q"))

    def placed(self, tensors: Mapping[str, StoredTensor], alignment: int) -> dict[str, StoredTensor]:
        """The tensors by their places in the file; the header counts from its own end on."""
        first = self.place + -self.place % alignment
        for name, one in tensors.items():
            if one.start % alignment:
                raise ValueError(f"its tensor {name[:LONGEST_SHOWN]} begins at no multiple of {alignment} bytes")
        return {name: StoredTensor(one.shape, one.type, first + one.start) for name, one in tensors.items()}


def _alignment(metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get(ALIGNMENT, 32)
    if type(alignment) is not int or not 0 < alignment <= MOST_ALIGNMENT or alignment & (alignment - 1):
        raise ValueError(f"its {ALIGNMENT} is {str(alignment)[:LONGEST_SHOWN]}, and must be a power of two")
    return alignment
