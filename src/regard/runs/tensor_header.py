"""The header of a safetensors file: names and shapes of its tensors, before any of them is read. Loads no tensor library.

The format: the length of the header in 8 bytes, the header as JSON, the tensors. Tied weights (several names, one tensor)
stand there once; our own entry in the metadata says which names share.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.regular_files import MEGABYTE, open_to_read
from regard.runs.json_files import is_count, parse_json

MOST_HEADER = 16 * MEGABYTE
METADATA, TIED = "__metadata__", "tied"
# What batch norms track of the batches stands among the weights, and is not learned.
STATISTICS = ("running_mean", "running_variance", "running_var", "num_batches_tracked")
DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TensorHeader:
    """The shape of each stored tensor by its name, and for each name that shares one, whose."""

    stored: Mapping[str, Shape]
    tied: Mapping[str, str]

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape that each name has, tied ones too."""
        return {**self.stored, **{name: self.stored[first] for name, first in self.tied.items()}}

    @property
    def n_parameters(self) -> int:
        """How many numbers were learned; tied ones count once."""
        own = (shape for name, shape in self.stored.items() if name.rpartition(".")[2] not in STATISTICS)
        return sum(map(math.prod, own))


def read_header(path: Path) -> TensorHeader:
    """Read the header of a file; OSError where it cannot be read, ValueError where it is none of ours."""
    with open_to_read(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MOST_HEADER:
            raise ValueError(f"its header has more than {MOST_HEADER // MEGABYTE} MB")
        header = parse_json(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    metadata = header.pop(METADATA, {})
    stored = {name: _shape(entry) for name, entry in header.items()}
    return TensorHeader(stored=stored, tied=_tied(metadata, stored))


def _tied(metadata: object, stored: Mapping[str, Shape]) -> dict[str, str]:
    """Read which names share a stored tensor."""
    text = metadata.get(TIED, "{}") if isinstance(metadata, dict) else None
    tied = parse_json(text) if isinstance(text, str) else None
    if not isinstance(tied, dict) or not all(
        isinstance(first, str) and first in stored and name not in stored for name, first in tied.items()
    ):
        raise ValueError("it does not say which weights are tied")
    return tied


def _shape(entry: object) -> Shape:
    shape = entry.get("shape") if isinstance(entry, dict) and entry.get("dtype") in DTYPES else None
    if not (isinstance(shape, list) and all(map(is_count, shape))):
        raise ValueError("a tensor has no shape, or numbers of another kind than weights")
    return tuple(shape)
