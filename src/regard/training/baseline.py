"""Baselines in training: learned once, before the first step, and kept in the run's folder; resumed, it has the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.config import RunConfig
from regard.evaluation.baselines.verdict import ScoredBaseline, Verdict, judge
from regard.runs.folder import RunFolder
from regard.runs.ranking import prefers_average
from regard.tasks.baselines import RunBaselines
from regard.tasks.options import Progress
from regard.tasks.task import Prepared


def learn_baselines(prepared: Prepared, config: RunConfig, progress: Progress) -> RunBaselines:
    """Learn the baselines of a new run, and score them on its validation data."""
    progress("learning baselines", 0)
    n_samples = config.training.validate_samples
    return RunBaselines.fit(prepared.task, prepared.train, prepared.valid, n_samples=n_samples)


def kept_baselines(
    run: RunFolder, prepared: Prepared, config: RunConfig, progress: Progress
) -> tuple[RunBaselines, list[str]]:
    """Read the baselines of a run that goes on, and what is to be told; learn them where there are none, or damaged ones."""
    notes: list[str] = []
    try:
        return RunBaselines.load(run.baseline_file, prepared.task), notes
    except FileNotFoundError:
        pass  # a run of an older version
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        notes.append(f"{run.baseline_file} is damaged: {reason}. The baselines are learned anew.")
    baselines = learn_baselines(prepared, config, progress)
    baselines.save(run.baseline_file, prepared.task)
    return baselines, notes


def judge_run(
    best: Mapping[str, Any], average: Mapping[str, Any], baselines: Sequence[ScoredBaseline], config: RunConfig
) -> Verdict | None:
    """Put what a run has reached beside its baselines: the average of its checkpoints where that is what it means."""
    best_by = config.training.best_by
    meant = average if average and prefers_average(average, best, best_by) else best
    return judge(meant, baselines, best_by=best_by)
