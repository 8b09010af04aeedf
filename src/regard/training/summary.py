"""The summary of a run, read from its folder alone: no model is built, no tensor library is loaded."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.config import RunConfig
from regard.runs import metrics
from regard.runs.folder import RunFolder
from regard.runs.lock import holder
from regard.runs.names import MODEL, STATE, find
from regard.training.state import TrainingState
from regard.training.stopping import stop_reason


@dataclass(frozen=True, kw_only=True)
class CheckpointSummary:
    """One checkpoint on the disk; `scores` are those of a validation at its very step, if there was one."""

    name: str
    step: int
    n_bytes: int
    scores: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run as its folder shows it."""

    path: Path
    config: RunConfig
    checkpoints: tuple[CheckpointSummary, ...]  # the steps in order, then averages
    step: int
    epoch: int
    seconds: float  # how long it was trained
    best: Mapping[str, float]  # step, loss and scores of the best validation
    average: Mapping[str, float]  # scores of the average that was made at the run's end, if one was
    n_parameters: int | None  # None before the first checkpoint
    holder: str  # who trains it at this moment, as "PROCESS HOST"
    stop_reason: str  # why it is over, if it is
    changed: float  # when it last changed, in seconds since 1970

    @property
    def state(self) -> Literal["in training", "finished", "stopped"]:
        """Where the run stands, in a word."""
        if self.holder:
            return "in training"
        return "finished" if self.stop_reason else "stopped"

    def to_json(self) -> dict[str, Any]:
        """What a list of runs says of it, as data that `json.dumps` takes."""
        return {
            "run": str(self.path),
            "task": self.config.task,
            "model": self.config.model.preset,
            "state": self.state,
            "step": self.step,
            "epoch": self.epoch,
            "seconds": self.seconds,
            "best": dict(self.best),
            "average": dict(self.average),
            "changed": self.changed,
        }


def summarise(run: RunFolder) -> RunSummary:
    """Read what a run is and has reached. Nothing is verified: that is done when a checkpoint is loaded."""
    config = run.read_config()
    steps, averages = find(run), find(run, kind="average")
    states = {step: _read_state(path) for step, path in steps.items()}
    newest = next((state for state in reversed(states.values()) if state is not None), TrainingState())
    cursor = newest.cursor
    found = [_checkpoint(path, step, _validation(states[step])) for step, path in steps.items()]
    found += [_checkpoint(path, step, {}) for step, path in averages.items()]
    listed = [checkpoint for checkpoint in found if checkpoint is not None]
    files = [*steps.values(), *averages.values()]
    return RunSummary(
        path=run.path,
        config=config,
        checkpoints=tuple(listed),
        step=cursor.step,
        epoch=cursor.epoch,
        seconds=newest.seconds,
        best=newest.best,
        average=_average_scores(run) if averages else {},
        n_parameters=count_parameters(files[-1] / MODEL) if files else None,
        holder=holder(run),
        stop_reason=stop_reason(
            config.training,
            step=cursor.step,
            epoch=cursor.epoch,
            seconds=newest.seconds,
            not_improved=newest.not_improved,
        ),
        changed=max(path.stat().st_mtime for path in (run.config_file, run.metrics_file) if path.exists()),
    )


def count_parameters(file: Path) -> int | None:
    """Count the numbers of a safetensors file by its header, in which tied weights stand once; None if it has none."""
    try:
        with file.open("rb") as stream:
            # The format: the length of the header in 8 bytes, the header as JSON, the tensors.
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        return sum(int(math.prod(entry["shape"])) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError):
        return None


def _read_state(checkpoint: Path) -> TrainingState | None:
    """Return a checkpoint's training state, None if it is damaged."""
    try:
        return TrainingState.from_json(json.loads((checkpoint / STATE).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _validation(state: TrainingState | None) -> Mapping[str, float]:
    return (state.validation if state is not None else None) or {}


def _checkpoint(path: Path, step: int, scores: Mapping[str, float]) -> CheckpointSummary | None:
    """Look at one checkpoint; None if whoever trains the run has just deleted it."""
    try:
        n_bytes = sum(file.stat().st_size for file in path.iterdir())
    except FileNotFoundError:
        return None
    return CheckpointSummary(name=path.name, step=step, n_bytes=n_bytes, scores=scores)


def _average_scores(run: RunFolder) -> dict[str, float]:
    records = [record for record in metrics.read(run) if record.get("kind") == "average"]
    return {key: value for key, value in records[-1].items() if key not in ("kind", "steps")} if records else {}
