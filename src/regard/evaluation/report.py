"""Several systems on one test set, side by side: size, speed, scores, significance, and where they differ the most.

Returns facts, as a table of strings and as plain data; showing them is the caller's.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from regard.errors import DataError, UsageError
from regard.evaluation.lengths import LengthBucket, buckets_by_length
from regard.evaluation.scores import Score, score_of
from regard.evaluation.significance import SEED, Significance, compare_to_baseline
from regard.evaluation.statistics import METRICS, Counts, References, Statistics, gather_statistics, reference_streams

# Headings, and rows of cells as strings.
Table = tuple[list[str], list[list[str]]]


@dataclass(frozen=True, kw_only=True)
class System:
    """What one system wrote for the test set, and what it took."""

    name: str
    hypotheses: Sequence[str]
    parameters: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One system of a comparison; `scores` and `significance` run over the same metrics."""

    system: str
    parameters: int | None
    sentences_per_second: float | None
    scores: tuple[Score, ...]
    significance: tuple[Significance, ...]
    by_length: tuple[LengthBucket, ...]  # the first metric, by the length of the source


class Tested(Protocol):
    """A system with its scores and what is known of their chance, metric by metric."""

    @property
    def system(self) -> str: ...
    @property
    def scores(self) -> tuple[Score, ...]: ...
    @property
    def significance(self) -> tuple[Significance, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Example:
    """One sentence as every system translated it, with each output's chrF; `line` counts from 1."""

    line: int
    source: str
    references: tuple[str, ...]
    outputs: Mapping[str, str]
    chrf: Mapping[str, float]

    @property
    def spread(self) -> float:
        """How far the best output is from the worst, in chrF."""
        return max(self.chrf.values()) - min(self.chrf.values())


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The whole report. The first row is the baseline, against which the others are tested."""

    sentences: int
    rows: tuple[Row, ...]
    examples: tuple[Example, ...]

    def as_table(self) -> Table:
        """Size, speed and scores: one row a system."""
        headings = ["system", "parameters", "sentences/s"]
        for score in self.rows[0].scores:
            headings.append(f"{score.label} {'↑' if score.metric.higher_is_better else '↓'}")
        cells = []
        for row in self.rows:
            size = "" if row.parameters is None else f"{row.parameters:,}"
            speed = "" if row.sentences_per_second is None else f"{row.sentences_per_second:,.1f}"
            cells.append([row.system, size, speed, *(f"{score.value:.2f}" for score in row.scores)])
        return headings, cells

    def as_significance_table(self) -> Table:
        """How sure the scores are: one row a metric and system, with both tests against the baseline."""
        return significance_table(self.rows, digits=2)

    def as_length_table(self) -> Table:
        """The first metric by the length of the source: one row a system, a column a range that holds sentences."""
        label = self.rows[0].scores[0].label
        held = [bucket for bucket in self.rows[0].by_length if bucket.sentences]
        headings = [f"{label} by source words", *(f"{bucket.label} ({bucket.sentences:,})" for bucket in held)]
        cells = [
            [row.system, *(f"{bucket.scores[0].value:.2f}" for bucket in row.by_length if bucket.sentences)]
            for row in self.rows
        ]
        return headings, cells

    def as_json(self) -> dict[str, Any]:
        """Return all facts as data that `json.dumps` takes."""
        return {
            "sentences": self.sentences,
            "baseline": self.rows[0].system,
            "systems": [_row_as_json(row) for row in self.rows],
            "examples": [{**dataclasses.asdict(example), "spread": example.spread} for example in self.examples],
        }


def compare_systems(
    systems: Sequence[System],
    *,
    sources: Sequence[str],
    references: References,
    metrics: Sequence[str] = METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
    n_examples: int = 5,
    seed: int = SEED,
) -> Comparison:
    """Score all systems on the same sentences and test each against the first."""
    check_names([system.name for system in systems])
    streams = reference_streams(references)
    if len(sources) != len(streams[0]):
        raise DataError(
            f"Each source sentence needs its reference: there are {len(sources):,} sources "
            f"and {len(streams[0]):,} references.",
            "Give the references of exactly these source sentences.",
        )
    # chrF is always counted: the examples are chosen by it.
    wanted = [*metrics, "chrf"] if "chrf" not in metrics else metrics
    gathered = {
        system.name: gather_statistics(
            system.hypotheses, streams, metrics=wanted, tokenize=tokenize, lowercase=lowercase
        )
        for system in systems
    }
    chrf = {name: found[wanted.index("chrf")].sentence_scores for name, found in gathered.items()}
    reported = {name: found[: len(metrics)] for name, found in gathered.items()}
    significance = compare_to_baseline(reported, seed=seed)
    return Comparison(
        sentences=len(sources),
        rows=tuple(
            _row(
                system,
                reported[system.name],
                significance[system.name],
                buckets_by_length(sources, reported[system.name][:1]),
            )
            for system in systems
        ),
        examples=tuple(_examples(systems, sources, streams, chrf)[:n_examples]),
    )


def _row(
    system: System,
    gathered: Sequence[Statistics],
    significance: Sequence[Significance],
    by_length: Sequence[LengthBucket],
) -> Row:
    return Row(
        system=system.name,
        parameters=system.parameters,
        sentences_per_second=len(system.hypotheses) / system.seconds if system.seconds else None,
        scores=tuple(score_of(found) for found in gathered),
        significance=tuple(significance),
        by_length=tuple(by_length),
    )


def _row_as_json(row: Row) -> dict[str, Any]:
    return {
        "system": row.system,
        "parameters": row.parameters,
        "sentences_per_second": row.sentences_per_second,
        "scores": scores_as_json(row),
        "by_length": [
            {"words": one.label, "sentences": one.sentences, **{score.name: score.value for score in one.scores}}
            for one in row.by_length
        ],
    }


def significance_table(rows: Sequence[Tested], *, digits: int) -> Table:
    """How sure the scores are: one row a metric and system, with both tests against the first, the baseline."""
    headings = ["metric", "system", "score", "95 % interval", "difference", "p bootstrap", "p randomisation"]
    cells = []
    for number, score in enumerate(rows[0].scores):
        for row in rows:
            found = row.significance[number]
            interval = f"{found.low:.{digits}f} to {found.high:.{digits}f}"
            tested = ["baseline", "", ""]
            if found.delta is not None:
                tested = [f"{found.delta:+.{digits}f}", f"{found.bootstrap_p:.4f}", f"{found.randomisation_p:.4f}"]
            cells.append([score.label, row.system, f"{found.score:.{digits}f}", interval, *tested])
    return headings, cells


def scores_as_json(row: Tested) -> dict[str, dict[str, Any]]:
    """Return the scores of a system by name, each with its signature and what is known of its chance."""
    described = {}
    for score, found in zip(row.scores, row.significance, strict=True):
        facts = dataclasses.asdict(found)
        name = facts.pop("metric")
        described[name] = {"label": score.label, "signature": score.signature, **facts}
    return described


def _examples(
    systems: Sequence[System],
    sources: Sequence[str],
    streams: Sequence[Sequence[str]],
    chrf: Mapping[str, Counts],
) -> list[Example]:
    """Every sentence on which outputs differ in chrF, the widest spread first; ties in the order of the test set."""
    scores = np.stack([chrf[system.name] for system in systems])  # (systems, N)
    spread = scores.max(axis=0) - scores.min(axis=0)
    order = [int(line) for line in np.argsort(-spread, kind="stable") if spread[line] > 0]
    return [
        Example(
            line=line + 1,
            source=sources[line],
            references=tuple(stream[line] for stream in streams),
            outputs={system.name: system.hypotheses[line] for system in systems},
            chrf={system.name: float(chrf[system.name][line]) for system in systems},
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
