"""`regard average`: the mean of several checkpoints' weights."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag, whole_numbers
from regard.cli.terminal import busy, print_json, print_lines, shell_word, tell
from regard.errors import UsageError
from regard.runs.folder import RunFolder


def average(
    run: Annotated[str, Parameter(help="the folder of the run")],
    /,
    *,
    last: Annotated[int | None, Parameter(help="how many of the newest checkpoints to average")] = None,
    steps: Annotated[str, Parameter(metavar="N,N…", help="the steps of the checkpoints to average")] = "",
    json: JsonFlag = False,
) -> None:
    """Average the weights of several checkpoints of a run, which is often better than any of them.

    RUN@average then names it, and so does the run's plain name, if no checkpoint is newer; RUN@best and RUN@last stay
    what they were.
    """
    if (last is None) == (not steps):
        raise UsageError(
            "An average needs either --last or --steps.", f"For example: regard average {shell_word(run)} --last 5"
        )
    chosen = whole_numbers(steps, option="--steps") if steps else None
    RunFolder.open(run)
    with busy("averaging"):
        from regard import api
        from regard.runs.selection import candidates

        checkpoint = api.average(run, last=last, steps=chosen)
        is_plain = candidates(RunFolder(Path(run)), None)[0] == checkpoint.path
    averaged = checkpoint.facts["averaged"]
    if json:
        print_json({"run": run, "checkpoint": str(checkpoint.path), "steps": averaged})
        return
    names = f"{run} and {run}@average now name" if is_plain else f"{run}@average now names"
    tell(f"Averaged steps {', '.join(map(str, averaged))}; {names} the result:")
    print_lines([str(checkpoint.path)])
