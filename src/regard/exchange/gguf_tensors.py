"""The tensors of a GGUF file: dequantised to single precision one by one, by the `gguf` package, within checked bounds."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import LONGEST_SHOWN, DataError, MissingExtraError
from regard.exchange.gguf_header import AGAIN, GgufHeader, StoredTensor, damaged
from regard.regular_files import open_to_read
from regard.runs.tensor_header import Shape

_UNQUANTISED = {"F32", "F16", "BF16"}


@dataclass(frozen=True)
class GgufTensors:
    """The same as `TensorFiles`, of one file.

    sizes:  how many bytes each tensor has in the file
    types:  how the numbers of each are written, by the names that llama.cpp has for it: F16, Q8_0, Q4_K
    """

    path: Path
    stored: Mapping[str, StoredTensor]
    sizes: Mapping[str, int]
    types: Mapping[str, str]

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of each tensor by its name."""
        return {name: one.shape for name, one in self.stored.items()}

    @property
    def files(self) -> Mapping[str, Path]:
        """The file, by the name of each tensor."""
        return dict.fromkeys(self.stored, self.path)

    @property
    def quantised(self) -> list[str]:
        """In which ways weights were quantised."""
        return sorted({*self.types.values()} - _UNQUANTISED)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Tensor]]:
        """Read tensors one by one inside the `with`."""
        try:
            file = open_to_read(self.path.resolve())
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}.", AGAIN) from None
        with file:
            yield partial(self._read, file)

    def _read(self, file: BufferedReader, name: str) -> Tensor:
        stored = self.stored[name]
        content = np.empty(self.sizes[name], np.uint8)
        file.seek(stored.start)
        if file.readinto(content.data) < content.size:
            raise damaged(self.path, f"{name[:LONGEST_SHOWN]} reaches beyond its end")
        rows = content.reshape(*stored.shape[:-1], -1)
        with np.errstate(all="ignore"):  # what overflows is refused below
            numbers = _dequantised(rows, stored.type)
        if not np.isfinite(numbers).all():
            raise damaged(self.path, f"{name[:LONGEST_SHOWN]} holds NaN or infinite numbers")
        return torch.from_numpy(numbers.reshape(stored.shape))


def find_gguf_tensors(path: Path, header: GgufHeader) -> GgufTensors:
    """Return the tensors of a file, each of which lies within it and is of a type that can be read."""
    types = {one.type: _type_name(path, name, one.type) for name, one in header.tensors.items()}
    sizes = {name: _size(path, name, one) for name, one in header.tensors.items()}
    ends = 0
    for name, one in sorted(header.tensors.items(), key=lambda entry: entry[1].start):
        if one.start < ends:
            raise damaged(path, f"{name[:LONGEST_SHOWN]} begins inside another tensor")
        ends = one.start + sizes[name]
        if ends > header.file_size:
            raise damaged(
                path,
                f"{name[:LONGEST_SHOWN]} should end at byte {ends:,}, and the file has {header.file_size:,} bytes",
            )
    return GgufTensors(path, header.tensors, sizes, {name: types[one.type] for name, one in header.tensors.items()})


def _library() -> Any:
    try:
        import gguf
    except ModuleNotFoundError:
        raise MissingExtraError("gguf", "Importing a GGUF file", "export") from None
    return gguf


def _dequantised(rows: np.ndarray[Any, Any], kind: int) -> np.ndarray[Any, Any]:
    """Bytes, (…, bytes per row), to numbers, (…, numbers per row), in single precision."""
    library = _library()
    numbers: np.ndarray[Any, Any] = library.dequantize(rows, library.GGMLQuantizationType(kind))
    return numbers


def _type_name(path: Path, name: str, kind: int) -> str:
    """The name of a type; one block of zeros is tried, for the package has no list of the types that it can read."""
    library = _library()
    try:
        found = library.GGMLQuantizationType(kind)
    except ValueError:
        raise DataError(
            f"{path}: {name[:LONGEST_SHOWN]} is of the type {kind}, which the installed package gguf does not know.",
            "Update it (pip install --upgrade gguf), or choose a file in F16 or Q8_0.",
        ) from None
    try:
        _dequantised(np.zeros((1, library.GGML_QUANT_SIZES[found][1]), np.uint8), kind)
    except NotImplementedError:
        raise DataError(
            f"{path}: {name[:LONGEST_SHOWN]} is of the type {found.name}, which cannot be dequantised.",
            "Choose a file of the same model in F16, Q8_0 or Q4_K_M.",
        ) from None
    return str(found.name)


def _size(path: Path, name: str, stored: StoredTensor) -> int:
    """How many bytes a tensor has: rows of blocks, each of so many numbers in so many bytes."""
    library = _library()
    n_numbers, n_bytes = map(int, library.GGML_QUANT_SIZES[library.GGMLQuantizationType(stored.type)])
    *rows, width = stored.shape or (1,)
    if width % n_numbers:
        raise damaged(path, f"rows of {name[:LONGEST_SHOWN]} have {width:,} numbers, no multiple of {n_numbers}")
    return math.prod(rows) * width // n_numbers * n_bytes
