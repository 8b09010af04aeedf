"""Checkpoints: written atomically, verified before they are trusted, loaded. No pickle.

    checkpoints/step-00000400/      model.safetensors  optimizer.safetensors  ema.safetensors  state.json  manifest.json
    checkpoints/average-00000400/   model.safetensors  manifest.json

The manifest is written last and holds each file's size and sha256. Which checkpoint a name means is in `selection.py`.
Writing is for the holder of the run's lock; reading needs none, and whoever trains may delete a checkpoint meanwhile.
A run may come from somebody else: the hashes show damage, not intent, so that forms and shapes are checked beside them.
"""

import dataclasses
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import Tensor

import regard
from regard.errors import LONGEST_NAME, CheckpointError
from regard.regular_files import open_to_read
from regard.runs import tensors
from regard.runs.disk import (
    as_json,
    delete_tree,
    discard,
    disk_errors,
    remove_leftovers,
    require_space,
    sync,
    temporary_name,
    write_synced,
)
from regard.runs.folder import CONFIG, RunFolder
from regard.runs.json_files import is_count, is_scores, read_json
from regard.runs.names import EMA, MANIFEST, MODEL, MOST_STATE, OPTIMIZER, REPLACED, STATE, Kind
from regard.runs.tensor_header import Shape, TensorHeader, read_header


class VanishedError(CheckpointError):
    """A checkpoint that whoever trains the run deleted while it was being read; another has taken its place."""


