"""`regard runs`: what there is."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag
from regard.cli.scores import Scores, score_cell, telling_score
from regard.cli.terminal import duration, note, print_json, print_table, tell
from regard.errors import RegardError, UsageError
from regard.runs.folder import find_runs
from regard.training.summary import RunSummary, summarise


def runs(
    folder: Annotated[str, Parameter(help="where to look, with all folders inside it (runs)")] = "runs",
    /,
    *,
    json: JsonFlag = False,
) -> None:
    """List runs and what they reached."""
    if not Path(folder).is_dir():
        raise UsageError(f"There is no folder {folder}.", "Name the folder that holds your runs, or begin: regard demo")
    found: list[RunSummary] = []
    for run in find_runs(folder):
        try:
            found.append(summarise(run))
        except RegardError as error:
            note(f"{run} is left out. {error.problem}")
    if json:
        for one in found:
            print_json(one.to_json())
        return
    if not found:
        tell(f"There is no run in {folder}. Train one: regard train translate --train FILE FILE, or: regard demo")
        return
    averages = any(one.average for one in found)
    headings = ["run", "task", "model", "state", "step", "loss", "score"]
    headings += ["loss of average", "score of average"] if averages else []
    print_table([*headings, "age"], [_cells(one, averages=averages) for one in found], left=(0, 1, 2, 3))


def _cells(summary: RunSummary, *, averages: bool) -> list[str]:
    config = summary.config
    scores = [*_scores(summary.best), *(_scores(summary.average) if averages else ())]
    age = duration(max(0.0, time.time() - summary.changed))
    return [str(summary.path), config.task, config.model.preset, summary.state, f"{summary.step:,}", *scores, age]


def _scores(scores: Scores) -> list[str]:
    return [score_cell(scores, "loss"), telling_score(scores)]
