"""`regard train`: a new run from files, or from a run file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.launch import is_launched, launch, refuse_before_launch
from regard.cli.run_file import free_folder, new_run
from regard.cli.terminal import Stages, busy, note, print_facts, print_json, results, shows
from regard.cli.train_options import TASK, DataOptions, LearningOptions, ModelOptions, RunOptions
from regard.config import RunConfig
from regard.runs.folder import RunFolder

if TYPE_CHECKING:
    from regard.training.events import Finished


def train(
    what: Annotated[str, Parameter(name=TASK, help="a task, or a run file (FILE.toml)")],
    /,
    *,
    data: DataOptions | None = None,
    model: ModelOptions | None = None,
    learning: LearningOptions | None = None,
    run: RunOptions | None = None,
) -> int:
    """Train a new model on your files.

    Only --train is required: good defaults are chosen, shown, and written into the run's config.toml, from which
    `regard train DIR/config.toml` repeats the run. Ctrl-C saves before it stops; `regard resume DIR` continues.
    """
    where = run or RunOptions()
    with busy("starting"):
        new = new_run(
            what, data or DataOptions(), model or ModelOptions(), learning or LearningOptions(), sets=where.set
        )
    folder = Path(where.run) if where.run else free_folder(new.config)
    if where.processes is not None or is_launched():
        refuse_before_launch(where)
    if where.processes is not None:
        if not where.dry_run:
            RunFolder.new(folder)  # what is wrong with the name is told before anything is started
        return launch(where.processes, ["--run", str(folder)] if not where.run else [])
    for text in new.notes if shows() else ():
        note(text)
    if where.dry_run:
        return report_only(new.config, folder, vocabulary=new.vocabulary, json=where.json)
    if where.seeds:
        from regard.cli.seeds import read_seeds, train_seeds

        return train_seeds(new.config, folder, read_seeds(where.seeds), where, vocabulary=new.vocabulary)
    finished = train_one(new.config, folder, where, vocabulary=new.vocabulary)
    return 128 + finished.signal if finished.signal else 0


def report_only(config: RunConfig, folder: Path, *, vocabulary: Path | None, json: bool) -> int:
    """Show what is known before the first step, as a result."""
    from regard.cli.training_report import report_rows
    from regard.cli.training_view import event_fields
    from regard.training import run as training
    from regard.training.events import Report

    stages = Stages(unit="lines", others={"decoding": "images"})
    try:
        [report] = training.train(config, folder, vocabulary=vocabulary, dry_run=True, progress=stages)
    finally:
        stages.close()
    if not isinstance(report, Report):
        return 0  # another process reports
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