class OtherModelError(CheckpointError):
    """A checkpoint with the weights of another model."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a checkpoint is, what wrote it, and the size and sha256 of each of its other files."""

    kind: Kind
    step: int
    versions: Mapping[str, str]
    facts: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files are what was written: `verify` and `write` make them, and nobody else."""

    path: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        return self.manifest.step

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.manifest.facts

    def __str__(self) -> str:
        return str(self.path)


def write(
    run: RunFolder,
    *,
    step: int,
    model: Mapping[str, Tensor],
    facts: Mapping[str, Any],
    optimizer: Mapping[str, Tensor] | None = None,
    ema: Mapping[str, Tensor] | None = None,
    state: Mapping[str, Any] | None = None,
    kind: Kind = "step",
) -> Checkpoint:
    """Write a checkpoint; afterwards it survives a power cut. A kill at any instant leaves the earlier ones in place.

    `facts` go into the manifest: threads, the data's fingerprint. `state` is what resume and `@best` read:
    `{"validation": {"loss": …} or None, …}`. A checkpoint of the same step and kind is replaced.
    """
    files = {MODEL: model, OPTIMIZER: optimizer, EMA: ema}
    groups = {name: group for name, group in files.items() if group is not None}
    for group in (model, ema or {}):
        tensors.refuse_non_finite(group)
    folder = run.checkpoints / f"{kind}-{step:08d}"
    temporary = temporary_name(folder)
    needed = sum(tensors.count_bytes(group) for group in groups.values())
    with disk_errors(run.path, needed=needed):
        run.checkpoints.mkdir(exist_ok=True)  # without parents: a run that was deleted meanwhile is not made again
        clean(run)
        require_space(run.path, needed=needed)
        try:
            temporary.mkdir()
            for name, group in groups.items():
                tensors.save(temporary / name, group)
            if state is not None:
                write_synced(temporary / STATE, as_json(state, indent=2) + b"\n")
            manifest = make_manifest(temporary, kind=kind, step=step, facts=facts)
            write_synced(temporary / MANIFEST, as_json(dataclasses.asdict(manifest), indent=2) + b"\n")
            sync(temporary)
            put_in_place(temporary, folder)
        except BaseException:
            delete_tree(temporary)
            raise
    return Checkpoint(folder, manifest)


def make_manifest(folder: Path, *, kind: Kind, step: int, facts: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a folder that has all other files."""
    files = {path.name: {"size": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    versions = {"regard": regard.__version__, "torch": torch.__version__, "python": platform.python_version()}
    return Manifest(kind=kind, step=step, versions=versions, facts=dict(facts), files=files)


def put_in_place(temporary: Path, folder: Path) -> None:
    """Give a written folder its name. One that has the name stands aside till then, and still counts meanwhile."""
    replaced = folder.with_name(folder.name + REPLACED)
    if folder.exists():
        discard(replaced)
        folder.rename(replaced)
    temporary.rename(folder)
    sync(folder.parent)
    discard(replaced)


def clean(run: RunFolder) -> None:
    """Delete what a killed process left half-written or half-deleted; only for the holder of the run's lock."""
    for folder in (run.path, run.vocabulary, run.checkpoints):
        remove_leftovers(folder)
    for replaced in run.checkpoints.glob(f"*{REPLACED}"):
        if replaced.with_suffix("").exists():
            discard(replaced)


def verify(path: Path) -> Checkpoint:
    """Return the checkpoint in this folder if each file is what the manifest says; say what differs if not."""
    manifest = read_manifest(path)
    for name, expected in manifest.files.items():
        file = path / name
        with reading(file), open_to_read(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != expected["size"]:
                raise damaged(path, f"{file} has {size} bytes, {expected['size']} were written")
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected["sha256"]:
            raise damaged(
                path, f"the bytes of {file} have changed (sha256 {found[:8]}…, not {expected['sha256'][:8]}…)"
            )
        if name == STATE:
            read_state(path)
        else:
            header_of(path / name)
    return Checkpoint(path, manifest)


def read_manifest(path: Path) -> Manifest:
    """Read a checkpoint's manifest, and hold it against the folder's name and the form that `write` gives it."""
    file = path / MANIFEST
    with reading(file, "a manifest"):
        content = read_json(file, most=MOST_STATE)
    if not isinstance(content, dict) or set(content) != {field.name for field in dataclasses.fields(Manifest)}:
        raise damaged(path, f"{file} is not a manifest")
    if not is_manifest_of(path.name.removesuffix(REPLACED), content):
        raise damaged(path, f"{file} is not the manifest of {path.name}")
    return Manifest(**content)


def is_manifest_of(name: str, content: Mapping[str, Any]) -> bool:
    """Tell whether the values of a manifest are such as `write` gives it for a checkpoint of this name."""
    kind, step, files = content["kind"], content["step"], content["files"]
    return (
        isinstance(content["versions"], dict)
        and isinstance(content["facts"], dict)
        and isinstance(files, dict)
        and MODEL in files
        and set(files) <= {MODEL, OPTIMIZER, EMA, STATE}
        and all(
            isinstance(entry, dict) and is_count(entry.get("size")) and isinstance(entry.get("sha256"), str)
            for entry in files.values()
        )
        # An optimizer has two numbers for each weight. What is far larger need not be read to be known as wrong.
        and max(entry["size"] for entry in files.values()) <= 4 * files[MODEL]["size"] + MOST_STATE
        and isinstance(kind, str)
        and is_count(step)
        and f"{kind}-{step:08d}" == name
    )


def read_state(path: Path) -> dict[str, Any]:
    """Read the state of a checkpoint that has one, of which the validation and its metric are checked here."""
    file = path / STATE
    with reading(file, "a training state"):
        state = read_json(file, most=MOST_STATE)
    if (
        not isinstance(state, dict)
        or not is_scores({} if state.get("validation") is None else state["validation"])
        or not isinstance(state.get("best_by", ""), str)
    ):
        raise damaged(path, f"{file} is not a training state")
    return state


def header_of(file: Path) -> TensorHeader:
    """Read the header of a checkpoint's tensor file."""
    with reading(file, "a file of tensors"):
        return read_header(file)


@contextmanager
def reading(file: Path, what: str = "what was written") -> Iterator[None]:
    """Turn what goes wrong in reading a file of a checkpoint into a CheckpointError; `what` is what it should be."""
    try:
        yield
    except OSError as error:
        raise damaged(file.parent, f"{file} cannot be read ({error.strerror or error})") from error
    except (ValueError, SafetensorError) as error:
        raise damaged(file.parent, f"{file} is not {what} ({error})") from error


def damaged(path: Path, problem: str) -> CheckpointError:
    """Return the error for a checkpoint that is not what was written, or that is there no more."""
    run = path.parent.parent
    if not path.exists():
        return VanishedError(f"{path} no longer exists.", "Try again: the run may be in training.")
    return CheckpointError(
        f"The checkpoint is damaged: {problem}.", f"Use another: {run}@last is the newest intact one."
    )


def require_shapes(path: Path, expected: Mapping[str, Shape]) -> None:
    """Refuse weights of other names or shapes than the model has, by the file's header: nothing else is read yet."""
    found = header_of(path / MODEL).shapes
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            raise OtherModelError(
                f"{path} does not fit the model of the run's {CONFIG}: {name[:LONGEST_NAME]} is "
                f"{_shown(found.get(name))} in the checkpoint and {_shown(expected.get(name))} in the model.",
                "Put back the config that the run was trained with.",
            )


def _shown(shape: Shape | None) -> str:
    return "missing" if shape is None else f"of shape {shape}"


def load_weights(checkpoint: Checkpoint, *, which: Literal["model", "ema"] = "model") -> dict[str, Tensor]:
    """Return the model's weights by name, on the CPU; `ema` for their exponential moving average."""
    if which == "ema":
        require(checkpoint, EMA, "an EMA of the weights")
    return load_file(checkpoint, MODEL if which == "model" else EMA)


def load_used_weights(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the weights that a run is used with, which were validated: their moving average, where one was kept."""
    weights = load_weights(checkpoint)
    if EMA not in checkpoint.manifest.files:
        return weights
    average = load_weights(checkpoint, which="ema")
    first = tensors.find_tied(weights)  # the average has each weight once, under its first name, and no counts
    averaged = {name: one.shape for name, one in weights.items() if name not in first and one.is_floating_point()}
    if {name: one.shape for name, one in average.items()} != averaged:
        raise damaged(checkpoint.path, f"{checkpoint.path / EMA} is not the average of the weights beside it")
    return {name: average.get(first.get(name, name), tensor) for name, tensor in weights.items()}


def load_optimizer(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the optimizer's tensors by name, on the CPU."""
    require(checkpoint, OPTIMIZER, "the optimizer's state")
    return load_file(checkpoint, OPTIMIZER)


def load_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state that was given to `write`."""
    require(checkpoint, STATE, "the training state")
    return read_state(checkpoint.path)


def load_file(checkpoint: Checkpoint, name: str) -> dict[str, Tensor]:
    """Return the tensors of one file."""
    with reading(checkpoint.path / name, "a file of tensors"):
        return tensors.load(checkpoint.path / name)


def require(checkpoint: Checkpoint, file: str, what: str) -> None:
    """Raise a CheckpointError where a checkpoint was written without an optional file."""
    if file not in checkpoint.manifest.files:
        raise CheckpointError(
            f"{checkpoint} does not contain {what}: it has no {file}.", "Choose a checkpoint that has it, by its step."
        )


def sha256(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
