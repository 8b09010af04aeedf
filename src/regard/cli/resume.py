"""`regard resume`: go on with a run that was stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.options import JsonFlag, check_option, explained
from regard.cli.run_file import assignments
from regard.cli.terminal import busy
from regard.config import TrainingConfig
from regard.runs.folder import RunFolder

END = Group("End", "A run that is finished goes on when the end that it has met is moved.", sort_key=10)


def resume(
    run: Annotated[str, Parameter(help="the folder of the run")],
    /,
    *,
    steps: Annotated[
        int | None,
        Parameter(group=END, help="stop after so many updates in all; limits by epochs and minutes go unless given"),
    ] = None,
    epochs: Annotated[int | None, explained(TrainingConfig, "epochs", group=END)] = None,
    minutes: Annotated[float | None, explained(TrainingConfig, "minutes", group=END)] = None,
    patience: Annotated[int | None, explained(TrainingConfig, "patience", group=END)] = None,
    sets: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set", metavar="KEY=VALUE", help="a key of its config.toml under training or runtime; repeatable"
        ),
    ] = (),
    tensorboard: Annotated[bool, Parameter(help="write scalars into RUN/tensorboard")] = False,
    json: JsonFlag = False,
) -> int:
    """Go on with a run that was stopped.

    Training goes on from the last whole checkpoint, to the same weights as if it had never stopped. The files that the
    run was trained on must not have changed. Settings that are given here are changed for good, in its config.toml.
    """
    RunFolder.open(run)  # a wrong name is told at once, before torch is loaded
    settings = new_settings(steps=steps, epochs=epochs, minutes=minutes, patience=patience, sets=sets)
    with busy("starting"):
        from regard.cli.training_view import follow, make_views
        from regard.runtime import keep_freed_memory
        from regard.training import run as training

    keep_freed_memory()
    views = make_views(Path(run), json=json, tensorboard=tensorboard)
    finished = follow(lambda stages: training.resume(run, settings=settings, progress=stages), views)
    return 128 + finished.signal if finished.signal else 0


def new_settings(
    *,
    steps: int | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    patience: int | None = None,
    sets: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what the options change of a run's settings, by dotted key; --set has the last word.

    A number of steps is the whole end: a limit by epochs or minutes that the run had would be met before it.
    """
    limits = {"steps": steps, "epochs": epochs, "minutes": minutes, "patience": patience}
    given = {name: value for name, value in limits.items() if value is not None}
    for name, value in given.items():
        check_option(TrainingConfig, name, value)
    gone = {"epochs": 0, "minutes": 0} if steps else {}
    return {**{f"training.{name}": value for name, value in {**gone, **given}.items()}, **assignments(sets)}
