"""Training events, which a run yields in order: a Report, then Updated, Validated, Saved and Noted, at last Finished."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.config import RunConfig
from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.runtime import Machine
from regard.tasks.task import Validation
from regard.training.loop import Update


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is known before the first step."""

    run: Path
    config: RunConfig
    machine: Machine
    facts: tuple[tuple[str, str], ...]
    n_parameters: int
    total_steps: int  # 0 if only time ends the run
    seconds_per_step: float
    checkpoint_bytes: int
    step: int  # where the run goes on from
    seconds: float  # how long it has trained so far
    example: str = ""  # what the command that uses the run may be given
    throughput_unit: str = "tokens"  # what is counted per second
    batch_unit: str = "tokens"  # what is counted in a batch


@dataclass(frozen=True, kw_only=True)
class Updated:
    """One update was made."""

    update: Update
    total_steps: int


@dataclass(frozen=True, kw_only=True)
class Validated:
    """The model was scored; `best` if nothing before was better. At the end, perhaps, the averaged weights were."""

    step: int
    validation: Validation
    best: bool
    averaged: tuple[int, ...] = ()  # the steps whose weights were averaged


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A checkpoint is on the disk."""

    step: int
    path: Path


@dataclass(frozen=True, kw_only=True)
class Noted:
    """Something the user should know, such as a damaged checkpoint that was skipped."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The run has ended: why, and the step, loss and scores of its best validation and of its average, if there is one.

    baselines: what a model should beat, on the same validation data
    """

    reason: str
    limit: str = ""  # the key of [training] whose limit is reached: steps, epochs, minutes or patience; "" for a signal
    step: int
    seconds: float
    best: Mapping[str, float]
    average: Mapping[str, float]
    baselines: tuple[ScoredBaseline, ...] = ()
    signal: int = 0  # the signal that ended it, if one did


Event = Report | Updated | Validated | Saved | Noted | Finished
