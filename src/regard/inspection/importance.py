"""Importance of heads and sublayers by ablation (Michel et al. 2019): what each costs on held-out data when it is cut.

Each part is cut alone, and the same examples are read once more: the change of the loss and, if asked for, of the task's
score, with 95 % intervals by the paired bootstrap. Parts that do the same job can stand in for each other: that none of
two is missed does not mean that both can go.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from torch import nn

from regard.errors import DataError, UsageError, did_you_mean
from regard.evaluation.metrics import find_metric
from regard.evaluation.significance import compare_to_baseline
from regard.evaluation.sufficient_statistics import Statistics
from regard.evaluation.table import Table
from regard.inspection.held_out import HeldOut
from regard.inspection.importance_file import ImportanceFile
from regard.inspection.interventions import Cut, intervening, sublayers
from regard.runs.disk import without_non_finite
from regard.runs.json_files import is_number
from regard.tasks.options import Options, Progress, no_progress
from regard.tasks.task import UsableTask

PARTS = ("heads", "sublayers", "both")
METRICS = ("loss", "score")
N_RESAMPLES = 1000
MOST_NAMED = 5  # parts that matter most

_LAYER = re.compile(r"^(.*?)\.?(\d+)\.(.+)$")


MeasuredBy = Literal["loss", "score"]
Parts = Literal["heads", "sublayers", "both"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A metric without a part: its value, the difference to the whole network, and the 95 % interval of that."""

    value: float
    delta: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval is on one side of zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, kw_only=True)
