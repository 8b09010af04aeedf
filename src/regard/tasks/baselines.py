"""The baselines of a run: learned from a bounded sample of its examples, scored as its model is, kept in its folder.

Which ones fit a task, and what they read of its examples, is in the task's own file: `baseline_kinds`, `fit_baselines`,
`score_baseline` (`tasks/task.py`). How they learn is in `evaluation/baselines/`. Nothing here is drawn at random.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.config import RunConfig
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.verdict import ScoredBaseline, Verdict
from regard.evaluation.scores import Score
from regard.regular_files import MEGABYTE
from regard.runs.arrays import load_arrays, save_arrays
from regard.runs.json_files import is_scores
from regard.tasks.spec import find_spec
from regard.tasks.task import Examples, Task

MOST_FILE = 64 * MEGABYTE


@dataclass(frozen=True, kw_only=True)
class RunBaselines:
    """What was learned, and the scores of each on the validation data."""

    fitted: tuple[Baseline, ...]
    scored: tuple[ScoredBaseline, ...]

    @classmethod
    def fit(cls, task: Task, train: Examples, valid: Examples, *, n_samples: int) -> "RunBaselines":
        """Learn the baselines of a task, and score them as its model will be; without any score they are no use."""
        fitted = tuple(task.fit_baselines(train))
        scored = (scored_baseline(one, task.score_baseline(one, valid, n_samples=n_samples)) for one in fitted)
        return cls(fitted=fitted, scored=tuple(scored))

    @classmethod
    def load(cls, path: Path, task: Task) -> "RunBaselines":
        """Read what `save` wrote; OSError where it cannot be read, ValueError where it is damaged or of another task."""
        arrays, facts = load_arrays(path, most=MOST_FILE)
        if not isinstance(facts, dict) or facts.get("task") != task.spec.name:
            raise ValueError(f"it is not of the task {task.spec.name}")
        if not isinstance(facts.get("scores"), dict):
            raise ValueError("it has no scores")
        kinds = {kind.__name__: kind for kind in task.baseline_kinds}
        n_inputs, n_outputs = task.baseline_sizes
        fitted, scored = [], []
        for name, scores in facts["scores"].items():
            if name not in kinds or not is_scores(scores):
                raise ValueError(f"'{name}' is none of the task's baselines, or has no scores")
            own = {key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name}
            fitted.append(kinds[name].of_arrays(own, n_inputs=n_inputs, n_outputs=n_outputs))
            known = {metric: score for metric, score in scores.items() if score is not None}
            scored.append(ScoredBaseline(name=kinds[name].name, scores=known))
        return cls(fitted=tuple(fitted), scored=tuple(scored))

    def save(self, path: Path, task: Task) -> None:
        """Write them into a run's folder."""
        arrays = {f"{type(one).__name__}.{name}": array for one in self.fitted for name, array in one.arrays.items()}
        scores = {type(one).__name__: dict(own.scores) for one, own in zip(self.fitted, self.scored, strict=True)}
        save_arrays(path, arrays, facts={"task": task.spec.name, "scores": scores})


def scored_baseline(baseline: Baseline, scores: Sequence[Score]) -> ScoredBaseline:
    """A baseline with its scores; what is not defined, as the correlation with a constant, is none."""
    known = {score.name: score.value for score in scores if math.isfinite(score.value)}
    return ScoredBaseline(name=baseline.name, scores=known)


def score_baselines(task: Task, baselines: Sequence[Baseline], examples: Examples) -> tuple[ScoredBaseline, ...]:
    """Score baselines on all examples."""
    return tuple(scored_baseline(one, task.score_baseline(one, examples, n_samples=-1)) for one in baselines)


def advice(verdict: Verdict | None, config: RunConfig) -> tuple[str, ...]:
    """What is told of a run that does not beat its baseline, in two lines; nothing of another."""
    if verdict is None:
        return ()
    of_encoder = find_spec(config.task).head in ("sequence", "tokens", "none")
    init = "a pre-trained encoder" if of_encoder else "a run that has learned from more"
    return verdict.lines(init="" if config.training.init else init)
