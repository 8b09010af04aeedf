"""A model beside its baselines: which of them is the strongest, whether the model beats it, and what people read of that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.evaluation.metrics import Metric, find_metric, headline_metric

Scores = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class ScoredBaseline:
    """A baseline by its name, with its scores on some data, by theirs."""

    name: str
    scores: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Of the metric that counts, what the strongest baseline has, and what the model."""

    metric: Metric
    baseline: ScoredBaseline
    model: float

    @property
    def beaten(self) -> bool:
        """Whether the model is better than the baseline."""
        return _rank(self.metric, self.model) > _rank(self.metric, self.baseline.scores[self.metric.name])

    @property
    def claim(self) -> str:
        """What the baseline has: "naive Bayes has accuracy 78.4 %"."""
        return f"{self.baseline.name} has {_written(self.metric, self.baseline.scores, named=True)}"

    def lines(self, *, init: str) -> tuple[str, ...]:
        """Two lines on a model that does not beat its baseline: that, and what may help; `init`: what it may begin with."""
        if self.beaten:
            return ()
        own = _written(self.metric, {self.metric.name: self.model}, named=True)
        helps = ["more data", "more steps", "a smaller model", *([f"--init from {init}"] if init else [])]
        return (
            f"The model does not beat a simple baseline: it has {own}, and {self.claim}.",
            f"What may help: {', '.join(helps[:-1])} or {helps[-1]}.",
        )


def judge(model: Scores, baselines: Sequence[ScoredBaseline], *, best_by: str) -> Verdict | None:
    """Put a model's scores beside those of baselines on the same data; None where no score is known of both.

    best_by: the metric that counts; another where no baseline has it, as for translations the loss
    """
    known = [name for name, value in model.items() if value is not None]
    common = [name for name in known if any(name in one.scores for one in baselines)]
    metric = find_metric(best_by) if best_by in common else headline_metric(common)
    if metric is None and common:
        metric = find_metric(common[0])
    if metric is None:
        return None
    name = metric.name
    strongest = max((one for one in baselines if name in one.scores), key=lambda one: _rank(metric, one.scores[name]))
    return Verdict(metric=metric, baseline=strongest, model=float(model[name] or 0.0))


def baseline_fact(baselines: Sequence[ScoredBaseline], *, best_by: str) -> str:
    """What a report says of baselines: "naive Bayes: accuracy 78.4 % (majority class: 50.3 %)"; "" without any."""
    scored = {name: 0.0 for one in baselines for name in one.scores}
    if (found := judge(scored, baselines, best_by=best_by)) is None:
        return ""
    metric, first = found.metric, found.baseline
    others = [one for one in baselines if one is not first and metric.name in one.scores]
    rest = ", ".join(f"{one.name}: {_written(metric, one.scores)}" for one in others)
    return f"{first.name}: {_written(metric, first.scores, named=True)}{f' ({rest})' if rest else ''}"


def _rank(metric: Metric, value: float) -> float:
    return value if metric.higher_is_better else -value


def _written(metric: Metric, scores: Mapping[str, float], *, named: bool = False) -> str:
    percent = " %" if metric.percent else ""
    return f"{f'{metric.label} ' if named else ''}{metric.format(scores[metric.name])}{percent}"
