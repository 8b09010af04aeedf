"""Several systems on one test set, side by side: size, throughput, scores, paired significance, where they differ the most.

One comparison for every task: a system is its sufficient statistics, whatever they count. Returns facts, as tables and as
plain data; showing them is the caller's.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.evaluation.lengths import LengthBucket
from regard.evaluation.metrics import find_metric
from regard.evaluation.scores import Score
from regard.evaluation.significance import SEED, Significance, compare_to_baseline
from regard.evaluation.sufficient_statistics import Floats, Statistics
from regard.evaluation.table import Table, records_to_csv

SMALLEST_P = 0.0001  # what is smaller is not written as 0
TESTS = {"bootstrap_p": "p bootstrap", "randomisation_p": "p randomisation", "mcnemar_p": "p McNemar"}


@dataclass(frozen=True, kw_only=True)
class System:
    """What one system scored on each example of the test set, by several metrics, and what it took."""

    name: str
    statistics: Sequence[Statistics]
    parameters: int | None = None
    seconds: float | None = None
    counts: Mapping[str, int] = field(default_factory=dict)  # what else is counted of it, as its tokens
    by_length: Sequence[LengthBucket] = ()


@dataclass(frozen=True, kw_only=True)
class SystemResult:
    """One system of a comparison; `scores` and `significance` run over the same metrics."""

    system: str
    parameters: int | None
    per_second: float | None  # of the comparison's throughput unit
    scores: tuple[Score, ...]
    significance: tuple[Significance, ...]
    counts: Mapping[str, int]
    by_length: tuple[LengthBucket, ...]  # the first metric, by the length of the source


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example as every system answered it, with each output's score by `metric`; `line` counts from 1."""

    line: int
    source: str
    references: tuple[str, ...]
    outputs: Mapping[str, str]
    metric: str
    scores: Mapping[str, float]

    @property
    def spread(self) -> float:
        """How far the best output is from the worst."""
        return max(self.scores.values()) - min(self.scores.values())

    @property
    def heading(self) -> str:
        """Which example it is, and how far the outputs are apart."""
        return f"line {self.line:,}, where {find_metric(self.metric).label} differs by {self.spread:.1f}"

    def facts(self) -> list[tuple[str, str]]:
        """The source, what was expected, and what each system wrote with its score, as labels and texts."""
        expected = [("expected", text) for text in self.references]
        outputs = [(f"{name} ({self.scores[name]:.0f})", text) for name, text in self.outputs.items()]
        return [("source", self.source), *expected, *outputs]

    def to_json(self) -> dict[str, Any]:
        """All facts as data that `json.dumps` takes."""
        return {
            "line": self.line,
            "source": self.source,
            "references": list(self.references),
            "outputs": dict(self.outputs),
            self.metric: dict(self.scores),
            "spread": self.spread,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The whole report. The first result is the baseline, against which the others are tested."""

    unit: str  # what is paired: sentences, images, documents
    n_units: int
    throughput_unit: str  # what is counted per second: mostly the same, of text its bytes
    amount: int  # of that
    results: tuple[SystemResult, ...]
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader of the scores should know

    def table(self) -> Table:
        """Size, throughput and scores: one row per system."""
        metrics = [score.metric for score in self.results[0].scores]
        headings = [f"{metric.label} {'↑' if metric.higher_is_better else '↓'}" for metric in metrics]
        return Table(
            headings=("system", "parameters", f"{self.throughput_unit}/s", *headings),
            rows=tuple(
                (one.system, _size(one.parameters), _speed(one.per_second), *(score.text for score in one.scores))
                for one in self.results
            ),
        )

    def significance_table(self) -> Table:
        """How sure the scores are: one row per metric and system, with the paired tests against the baseline."""
        every = [found for one in self.results for found in one.significance]
        tests = [test for test in TESTS if test != "mcnemar_p" or any(found.mcnemar_p is not None for found in every)]
        rows = [
            (score.label, one.system, *_significance_cells(one.significance[number], tests))
            for number, score in enumerate(self.results[0].scores)
            for one in self.results
        ]
        headings = ("metric", "system", "score", "95 % interval", "difference", *(TESTS[test] for test in tests))
        return Table(headings=headings, rows=tuple(rows), left=(0, 1))

    def length_table(self) -> Table | None:
        """The first metric by the length of the source: one row per system, one column per range that holds sentences."""
        held = [bucket for bucket in self.results[0].by_length if bucket.sentences]
        if not held:
            return None
        label = held[0].scores[0].label
        return Table(
            headings=(f"{label} by source words", *(f"{bucket.label} ({bucket.sentences:,})" for bucket in held)),
            rows=tuple(
                (one.system, *(bucket.scores[0].text for bucket in one.by_length if bucket.sentences))
                for one in self.results
            ),
        )

    def lines(self) -> list[str]:
        """What a person sees: both tables, then the examples."""
        shown = [*self.table().lines(), "", *self.significance_table().lines()]
        for example in self.examples:
            shown += ["", example.heading, *(f"{label}: {text}" for label, text in example.facts())]
        return shown

    def records(self) -> list[dict[str, Any]]:
        """One flat dict per system and metric."""
        speed = f"{self.throughput_unit}_per_second"
        return [
            {"system": one.system, "parameters": one.parameters, speed: one.per_second, **dataclasses.asdict(found)}
            for one in self.results
            for found in one.significance
        ]

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the records as CSV, and write them to `path` if one is given."""
        return records_to_csv(self.records(), path)

    def to_json(self) -> dict[str, Any]:
        """All facts as data that `json.dumps` takes."""
        return {
            "unit": self.unit,
            "units": self.n_units,
            self.throughput_unit: self.amount,
            "baseline": self.results[0].system,
            "systems": [self._result_to_json(one) for one in self.results],
            "examples": [example.to_json() for example in self.examples],
            "notes": list(self.notes),
        }

    def _result_to_json(self, result: SystemResult) -> dict[str, Any]:
        return {
            "system": result.system,
            "parameters": result.parameters,
            **result.counts,
            f"{self.throughput_unit}_per_second": result.per_second,
            "scores": {
                score.name: {"label": score.label, "signature": score.signature, **_significance_to_json(found)}
                for score, found in zip(result.scores, result.significance, strict=True)
            },
            "by_length": [bucket.to_json() for bucket in result.by_length],
        }

    def __repr__(self) -> str:
        systems = "; ".join(f"{one.system}: {', '.join(map(str, one.scores))}" for one in self.results)
        return f"Comparison({systems}; {self.n_units:,} {self.unit})"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + self.significance_table()._repr_html_()


def compare_systems(
    systems: Sequence[System],
    *,
    unit: str,
    throughput: tuple[str, int] | None = None,
    examples: Sequence[Example] = (),
    notes: Sequence[str] = (),
    seed: int = SEED,
) -> Comparison:
    """Test each system against the first, paired over the examples that their statistics count.

    unit:        what an example is: sentences, images, documents
    throughput:  what is counted per second, and how much of it there is; by default the examples
    """
    check_names([system.name for system in systems])
    significance = compare_to_baseline({system.name: system.statistics for system in systems}, seed=seed)
    n_units = len(systems[0].statistics[0])
    throughput_unit, amount = throughput or (unit, n_units)
    return Comparison(
        unit=unit,
        n_units=n_units,
        throughput_unit=throughput_unit,
        amount=amount,
        results=tuple(
            SystemResult(
                system=system.name,
                parameters=system.parameters,
                per_second=amount / system.seconds if system.seconds else None,
                scores=tuple(found.score for found in system.statistics),
                significance=tuple(significance[system.name]),
                counts=system.counts,
                by_length=tuple(system.by_length),
            )
            for system in systems
        ),
        examples=tuple(examples),
        notes=tuple(notes),
    )


def differing_examples(
    outputs: Mapping[str, Sequence[str]],
    scores: Mapping[str, Floats],
    *,
    metric: str,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    n: int = 5,
) -> list[Example]:
    """The `n` examples on which the systems' scores (N,) differ the most, the widest spread first; ties in their order.

    outputs, scores: of each system by its name
    references:      one list of expected outputs, or several
    """
    every = np.stack(list(scores.values()))  # (systems, N)
    spread = every.max(axis=0) - every.min(axis=0)
    order = [int(line) for line in np.argsort(-spread, kind="stable")[:n] if spread[line] > 0]
    return [
        Example(
            line=line + 1,
            source=sources[line],
            references=tuple(stream[line] for stream in references),
            outputs={name: texts[line] for name, texts in outputs.items()},
            metric=metric,
            scores={name: float(values[line]) for name, values in scores.items()},
        )
        for line in order
    ]


def check_names(names: Sequence[str]) -> None:
    """Refuse to compare nothing, or two systems that nobody could tell apart."""
    if not names:
        raise UsageError("There are no systems to compare.", "Give at least one.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"Two systems are named '{twice[0]}'.", "Give each system a name of its own.")


def _size(parameters: int | None) -> str:
    return "" if parameters is None else f"{parameters:,}"


def _speed(per_second: float | None) -> str:
    if per_second is None:
        return ""
    return f"{per_second:,.1f}" if per_second < 10_000 else f"{per_second:,.0f}"


def _significance_cells(found: Significance, tests: Sequence[str]) -> tuple[str, ...]:
    metric = find_metric(found.metric)
    score, low, high = (metric.format(value, precise=True) for value in (found.score, found.low, found.high))
    if found.delta is None:
        return (score, f"{low} to {high}", "baseline", *("" for _ in tests))
    p_values = [getattr(found, test) for test in tests]
    sign = "+" if found.delta >= 0 else ""
    difference = f"{sign}{metric.format(found.delta, precise=True)}"
    return (score, f"{low} to {high}", difference, *(_p_cell(p) for p in p_values))


def _p_cell(p: float | None) -> str:
    if p is None:
        return ""
    return "—" if math.isnan(p) else f"{p:.4f}" if p >= SMALLEST_P else f"< {SMALLEST_P}"


def _significance_to_json(found: Significance) -> dict[str, Any]:
    facts = dataclasses.asdict(found)
    del facts["metric"]
    if found.mcnemar_p is None:
        del facts["mcnemar_p"]
    return facts
