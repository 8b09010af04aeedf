"""New runs, and runs that go on. `training` is imported where something is trained: using a run needs none of it."""

import dataclasses
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from regard import config as configuration
from regard.api.run import Run, load
from regard.config import ModelTable, RunConfig
from regard.models.presets import default_preset
from regard.runs import averaging
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.tasks.spec import find_spec

if TYPE_CHECKING:
    from regard.training.events import Event

Files = str | Path | Sequence[str | Path]
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
    watch: Watch = lambda event: None,
) -> Run | nn.Module:
    """Train a new run to its end and return it, ready for use.

    model: a preset's name, or a network of your own (which is returned itself, trained)
    settings: dotted keys of a run file, such as {"training.steps": 400}; {"training.init": "runs/x"} begins with the
        vocabulary and the weights of another run, and with its model if none is named
    vocabulary: another run, whose vocabulary is taken
    watch: called with every event
    """
    from regard.training import init_from
    from regard.training import run as training

    tables = {"task": task, "data": {"train": _names(train), "valid": _names(valid)}}
    given = {**({"model.preset": model} if isinstance(model, str) and model else {}), **(settings or {})}
    config = configuration.override(
        configuration.from_tables(tables, origin="regard.train"), given, origin="regard.train"
    )
    own = model if isinstance(model, nn.Module) else None
    config = with_defaults(config) if own is None else dataclasses.replace(with_end(config), model=ModelTable())
    ready = RunFolder.open(vocabulary).vocabulary if vocabulary is not None else None
    config, ready = init_from.with_vocabulary(config, ready)
    _follow(training.train(config, run, model=own, vocabulary=ready), watch)
    loaded = load(run, model=own)
    return loaded if own is None else own


def resume(
    run: str | Path,
    *,
    model: nn.Module | None = None,
    settings: Mapping[str, Any] | None = None,
    watch: Watch = lambda event: None,
) -> Run:
    """Go on with a run that was stopped, to its end; `model` if it trains a network of your own.

    settings: what is changed for good, such as {"training.steps": 8000} to move the end
    """
    from regard.training import run as training

    _follow(training.resume(run, model=model, settings=settings), watch)
    return load(run, model=model)


def _follow(events: Iterable["Event"], watch: Watch) -> None:
    """Show every event; a signal that stopped the run, which is saved by then, reaches the caller after all."""
    from regard.training.events import Finished

    stopped = 0
    for event in events:
        watch(event)
        if isinstance(event, Finished):
            stopped = event.signal
    if stopped:
        signal.raise_signal(stopped)


def _names(files: Files) -> list[str]:
    """Return one file or several as a list of names."""
    return [os.fspath(file) for file in ([files] if isinstance(files, str | Path) else files)]


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
