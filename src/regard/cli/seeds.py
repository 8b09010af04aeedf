"""`regard train --seeds`: one run per seed, and the mean and standard deviation of their scores.

The command may be stopped and repeated: runs that are finished stay, one that was stopped is resumed.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.cli.options import check_option, whole_numbers
from regard.cli.terminal import Stages, decimal, note, print_json, print_table, shell_word, tell
from regard.cli.train_options import RunOptions
from regard.cli.training_view import follow, make_views
from regard.config import RunConfig
from regard.errors import RunError, TrainingError
from regard.evaluation.intervals import is_interval_end
from regard.evaluation.metrics import find_metric
from regard.models.presets import (
    FOR_FEW_TEXTS,
    FOR_MANY_PAIRS,
    decided_by_data,
    find_preset,
    left_open,
    model_config,
    resolved,
)
from regard.runs.folder import RunFolder
from regard.runtime import keep_freed_memory
from regard.training import run as training
from regard.training.events import Event, Finished
from regard.training.summary import RunSummary, summarise

Scores = Mapping[str, float | None]


def read_seeds(text: str) -> tuple[int, ...]:
    """Read what stands behind --seeds."""
    seeds = whole_numbers(text, option="--seeds")
    for seed in seeds:
        check_option("seed", seed, place="Each of --seeds")
    return seeds


def train_seeds(
    config: RunConfig, folder: Path, seeds: Sequence[int], where: RunOptions, *, vocabulary: Path | None
) -> int:
    """Train one run per seed, or finish those that are there, and report their scores.

    A seed whose training fails (by a NaN loss, for instance) leaves a gap in the table, and exit code 1.
    """
    folders = {seed: folder.with_name(f"{folder.name}-seed{seed}") for seed in seeds}
    for seed, path in folders.items():
        refuse_other_run(path, dataclasses.replace(config, seed=seed))  # now, not after hours
    reached: dict[int, Finished | None] = {}
    for seed, path in folders.items():
        if not where.json:
            tell(f"seed {seed} of {', '.join(map(str, seeds))}: {path}", style="bold")
        try:
            finished = finish(dataclasses.replace(config, seed=seed), path, where, vocabulary=vocabulary)
        except TrainingError as error:
            note(f"{path} is left as it is. {error.problem}")
            reached[seed] = None
            continue
        if finished.signal:
            tell(f"Repeat the command with --run {shell_word(folder)} to resume; finished runs stay.")
            return 128 + finished.signal
        reached[seed] = finished
    report(folders, reached, json=where.json)
    return 1 if None in reached.values() else 0


def refuse_other_run(path: Path, config: RunConfig) -> None:
    """Refuse a folder that holds anything but a run of these very settings."""
    folder = RunFolder(path)
    if not folder.exists():
        RunFolder.new(path)
    elif not is_run_of(folder, config):
        raise RunError(
            f"{path} is a run with other settings.", "Repeat the command as it was, or name another folder with --run."
        )


def is_run_of(folder: RunFolder, config: RunConfig) -> bool:
    """Tell whether a run has these settings, to which training added absolute paths, threads and what follows the data."""
    found, wanted = folder.read_config(), training.with_absolute_paths(config)
    if found.model.preset != wanted.model.preset:
        return False
    decided = decided_by_data(find_preset(wanted.model.preset))
    suited = [entry for fields in (FOR_FEW_TEXTS, FOR_MANY_PAIRS) for entry in left_open(wanted.model, fields).items()]
    by_data = {name for name, value in suited if found.model.fields.get(name) == value}
    sizes = {name: found.model.fields[name] for name in {*decided, *by_data} if name in found.model.fields}
    model = resolved(wanted.model, model_config(wanted.model, origin="model", **sizes))
    threads = wanted.runtime.threads or found.runtime.threads
    runtime = dataclasses.replace(wanted.runtime, threads=threads)
    return found == dataclasses.replace(wanted, model=model, runtime=runtime)


def finish(config: RunConfig, path: Path, where: RunOptions, *, vocabulary: Path | None) -> Finished:
    """Bring one run to its end from where it stands, and show it."""
    folder = RunFolder(path)
    summary = summarise(folder) if folder.exists() else None
    if summary is not None and summary.end is not None and is_complete(summary):
        if not where.json:
            tell(f"already finished: {summary.end.reason}")
        return Finished(
            reason=summary.end.reason,
            limit=summary.end.limit,
            step=summary.step,
            seconds=summary.seconds,
            best=summary.best,
            average=summary.average,
        )

    def start(stages: Stages) -> Iterator[Event]:
        if summary is not None:
            return training.resume(path, progress=stages)
        return training.train(config, path, vocabulary=vocabulary, progress=stages)

    keep_freed_memory()
    return follow(start, make_views(path, json=where.json, tensorboard=where.tensorboard, advise=False))


def is_complete(summary: RunSummary) -> bool:
    """Tell whether nothing is left to do: a run can be stopped between its last update, its validation and the average."""
    validated = any(one.step == summary.step and one.scores for one in summary.checkpoints)
    averaged = bool(summary.average) or not summary.config.training.average
    return summary.end is not None and validated and averaged


def report(folders: Mapping[int, Path], reached: Mapping[int, Finished | None], *, json: bool) -> None:
    """Show what each seed reached, the mean and the deviation; averages of checkpoints where all have one."""
    ended = [one for one in reached.values() if one is not None and one.best]
    averaged = bool(ended) and all(one.average for one in ended)
    found = {seed: scores_of(one, averaged=averaged) for seed, one in reached.items()}
    names = list(dict.fromkeys(name for scores in found.values() for name in scores))
    columns = {name: [scores[name] for scores in found.values() if name in scores] for name in names}
    means = {name: statistics.fmean(values) for name, values in columns.items()}
    deviations = {name: statistics.stdev(values) if len(values) > 1 else None for name, values in columns.items()}
    if json:
        facts: dict[str, Any] = {"scores": found, "averaged": averaged, "mean": means, "deviation": deviations}
        print_json({"event": "seeds", **facts})
        return
    rows: dict[str, Scores] = {str(folders[seed]): scores for seed, scores in found.items()}
    rows |= {"mean": means, "standard deviation": deviations}
    print_table(
        ["average of checkpoints" if averaged else "best validation", *(find_metric(name).label for name in names)],
        [[label, *(decimal(scores.get(name), 3) for name in names)] for label, scores in rows.items()],
    )


def scores_of(finished: Finished | None, *, averaged: bool) -> dict[str, float]:
    """Return the scores of a run's average, or of its best validation; only those that are numbers."""
    if finished is None:
        return {}
    scores = finished.average if averaged else finished.best
    return {
        name: value
        for name, value in scores.items()
        if name != "step" and not is_interval_end(name) and _is_number(value)
    }


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
