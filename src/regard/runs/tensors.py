"""Tensors in safetensors files, by name.

Tied weights (several names, one tensor) are stored once; the file's metadata says which names share, and loading gives
all of them back, shared again.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.errors import CheckpointError, TrainingError
from regard.runs.disk import sync

# One key only: safetensors writes several in random order, and equal tensors must give equal bytes.
TIED = "tied"


def save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors and wait until they are on the disk. Nothing is copied but what is not contiguous."""
    tied = find_tied(tensors)
    stored = {name: tensor.detach().contiguous() for name, tensor in tensors.items() if name not in tied}
    # safetensors makes its files readable by the owner alone; a file of our own shows what the user's umask grants.
    path.touch()
    mode = path.stat().st_mode
    save_file(stored, path, metadata={TIED: json.dumps(tied, sort_keys=True)} if tied else None)
    path.chmod(mode)
    sync(path)


def load(path: Path) -> dict[str, Tensor]:
    """Return the tensors by name, on the CPU; tied names share one tensor."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (the file is no mapping)
            tied = read_tied(file.metadata())
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path} cannot be read: {error}.", "It may have been deleted at this moment: try again."
        ) from error
    return tensors | {name: tensors[first] for name, first in tied.items()}


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


def read_tied(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Read from a file's metadata what `save` kept of tied names."""
    tied: dict[str, str] = json.loads((metadata or {}).get(TIED, "{}"))
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
