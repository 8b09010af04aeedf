"""`regard resume`: go on with a run that was stopped."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag
from regard.cli.terminal import busy
from regard.runs.folder import RunFolder


def resume(
    run: Annotated[str, Parameter(help="the folder of the run")],
    /,
    *,
    steps: Annotated[int | None, Parameter(help="move the end of the run to this step")] = None,
    tensorboard: Annotated[bool, Parameter(help="write scalars into RUN/tensorboard")] = False,
    json: JsonFlag = False,
) -> int:
    """Go on with a run that was stopped.

    Training goes on from the last whole checkpoint, to the same weights as if it had never stopped. The files that the
    run was trained on must not have changed.
    """
    RunFolder.open(run)  # a wrong name is told at once, before torch is loaded
    with busy("starting"):
        from regard.cli.training_view import follow, make_views
        from regard.runtime import keep_freed_memory
        from regard.training import run as training

    keep_freed_memory()
    views = make_views(Path(run), json=json, tensorboard=tensorboard)
    finished = follow(lambda stages: training.resume(run, steps=steps, progress=stages), views)
    return 128 + finished.signal if finished.signal else 0
