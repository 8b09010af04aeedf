"""Checkpoints: written atomically, verified before they are trusted, loaded. No pickle.

    checkpoints/step-00000400/      model.safetensors  optimizer.safetensors  ema.safetensors  state.json  manifest.json
    checkpoints/average-00000400/   model.safetensors  manifest.json

The manifest is written last and holds each file's size and sha256. Which checkpoint a name means is in `selection.py`.
Writing is for the holder of the run's lock; reading needs none.
"""

import dataclasses
import hashlib
import json
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

import regard
from regard.errors import CheckpointError
from regard.runs import tensors
from regard.runs.disk import (
    as_json,
    discard,
    disk_errors,
    remove_leftovers,
    require_space,
    sync,
    temporary_name,
    write_synced,
)
from regard.runs.folder import RunFolder
from regard.runs.names import EMA, MANIFEST, MODEL, OPTIMIZER, REPLACED, STATE, Kind


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
        run.checkpoints.mkdir(parents=True, exist_ok=True)
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
            shutil.rmtree(temporary, ignore_errors=True)
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
    remove_leftovers(run.path)
    remove_leftovers(run.checkpoints)
    for replaced in run.checkpoints.glob(f"*{REPLACED}"):
        if replaced.with_suffix("").exists():
            discard(replaced)


def verify(path: Path) -> Checkpoint:
    """Return the checkpoint in this folder if each file is what the manifest says; say what differs if not."""
    manifest = read_manifest(path)
    for name, expected in manifest.files.items():
        file = path / name
        try:
            size = file.stat().st_size
            if size != expected["size"]:
                raise damaged(path, f"{file} has {size} bytes, {expected['size']} were written")
            found = sha256(file)
        except OSError as error:
            raise damaged(path, f"{file} cannot be read ({error.strerror})") from error
        if found != expected["sha256"]:
            raise damaged(
                path, f"the bytes of {file} have changed (sha256 {found[:8]}…, not {expected['sha256'][:8]}…)"
            )
    return Checkpoint(path, manifest)


def read_manifest(path: Path) -> Manifest:
    """Read a checkpoint's manifest, and hold it against the folder's name and the form that `write` gives it."""
    file = path / MANIFEST
    try:
        manifest = Manifest(**json.loads(file.read_bytes()))
        name = f"{manifest.kind}-{manifest.step:08d}"
        complete = MODEL in manifest.files and all(
            {"size", "sha256"} == set(entry) for entry in manifest.files.values()
        )
    except OSError as error:
        raise damaged(path, f"{file} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged(path, f"{file} is not a manifest") from error
    if not complete or name != path.name.removesuffix(REPLACED):
        raise damaged(path, f"{file} is not the manifest of {path.name}")
    return manifest


def damaged(path: Path, problem: str) -> CheckpointError:
    """Return the error for a checkpoint that is not what was written."""
    run = path.parent.parent
    return CheckpointError(
        f"The checkpoint is damaged: {problem}.", f"Use another: {run}@last is the newest intact one."
    )


def load_weights(checkpoint: Checkpoint, *, which: Literal["model", "ema"] = "model") -> dict[str, Tensor]:
    """Return the model's weights by name, on the CPU; `ema` for their exponential moving average."""
    if which == "ema":
        require(checkpoint, EMA, "an EMA of the weights")
    return tensors.load(checkpoint.path / (MODEL if which == "model" else EMA))


def load_optimizer(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the optimizer's tensors by name, on the CPU."""
    require(checkpoint, OPTIMIZER, "the optimizer's state")
    return tensors.load(checkpoint.path / OPTIMIZER)


def load_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state that was given to `write`."""
    require(checkpoint, STATE, "the training state")
    state: dict[str, Any] = json.loads((checkpoint.path / STATE).read_bytes())
    return state


def require(checkpoint: Checkpoint, file: str, what: str) -> None:
    """Raise a CheckpointError where a checkpoint lacks an optional file."""
    if not (checkpoint.path / file).exists():
        raise CheckpointError(
            f"{checkpoint} does not contain {what}: it has no {file}.", "Choose a checkpoint that has it, by its step."
        )


def sha256(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
