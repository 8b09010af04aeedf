"""`regard show`: what a run is and what it reached."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from regard.cli.options import JsonFlag
from regard.cli.scores import score_cell, scores_text
from regard.cli.terminal import (
    duration,
    print_facts,
    print_json,
    print_lines,
    print_table,
    results,
    size,
)
from regard.config import to_tables
from regard.evaluation.metrics import METRICS
from regard.runs.folder import Reference, RunFolder
from regard.runs.ranking import prefers_average
from regard.training.next_steps import how_to_resume
from regard.training.summary import CheckpointSummary, RunSummary, summarise


def show(
    run: Annotated[str, Parameter(help="the folder of the run")],
    /,
    *,
    json: JsonFlag = False,
) -> None:
    """Show what a run is and what it reached."""
    summary = summarise(RunFolder.open(Reference.parse(run).path))
    if json:
        checkpoints = [dataclasses.asdict(one) for one in summary.checkpoints]
        more = {"parameters": summary.n_parameters, "config": to_tables(summary.config), "checkpoints": checkpoints}
        print_json({**summary.to_json(), **more})
        return
    print_facts(rows(summary), results())
    if summary.checkpoints:
        print_lines([""])
        names = dict.fromkeys(name for one in summary.checkpoints for name in one.scores if name != "step")
        shown = [name for name in METRICS if name in names]
        headings = ["checkpoint", "size", *(METRICS[name].label for name in shown), ""]
        cells = [_cells(summary, one, shown) for one in summary.checkpoints]
        print_table(headings, cells, left=(0, len(headings) - 1))


def rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the run's facts as labels and texts."""
    config, training = summary.config, summary.config.training
    parameters = f", {summary.n_parameters:,} parameters" if summary.n_parameters is not None else ""
    of = f" of {training.steps:,}" if training.steps else ""
    time_taken = "" if summary.holder else f", {duration(summary.seconds)} of training"  # known at checkpoints
    reached = f"step {summary.step:,}{of}, epoch {summary.epoch:,}{time_taken}"
    facts = [
        ("run", str(summary.path)),
        ("task", config.task),
        ("model", f"{config.model.preset or 'a custom network'}{parameters}"),
        *(_learned(summary) if not summary.imported else [("imported", summary.imported)]),
        ("state", _state(summary)),
        *([("reached", reached)] if not summary.imported else []),
        ("changed", f"{duration(max(0.0, time.time() - summary.changed))} ago"),
    ]
    if summary.best:
        facts.append(("best", f"step {summary.best['step']:,}: {scores_text(summary.best, intervals=True)}"))
    if summary.average:
        # An average that the run has been trained beyond is meant by @average only.
        is_current = summary.average["step"] >= summary.step
        is_meant = is_current and prefers_average(summary.average, summary.best, training.best_by)
        meant = f"; {summary.path} names it" if is_meant else ""
        facts.append(("average", f"{scores_text(summary.average, intervals=True)}{meant}"))
    return facts


def _learned(summary: RunSummary) -> list[tuple[str, str]]:
    """What the run learns from."""
    config = summary.config
    return [
        ("training", ", ".join(config.data.train)),
        ("validation", ", ".join(config.data.valid) or "held out of the training files"),
        *([("init from", config.training.init)] if config.training.init else []),
    ]


def _state(summary: RunSummary) -> str:
    if summary.imported and not summary.holder:
        return f"imported; fine-tune it with: regard train TASK --init {summary.path} --train FILE…"
    if summary.holder:
        process, _, host = summary.holder.partition(" ")
        return f"in training by process {process} on {host}" if host else "in training"
    if summary.end:
        return f"finished: {summary.end.reason}"
    return f"stopped; resume it with: {how_to_resume(str(summary.path), summary.config)}"


def _cells(summary: RunSummary, checkpoint: CheckpointSummary, shown: Sequence[str]) -> list[str]:
    scores = [score_cell(checkpoint.scores, name) for name in shown]
    best = "★ best" if checkpoint.scores and checkpoint.step == summary.best.get("step") else ""
    return [checkpoint.name, size(checkpoint.n_bytes), *scores, best]
