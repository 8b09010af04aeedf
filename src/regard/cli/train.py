"""`regard train`: a new run from files, or from a run file."""

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.options import whole_numbers
from regard.cli.run_file import free_folder, settings
from regard.cli.terminal import Stages, busy, print_facts, print_json, print_table, results, tell
from regard.cli.train_options import DataOptions, LearningOptions, ModelOptions, RunOptions
from regard.config import RunConfig
from regard.runs.folder import RunFolder

if TYPE_CHECKING:
    from regard.training.events import Finished


def train(
    what: Annotated[str, Parameter(name="TASK", help="a task (translate), or a run file (FILE.toml)")],
    /,
    *,
    data: DataOptions | None = None,
    model: ModelOptions | None = None,
    learning: LearningOptions | None = None,
    run: RunOptions | None = None,
) -> int:
    """Train a new model on your files.

    No option but --train is needed: good defaults are chosen, shown, and written into the run's config.toml, from which
    `regard train DIR/config.toml` repeats the run. Ctrl-C saves before it stops; `regard resume DIR` goes on.
    """
    where = run or RunOptions()
    with busy("starting"):
        config, vocabulary = settings(what, data or DataOptions(), model or ModelOptions(), learning, where.set)
    folder = Path(where.run) if where.run else free_folder(config)
    if where.dry_run:
        return report_only(config, folder, vocabulary=vocabulary, json=where.json)
    if where.seeds:
        seeds = whole_numbers(where.seeds, option="--seeds")
        return train_seeds(config, folder, seeds, where, vocabulary=vocabulary)
    finished = train_one(config, folder, where, vocabulary=vocabulary)
    return 128 + finished.signal if finished.signal else 0


def report_only(config: RunConfig, folder: Path, *, vocabulary: Path | None, json: bool) -> int:
    """Show what is known before the first step, as a result."""
    from regard.cli.training_report import report_rows
    from regard.cli.training_view import event_fields
    from regard.training import run as training
    from regard.training.events import Report

    stages = Stages(unit="pairs")
    try:
        [report] = training.train(config, folder, vocabulary=vocabulary, dry_run=True, progress=stages)
    finally:
        stages.close()
    assert isinstance(report, Report)
    if json:
        print_json({"event": "report", **event_fields(report)})
    else:
        print_facts(report_rows(report), results())
    return 0


def train_one(config: RunConfig, folder: Path, where: RunOptions, *, vocabulary: Path | None) -> "Finished":
    """Train one run to its end, and show it."""
    from regard.cli.training_view import follow, make_views
    from regard.runtime import keep_freed_memory
    from regard.training import run as training

    keep_freed_memory()
    views = make_views(folder, json=where.json, tensorboard=where.tensorboard)
    return follow(lambda stages: training.train(config, folder, vocabulary=vocabulary, progress=stages), views)


def train_seeds(
    config: RunConfig, folder: Path, seeds: Sequence[int], where: RunOptions, *, vocabulary: Path | None
) -> int:
    """Train a run a seed, and report mean and deviation of their best validations."""
    folders = {seed: folder.with_name(f"{folder.name}-seed{seed}") for seed in seeds}
    for one in folders.values():
        RunFolder.new(one)  # a name that is taken is told now, not after hours
    found: dict[int, dict[str, float]] = {}
    for seed, one in folders.items():
        if not where.json:
            tell(f"seed {seed} of {', '.join(map(str, seeds))}: {one}", style="bold")
        finished = train_one(dataclasses.replace(config, seed=seed), one, where, vocabulary=vocabulary)
        if finished.signal:
            return 128 + finished.signal
        found[seed] = {name: value for name, value in finished.best.items() if name != "step"}
    from regard.evaluation.scores import LABELS

    names = list(next(iter(found.values())))
    columns = {name: [scores[name] for scores in found.values()] for name in names}
    means = {name: statistics.fmean(values) for name, values in columns.items()}
    deviations = {name: statistics.stdev(values) if len(seeds) > 1 else 0.0 for name, values in columns.items()}
    if where.json:
        print_json({"event": "seeds", "scores": found, "mean": means, "deviation": deviations})
        return 0
    rows = [[str(folders[seed]), *(f"{value:.3f}" for value in scores.values())] for seed, scores in found.items()]
    rows.append(["mean", *(f"{value:.3f}" for value in means.values())])
    rows.append(["standard deviation", *(f"{value:.3f}" for value in deviations.values())])
    print_table(["best validation", *(LABELS.get(name, name) for name in names)], rows)
    return 0
