"""Tensors in safetensors files, by name.

Tied weights (several names, one tensor) are stored once; the file's metadata says which names share, and loading gives
all of them back, shared again.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.errors import TrainingError
from regard.runs.disk import sync
from regard.runs.tensor_header import TIED, read_header


def save(path: Path, tensors: Mapping[str, Tensor], *, metadata: dict[str, str] | None = None) -> None:
    """Write the tensors and wait until they are on the disk. Nothing is copied but what is not contiguous.

    metadata: what another reader asks for, of tensors among which none are tied
    """
    tied = find_tied(tensors)
    stored = {name: tensor.detach().contiguous() for name, tensor in tensors.items() if name not in tied}
    # One key only: safetensors writes several in random order, and equal tensors must give equal bytes.
    metadata = {TIED: json.dumps(tied, sort_keys=True)} if tied else metadata
    # safetensors makes its files readable by the owner alone; a file of our own shows what the user's umask grants.
    path.touch()
    mode = path.stat().st_mode
    save_file(stored, path, metadata=metadata)
    path.chmod(mode)
    sync(path)


def load(path: Path) -> dict[str, Tensor]:
    """Return the tensors by name, on the CPU; tied names share one tensor. Errors as of `read_header`."""
    tied = read_header(path).tied
    with opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (the file is no mapping)
    return tensors | {name: tensors[first] for name, first in tied.items()}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file, whose tensors are read one by one; OSError if it cannot be."""
    try:
        opening = safe_open(path, framework="pt")
    except RuntimeError as error:
        # safetensors opens the file, then torch maps it by its name: a file deleted in between is torch's to report.
        raise OSError(str(error)) from error
    with opening as file:
        yield file


def find_tied(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Map each name whose tensor is the very memory of an earlier name's to that earlier name."""
    first: dict[tuple[object, ...], str] = {}
    tied: dict[str, str] = {}
    for name, tensor in tensors.items():
        memory = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if memory in first:
            tied[name] = first[memory]
        else:
            first[memory] = name
    return tied


def count_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Return how many bytes the tensors take on the disk."""
    tied = find_tied(tensors)
    return sum(tensor.numel() * tensor.element_size() for name, tensor in tensors.items() if name not in tied)


def refuse_non_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise a TrainingError that names the first tensor with a NaN or an infinity in it."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"Not saving: {name} contains NaN or Inf.",
                "Resume from the last checkpoint with a lower training.learning_rate, or with training.clip.",
            )
