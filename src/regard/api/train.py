"""New runs, and runs that go on. `training` is imported where something is trained: using a run needs none of it."""

import itertools
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from torch import nn

from regard.api.new_run import assemble
from regard.api.progress import progress_bar
from regard.api.run import Files, file_names, load
from regard.config.keywords import RunSettings, dotted
from regard.runs import averaging
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import RunFolder
from regard.runs.lock import locked

if TYPE_CHECKING:
    from regard.training.events import Event

Watch = Callable[["Event"], None]


def train(
    task: str | Path,
    *,
    run: str | Path,
    train: Files = (),
    valid: Files = (),
    model: str | nn.Module = "",
    settings: Mapping[str, Any] | None = None,
    vocabulary: str | Path | None = None,
    progress: bool | None = None,
    watch: Watch | None = None,
    **named: Unpack[RunSettings],
) -> Any:
    """Train a new run to its end and return it, ready for use, as `regard.load` does.

    task:        a task's name, or a run file; the config.toml of a run repeats that run, with its vocabulary
    model:       a preset's name, or a network of your own
    settings:    keys of a run file by their dotted names, such as {"model.d_model": 256}; common ones also by their plain
                 names: steps=400, learning_rate=0.001. With init="runs/x" the run begins with the vocabulary and the
                 weights of another, and with its model if none is named
    vocabulary:  another run, whose vocabulary is taken
    progress:    show how the training goes; by default on a terminal and in a notebook
    watch:       called with every event
    """
    from regard.training import run as training
    from regard.training.events import Noted

    files = {"data.train": file_names(train), "data.valid": file_names(valid)}
    given = {key: names for key, names in files.items() if names}
    own = model if isinstance(model, nn.Module) else None
    new = assemble(
        str(task),
        {**given, **dotted(named, origin="regard.train"), **(settings or {})},
        model=model if isinstance(model, str) else "",
        vocabulary=vocabulary,
        own_network=own is not None,
        origin="regard.train",
    )
    notes = [Noted(text=text) for text in new.notes]
    events = training.train(new.config, run, model=own, vocabulary=new.vocabulary)
    _follow(itertools.chain(notes, events), watch, progress)
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


def average(run: str | Path, *, last: int | None = None, steps: Sequence[int] | None = None) -> Checkpoint:
    """Average the weights of the last checkpoints of a run (or of the given steps); `RUN@average` is the result."""
    folder = RunFolder.open(Path(run))
    with locked(folder):
        return averaging.average(folder, last=last, steps=steps)
