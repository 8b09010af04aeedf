"""Several language models on one text, side by side: size, speed, scores and their significance.

A text has no sentences to pair. What is paired are its documents or its stretches: the same for every model, however its
vocabulary cuts them. Returns facts, as a table of strings and as plain data; showing them is the caller's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.evaluation.report import Table, check_names, scores_as_json, significance_table
from regard.evaluation.scores import Score, score_of
from regard.evaluation.significance import SEED, Significance, compare_to_baseline
from regard.evaluation.statistics import Counts, text_statistics


@dataclass(frozen=True, kw_only=True)
class TextSystem:
    """What each of N stretches of the text cost one model, in nats (N,), over how many of its tokens (N,)."""

    name: str
    nats: Counts
    n_tokens: Counts
    parameters: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class TextRow:
    """One model of a comparison; `scores` and `significance` run over the same metrics."""

    system: str
    parameters: int | None
    n_tokens: int
    bytes_per_second: float | None
    scores: tuple[Score, ...]
    significance: tuple[Significance, ...]


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """The whole report. The first row is the baseline, against which the others are tested."""

    unit: str  # what is paired, such as documents
    n_units: int
    n_bytes: int
    rows: tuple[TextRow, ...]
    notes: tuple[str, ...]  # what a reader of the scores should know

    def as_table(self) -> Table:
        """Size, speed and scores: one row a system."""
        headings = ["system", "parameters", "bytes/s"]
        for score in self.rows[0].scores:
            headings.append(f"{score.label} {'↑' if score.metric.higher_is_better else '↓'}")
        cells = []
        for row in self.rows:
            size = "" if row.parameters is None else f"{row.parameters:,}"
            speed = "" if row.bytes_per_second is None else f"{row.bytes_per_second:,.0f}"
            cells.append([row.system, size, speed, *(f"{score.value:.4f}" for score in row.scores)])
        return headings, cells

    def as_significance_table(self) -> Table:
        """How sure the scores are: one row a metric and system, with both tests against the baseline."""
        return significance_table(self.rows, digits=4)

    def as_json(self) -> dict[str, Any]:
        """Return all facts as data that `json.dumps` takes."""
        systems = [
            {
                "system": row.system,
                "parameters": row.parameters,
                "tokens": row.n_tokens,
                "bytes_per_second": row.bytes_per_second,
                "scores": scores_as_json(row),
            }
            for row in self.rows
        ]
        return {
            "unit": self.unit,
            "units": self.n_units,
            "bytes": self.n_bytes,
            "baseline": self.rows[0].system,
            "systems": systems,
            "notes": list(self.notes),
        }


def compare_texts(
    systems: Sequence[TextSystem],
    *,
    n_bytes: Counts,
    unit: str,
    metrics: Sequence[str],
    notes: Sequence[str] = (),
    seed: int = SEED,
) -> TextComparison:
    """Score all models on the same text and test each against the first, paired over its N stretches.

    n_bytes:  (N,), of each stretch
    metrics:  of loss, perplexity and bits_per_byte those that compare these models
    """
    check_names([system.name for system in systems])
    gathered = {
        system.name: [
            found for found in text_statistics(system.nats, system.n_tokens, n_bytes) if found.metric in metrics
        ]
        for system in systems
    }
    significance = compare_to_baseline(gathered, seed=seed)
    whole = int(n_bytes.sum())
    rows = tuple(
        TextRow(
            system=system.name,
            parameters=system.parameters,
            n_tokens=int(system.n_tokens.sum()),
            bytes_per_second=whole / system.seconds if system.seconds else None,
            scores=tuple(score_of(found) for found in gathered[system.name]),
            significance=tuple(significance[system.name]),
        )
        for system in systems
    )
    return TextComparison(unit=unit, n_units=len(n_bytes), n_bytes=whole, rows=rows, notes=tuple(notes))