class PartImportance:
    """What it changes when a part is cut: by metric, the loss first."""

    module: str
    head: int | None
    changes: Mapping[str, Change]

    @property
    def name(self) -> str:
        """As `Cut.parse` reads it."""
        return self.module if self.head is None else f"{self.module}:{self.head}"

    @property
    def place(self) -> tuple[str, int, str]:
        """The stack, the number of the layer (0 where there is none) and the sublayer in it: decoder, 2, cross_attention."""
        found = _LAYER.match(self.module)
        return (found[1], int(found[2]), found[3]) if found else ("", 0, self.module)

    def harm(self, metric: str) -> float:
        """How much worse the network is without it by a metric; below 0 where it is better."""
        delta = self.changes[metric].delta
        return -delta if find_metric(metric).higher_is_better else delta


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The importance of parts of a network, in their order from input to output.

    whole:  the metrics of the whole network by name, the loss first
    """

    whole: Mapping[str, float]
    n_examples: int
    parts: tuple[PartImportance, ...]

    @property
    def metric(self) -> str:
        """The metric that says most: the score, where it was asked for."""
        return list(self.whole)[-1]

    def __getitem__(self, name: str) -> PartImportance:
        """A part by its name, as `decoder.2.cross_attention:3`."""
        found = {one.name: one for one in self.parts}
        if name not in found:
            raise UsageError(f"'{name}' was not measured.", did_you_mean(name, found))
        return found[name]

    def ranked(self, metric: str = "") -> list[PartImportance]:
        """The parts, those first that are missed most."""
        return sorted(self.parts, key=lambda one: -one.harm(metric or self.metric))

    def lines(self) -> list[str]:
        """A table of all parts, layer by layer, and which of them are missed most."""
        labels = [find_metric(name).label for name in self.whole]
        columns = [column for label in labels for column in (label, "change", "95 % interval")]
        rows = [("nothing", *(cell for name, value in self.whole.items() for cell in (_precise(name, value), "", "")))]
        rows += [
            (one.name, *(cell for name in self.whole for cell in _cells(name, one.changes[name]))) for one in self.parts
        ]
        table = Table(headings=("without", *columns), rows=tuple(rows))
        return [*table.lines(), "", *self._sentences()]

    def _sentences(self) -> list[str]:
        metric, sure = find_metric(self.metric), [one for one in self.parts if one.changes[self.metric].is_sure]
        most = [one for one in self.ranked() if one in sure and one.harm(self.metric) > 0][:MOST_NAMED]
        named = ", ".join(one.name for one in most) or "none for certain"
        by_chance = max(1, round(0.05 * len(self.parts)))
        return [
            f"Missed most, by {metric.label}: {named}.",
            f"{self.n_examples:,} examples. * The interval excludes 0: {len(sure)} of {len(self.parts)} do, and about "
            f"{by_chance} would by chance alone.",
        ]

    def to_json(self) -> dict[str, Any]:
        """All of it as data that `json.dumps` takes."""
        facts = {
            "examples": self.n_examples,
            "whole": dict(self.whole),
            "parts": [
                {
                    "part": one.name,
                    "module": one.module,
                    "head": one.head,
                    **{name: {**asdict(change), "sure": change.is_sure} for name, change in one.changes.items()},
                }
                for one in self.parts
            ],
        }
        found: dict[str, Any] = without_non_finite(facts)
        return found

    def __repr__(self) -> str:
        return f"<Importance of {len(self.parts)} parts on {self.n_examples:,} examples>"


def parts_of(model: nn.Module, parts: str = "heads") -> list[Cut]:
    """What is cut: every head, every sublayer, or both, in the order of the network."""
    if parts not in PARTS:
        raise UsageError(f"'{parts}' cannot be cut.", did_you_mean(parts, PARTS))
    found = []
    for module in sublayers(model):
        n_heads = int(getattr(model.get_submodule(module), "n_heads", 0))
        if parts != "sublayers":
            found += [Cut(module=module, heads=(head,)) for head in range(n_heads)]
        if parts != "heads":
            found.append(Cut(module=module))
    if not found:
        what = "heads" if parts == "heads" and sublayers(model) else "parts that a residual connection goes around"
        remedy = "Measure its sublayers." if what == "heads" else "Take a Transformer or a ResNet."
        raise UsageError(f"A {type(model).__name__} has no {what}.", remedy)
    return found


def measure_importance(
    task: UsableTask[Any],
    model: nn.Module,
    options: Options,
    files: Sequence[str],
    *,
    metric: MeasuredBy = "loss",
    parts: Parts = "heads",
    n_examples: int = 0,
    progress: Progress = no_progress,
    resume_file: str | Path | None = None,
) -> Importance:
    """Cut every part alone, and measure the network on a test set.

    metric:       loss; score also measures BLEU of what is generated, or the accuracy
    n_examples:   of the test set, in equal distances; 0 for all
    progress:     is told how many parts are done, of those that `parts_of` lists
    resume_file:  keeps the results of parts that are done; with the same file a measurement that was killed goes on
    """
    if metric not in METRICS:
        raise UsageError(f"There is no metric '{metric}' of importance.", did_you_mean(metric, METRICS))
    cuts = parts_of(model, parts)
    data = HeldOut.read(task, model, options, files, n_examples=n_examples)
    file = _file(resume_file, data, model, metric) if resume_file is not None else None
    whole = data.statistics(model, score=metric == "score")
    found = []
    for n_done, cut in enumerate(cuts):
        progress("ablating", n_done)
        changes = _kept(file, cut, whole)
        if changes is None:
            with intervening(model, [cut]):
                changes = _compared(whole, data.statistics(model, score=metric == "score"))
            if file is not None:
                file.keep(str(cut), {name: asdict(change) for name, change in changes.items()})
        found.append(PartImportance(module=cut.module, head=cut.heads[0] if cut.heads else None, changes=changes))
    progress("ablating", len(cuts))
    return Importance(whole={one.metric: one.value for one in whole}, n_examples=len(data), parts=tuple(found))


def _file(path: str | Path, data: HeldOut, model: nn.Module, metric: str) -> ImportanceFile:
    return ImportanceFile(path, fingerprint=f"{data.fingerprint(model)}|{metric}|resamples:{N_RESAMPLES}")


def _compared(whole: Sequence[Statistics], cut: Sequence[Statistics]) -> dict[str, Change]:
    """The changes by metric, each with its interval: the same resamples for every part."""
    tests = compare_to_baseline({"whole": whole, "cut": cut}, n_resamples=N_RESAMPLES, n_shuffles=1)["cut"]
    return {
        one.metric: Change(
            value=one.score,
            delta=cast(float, one.delta),
            low=cast(float, one.delta_low),
            high=cast(float, one.delta_high),
        )
        for one in tests
    }


def _kept(file: ImportanceFile | None, cut: Cut, whole: Sequence[Statistics]) -> dict[str, Change] | None:
    """What a file has of a part; None where that is to be measured."""
    if file is None or str(cut) not in file.done:
        return None
    record, names = file.done[str(cut)], [one.metric for one in whole]
    fields = {"value", "delta", "low", "high"}
    whole_record = all(
        isinstance(record.get(name), dict)
        and set(record[name]) == fields
        and all(fact is None or is_number(fact) for fact in record[name].values())
        for name in names
    )
    if not whole_record:
        raise DataError(f"{file.path}: the result of {cut} is damaged.", "Delete its line.")
    return {
        name: Change(**{field: float("nan") if fact is None else fact for field, fact in record[name].items()})
        for name in names
    }


def _precise(metric: str, value: float) -> str:
    return find_metric(metric).format(value, precise=True)


def _cells(metric: str, change: Change) -> tuple[str, str, str]:
    digits = find_metric(metric).digits + 1
    delta, low, high = (f"{value:+.{digits}f}".replace("-", "−") for value in (change.delta, change.low, change.high))
    return _precise(metric, change.value), delta, f"[{low}, {high}] {'*' if change.is_sure else ' '}"
