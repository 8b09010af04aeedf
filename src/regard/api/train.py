"""New runs, and runs that go on. `training` is imported where something is trained: using a run needs none of it."""

import dataclasses
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from torch import nn

from regard import config as configuration
from regard.api.progress import progress_bar
from regard.api.run import Files, file_names, load
from regard.config import ModelTable, RunConfig
from regard.config.keywords import RunSettings, dotted
from regard.models.presets import default_preset
from regard.runs import averaging
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.tasks.spec import find_spec

if TYPE_CHECKING:
    from regard.training.events import Event

Watch = Callable[["Event"], None]


def train(
    task: str,
    *,
    train: Files,
    run: str | Path,
    valid: Files = (),
    model: str | nn.Module = "",
    settings: Mapping[str, Any] | None = None,
    vocabulary: str | Path | None = None,
    progress: bool | None = None,
    watch: Watch | None = None,
    **named: Unpack[RunSettings],
) -> Any:
    """Train a new run to its end and return it, ready for use, as `regard.load` does.

    model:       a preset's name, or a network of your own
    settings:    keys of a run file by their dotted names, such as {"model.d_model": 256}; common ones also by their plain
                 names: steps=400, learning_rate=0.001. With init="runs/x" the run begins with the vocabulary and the
                 weights of another, and with its model if none is named
    vocabulary:  another run, whose vocabulary is taken
    progress:    show how the training goes; by default on a terminal and in a notebook
    watch:       called with every event
    """
    from regard.training import init_from
    from regard.training import run as training

    tables = {"task": task, "data": {"train": file_names(train), "valid": file_names(valid)}}
    given = {"model.preset": model} if isinstance(model, str) and model else {}
    given |= {**dotted(named, origin="regard.train"), **(settings or {})}
    config = configuration.override(
        configuration.from_tables(tables, origin="regard.train"), given, origin="regard.train"
    )
    own = model if isinstance(model, nn.Module) else None
    config = with_defaults(config) if own is None else dataclasses.replace(with_end(config), model=ModelTable())
    ready = RunFolder.open(vocabulary).vocabulary if vocabulary is not None else None
    config, ready = init_from.with_vocabulary(config, ready)
    _follow(training.train(config, run, model=own, vocabulary=ready), watch, progress)
    return load(run, model=own)


def resume(
    run: str | Path,
    *,
    model: nn.Module | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    watch: Watch | None = None,
    **named: Unpack[RunSettings],
) -> Any:
    """Resume a run that was stopped, to its end, and return it; `model` if it trains a network of your own.

    What is changed for good goes by name, such as steps=8000 to move the end, or in `settings` by dotted keys.
    """
    from regard.training import run as training

    given = {**dotted(named, origin="regard.resume"), **(settings or {})}
    _follow(training.resume(run, model=model, settings=given), watch, progress)
    return load(run, model=model)


def _follow(events: "Iterable[Event]", watch: Watch | None, progress: bool | None) -> None:
    """Show every event; a signal that stopped the run, which is saved by then, reaches the caller after all."""
    from regard.training.events import Finished

    stopped = 0
    with progress_bar(show=progress) as bar:
        for event in events:
            bar(event)
            if watch is not None:
                watch(event)
            if isinstance(event, Finished):
                stopped = event.signal
    if stopped:
        signal.raise_signal(stopped)


def with_defaults(config: RunConfig) -> RunConfig:
    """Choose what a user need not say: the model, an end for the run, and a schedule that fits the end."""
    from regard.training import init_from

    config = init_from.with_model(config)
    if not config.model.preset:
        preset = default_preset(config.task)
        config = dataclasses.replace(config, model=dataclasses.replace(config.model, preset=preset))
    return with_end(config)


def with_end(config: RunConfig) -> RunConfig:
    """Choose an end for the run, if it has none, and a schedule that fits the end."""
    end = config.training
    if not (end.steps or end.epochs or end.minutes):
        for key, value in find_spec(config.task).end.items():
            chosen: dict[str, Any] = {key: getattr(end, key) or value}
            end = dataclasses.replace(end, **chosen)
    if end.schedule == "auto":
        # By the clock nobody knows which step will be the last, and so not how far a cosine has to be down.
        end = dataclasses.replace(end, schedule="cosine" if end.steps or end.epochs else "constant")
    return dataclasses.replace(config, training=end)


def average(run: str | Path, *, last: int | None = None, steps: Sequence[int] | None = None) -> Checkpoint:
    """Average the weights of the last checkpoints of a run (or of the given steps); `RUN@average` is the result."""
    folder = RunFolder.open(Path(run))
    with locked(folder):
        return averaging.average(folder, last=last, steps=steps)
