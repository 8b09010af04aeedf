"""Weights that torch pickled (`.bin`, `.pt`), for those who ask for them: only tensors are unpickled, and no code is run.

The one place of the package where anything pickled is read, with torch's own restriction to tensors and plain containers.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import DataError
from regard.exchange.tensor_files import file_names, find_file
from regard.regular_files import open_to_read
from regard.runs.tensor_header import Shape

PICKLED, PICKLED_INDEX = ("pytorch_model.bin", "pytorch_model.pt", "model.pt"), "pytorch_model.bin.index.json"


@dataclass(frozen=True)
class PickledTensors:
    """The same as `TensorFiles`, but all of them in memory."""

    tensors: Mapping[str, Tensor]
    files: Mapping[str, Path]

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """The shape of each tensor by its name."""
        return {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Tensor]]:
        """Read tensors one by one inside the `with`."""
        yield self.tensors.__getitem__


def pickled_files(folder: Path) -> list[Path]:
    """Return the pickled files of a folder: one, those that an index names, or none."""
    for name in PICKLED:
        if (single := find_file(folder, name)) is not None:
            return [single]
    if (index := find_file(folder, PICKLED_INDEX)) is None:
        return []
    found = {name: find_file(folder, name) for name in file_names(index, suffix=".bin")}
    if missing := [name for name, path in found.items() if path is None]:
        raise DataError(f"{folder} lacks the file {missing[0]}, which {index.name} names.", "Download it too.")
    return [path for path in found.values() if path is not None]


def load_pickled(paths: list[Path]) -> PickledTensors:
    """Load pickled tensors, and refuse anything else that was pickled."""
    tensors: dict[str, Tensor] = {}
    files: dict[str, Path] = {}
    for path in paths:
        for name, tensor in _load(path).items():
            tensors[name], files[name] = tensor, path
    return PickledTensors(tensors, files)


def _load(path: Path) -> dict[str, Tensor]:
    try:
        with open_to_read(path) as file:
            content = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", "Give a folder of readable files.") from None
    except Exception as error:  # of many kinds, by what is wrong with the file
        reason = type(error).__name__  # torch's own words go on to say how code could be run all the same
        raise DataError(f"{path} holds more than tensors, or is damaged ({reason}).", "Use safetensors.") from None
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in content.items()
    ):
        raise DataError(f"{path} holds something else than tensors by name.", "Use safetensors.")
    return content
