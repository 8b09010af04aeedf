"""An evaluation: the scores of a run on a test set, with what belongs to them; for every task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.evaluation.confusion_matrix import ConfusionMatrix
from regard.evaluation.scores import Score, score_table, scores_to_json
from regard.evaluation.sufficient_statistics import Statistics
from regard.evaluation.table import Table, records_to_csv
from regard.tasks.results import Result, Results


@dataclass(frozen=True, kw_only=True)
class Section:
    """A further table of an evaluation, such as scores by length; `data` is the same for `json.dumps`."""

    name: str
    table: Table | None
    data: Any


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What was generated for a test set: what was read, what was expected (one list, or several), what was written."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The scores of a run on a test set.

    count, unit:   how much was scored, and of what
    seconds:       that the model took
    statistics:    what each example adds to each metric, for paired tests; where asked for (`paired`)
    paired_unit:   what those examples are; throughput: what is counted per second and how much there is of it
    sections:      further tables: by length, per class, as blocks are ablated
    confusion:     which class was predicted for which
    predictions:   what the run says of each example, in their order, and what was `expected`
    generated:     the texts, where the task generates
    output:        the lines that --output writes; for a pair that was left out, an empty one
    baselines:     the same scores of what a model should beat, where the run has such
    advice:        two lines where the model does not beat them
    notes:         what a reader of the scores should know
    """

    scores: tuple[Score, ...]
    count: int
    unit: str
    seconds: float
    statistics: tuple[Statistics, ...] = ()
    paired_unit: str = ""
    throughput: tuple[str, int] | None = None
    sections: tuple[Section, ...] = ()
    confusion: ConfusionMatrix | None = None
    predictions: Results[Result] = field(default_factory=Results)
    expected: tuple[Any, ...] = ()
    generated: Generated | None = None
    output: tuple[str, ...] = ()
    baselines: tuple[ScoredBaseline, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, metric: str) -> float:
        """The value of a score by its name: `evaluation["bleu"]`."""
        return self.values[metric]

    @property
    def values(self) -> Mapping[str, float]:
        """The scores by name."""
        return {score.name: score.value for score in self.scores}

    def table(self) -> Table:
        """The scores with their signatures, and beside them those of baselines."""
        return score_table(self.scores, beside={one.name: one.scores for one in self.baselines})

    def lines(self) -> list[str]:
        """What a person sees: the scores, then the further tables."""
        shown = self.table().lines()
        for section in self.sections:
            if section.table is not None:
                shown += ["", *section.table.lines()]
        return shown

    def records(self) -> list[dict[str, Any]]:
        """One flat dict per score: `pandas.DataFrame(evaluation.records())`."""
        return [{"metric": one.name, "value": one.value, "signature": one.signature} for one in self.scores]

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the records as CSV, and write them to `path` if one is given."""
        return records_to_csv(self.records(), path)

    def to_json(self) -> dict[str, Any]:
        """All but the predictions, as data that `json.dumps` takes."""
        facts: dict[str, Any] = {
            self.unit: self.count,
            "seconds": self.seconds,
            f"{self.unit}_per_second": self.count / self.seconds if self.seconds else None,
            "scores": scores_to_json(self.scores),
        }
        if self.baselines:
            facts["baselines"] = {one.name: dict(one.scores) for one in self.baselines}
            facts["advice"] = self.advice
        facts |= {section.name: section.data for section in self.sections}
        return {**facts, "notes": self.notes}

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(map(str, self.scores))}; {self.count:,} {self.unit})"

    def _repr_html_(self) -> str:
        tables = [self.table(), *(section.table for section in self.sections if section.table is not None)]
        return "".join(table._repr_html_() for table in tables)
