"""A score: one number, the metric it is of, and the signature that makes it comparable with others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.evaluation.intervals import Interval
from regard.evaluation.metrics import Metric, find_metric
from regard.evaluation.table import Table


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number, what it measures, and under which settings (as sacreBLEU's signatures say it).

    interval: its 95 % confidence interval, where a formula has one
    """

    name: str
    value: float
    signature: str
    interval: Interval | None = field(default=None, compare=False)

    @property
    def metric(self) -> Metric:
        """What is to be known of the score beside its value."""
        return find_metric(self.name)

    @property
    def label(self) -> str:
        """The name as people write it."""
        return self.metric.label

    @property
    def text(self) -> str:
        """The value as people write it in a report of scores."""
        return self.metric.format(self.value, precise=True)

    def __str__(self) -> str:
        return f"{self.label} {self.text}{' %' if self.metric.percent else ''}"


def score_table(scores: Sequence[Score], *, beside: Mapping[str, Mapping[str, float]] | None = None) -> Table:
    """One row per score: its name, its value, what others have of it, by their names, and its signature."""
    others = beside or {}
    rows = [
        (
            score.label,
            score.text,
            *(
                score.metric.format(own[score.name], precise=True) if score.name in own else ""
                for own in others.values()
            ),
            score.signature,
        )
        for score in scores
    ]
    return Table(headings=("score", "value", *others, "signature"), rows=tuple(rows), left=(0, 2 + len(others)))


def scores_to_json(scores: Sequence[Score]) -> dict[str, dict[str, Any]]:
    """Value and signature of each score by its name."""
    return {score.name: {"value": score.value, "signature": score.signature} for score in scores}
