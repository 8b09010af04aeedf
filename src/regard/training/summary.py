"""The summary of a run, read from its folder alone: no model is built, no tensor library is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.config import RunConfig
from regard.errors import RunError
from regard.runs import metrics
from regard.runs.folder import RunFolder
from regard.runs.json_files import is_scores, read_json
from regard.runs.lock import holder
from regard.runs.names import MODEL, MOST_STATE, STATE, find
from regard.runs.tensor_header import read_header
from regard.training.state import TrainingState
from regard.training.stopping import End, reached_end


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
    average: Mapping[str, float]  # step and scores of the newest average, if it was validated, as at a run's end
    n_parameters: int | None  # None before the first checkpoint
    holder: str  # who trains it at this moment, as "PROCESS HOST"
    end: End | None  # why it is over, if it is
    changed: float  # when it last changed, in seconds since 1970
    imported: str = ""  # what it was before it was a run: CLASS of FOLDER

    @property
    def state(self) -> Literal["in training", "finished", "stopped", "imported"]:
        """Where the run stands, in a word."""
        if self.holder:
            return "in training"
        if self.imported:
            return "imported"
        return "finished" if self.end else "stopped"

    def to_json(self) -> dict[str, Any]:
        """What a list of runs says of it, as data that `json.dumps` takes."""
        return {
            "run": str(self.path),
            "task": self.config.task,
            "model": self.config.model.preset,
            "state": self.state,
            **({"imported": self.imported} if self.imported else {}),
            "step": self.step,
            "epoch": self.epoch,
            "seconds": self.seconds,
            "best": dict(self.best),
            "average": dict(self.average),
            "changed": self.changed,
        }


def summarise(run: RunFolder) -> RunSummary:
    """Read what a run is and has reached. Nothing is verified: that is done when a checkpoint is loaded."""
    run.refuse_links()
    config = run.read_config()
    steps, averages = find(run), find(run, kind="average")
    states = {step: _read_state(path) for step, path in steps.items()}
    newest = next((state for state in reversed(states.values()) if state is not None), TrainingState())
    cursor = newest.cursor
    found = [_checkpoint(path, step, _validation(states[step])) for step, path in steps.items()]
    found += [_checkpoint(path, step, {}) for step, path in averages.items()]
    listed = [checkpoint for checkpoint in found if checkpoint is not None]
    trained_by = holder(run)
    # Who trains it may be far beyond the last checkpoint; who resumes it goes on from there.
    live = metrics.newest(run) if trained_by else None
    files = [*steps.values(), *averages.values()]
    return RunSummary(
        path=run.path,
        config=config,
        checkpoints=tuple(listed),
        step=cursor.step if live is None else max(cursor.step, live["step"]),
        epoch=cursor.epoch if live is None else max(cursor.epoch, live.get("epoch") or 0),
        seconds=newest.seconds,
        best=newest.best,
        average=_average_scores(averages[max(averages)]) if averages else {},
        n_parameters=count_parameters(files[-1] / MODEL) if files else None,
        holder=trained_by,
        end=reached_end(
            config.training,
            step=cursor.step,
            epoch=cursor.epoch,
            seconds=newest.seconds,
            not_improved=newest.not_improved,
        ),
        changed=max(path.lstat().st_mtime for path in (run.config_file, run.metrics_file) if path.exists()),
        imported=_origin(run),
    )


def _origin(run: RunFolder) -> str:
    """Say what an imported run was; nothing for one that was trained here, or that does not tell."""
    try:
        origin = run.read_task().get("imported")
    except RunError:
        return ""
    return f"{origin.get('class')} of {origin.get('from')}" if isinstance(origin, dict) else ""


def count_parameters(file: Path) -> int | None:
    """Count the learned numbers of a safetensors file by its header; None if it has none."""
    try:
        return read_header(file).n_parameters
    except (OSError, ValueError):
        return None


def _read_state(checkpoint: Path) -> TrainingState | None:
    """Return a checkpoint's training state, None if it is damaged."""
    try:
        return TrainingState.from_json(read_json(checkpoint / STATE, most=MOST_STATE))
    except (OSError, ValueError, AttributeError):
        return None


def _validation(state: TrainingState | None) -> Mapping[str, float]:
    return (state.validation if state is not None else None) or {}


def _checkpoint(path: Path, step: int, scores: Mapping[str, float]) -> CheckpointSummary | None:
    """Look at one checkpoint; None if whoever trains the run has just deleted it."""
    try:
        n_bytes = sum(file.lstat().st_size for file in path.iterdir())
    except OSError:
        return None
    return CheckpointSummary(name=path.name, step=step, n_bytes=n_bytes, scores=scores)


def _average_scores(average: Path) -> Mapping[str, float]:
    """Return the scores that were written with an average; none if it was made without a validation."""
    try:
        state = read_json(average / STATE, most=MOST_STATE)
    except (OSError, ValueError):
        return {}
    scores = state.get("validation") if isinstance(state, dict) else None
    if not is_scores(scores) or "step" not in scores:
        return {}
    return {name: score for name, score in scores.items() if score is not None}
