"""`regard resume`: training of a run that was stopped, continued."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from regard.cli.launch import launch
from regard.cli.options import JsonFlag, check_option, explained
from regard.cli.run_file import assignments
from regard.cli.terminal import busy
from regard.config import TrainingConfig
from regard.runs.folder import RunFolder

END = Group("End", "A finished run is trained further if the limit that ended it is raised.", sort_key=10)


def resume(
    run: Annotated[str, Parameter(help="the folder of the run")],
    /,
    *,
    steps: Annotated[
        int | None,
        Parameter(group=END, help="maximum number of updates in all; drops limits by epochs and minutes unless given"),
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
    processes: Annotated[
        int | None, Parameter(help="processes of this machine that share each batch, started by torchrun")
    ] = None,
    tensorboard: Annotated[bool, Parameter(help="write scalars into RUN/tensorboard")] = False,
    json: JsonFlag = False,
) -> int:
    """Resume a run that was stopped.

    Training continues from the last intact checkpoint, to the same weights as if it had never stopped. The files that the
    run was trained on must not have changed. Settings given here are written into its config.toml.
    """
    RunFolder.open(run)  # a wrong name is told at once, before torch is loaded
    if processes is not None:
        return launch(processes)
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
        check_option(f"training.{name}", value)
    gone = {"epochs": 0, "minutes": 0} if steps else {}
    return {**{f"training.{name}": value for name, value in {**gone, **given}.items()}, **assignments(sets)}
