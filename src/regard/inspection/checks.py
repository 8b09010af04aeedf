"""Checks of a trace: whether its numbers hold, each with the largest error found.

Of the recorded arrays: rows of weights sum to 1, masked weights are 0, scores, weights and heads can be replayed, heads add
up to the output. With the model (model_checks.py): the fused kernel gives what the formula gave, cached decoding what the
full pass gave, and the beam's best leaf is the output, whose log-probabilities add up to its score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.attention_replay import (
    AttentionReplay,
    Booleans,
    Numbers,
    attention_groups,
    output_name,
    replays,
)
from regard.inspection.axes import key_positions
from regard.inspection.cell import TOLERANCE, TOLERANCE_IN_HALF, difference
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.runs.disk import without_non_finite

ROWS, MASKED = "rows of weights sum to 1", "masked weights are 0"
SCORES, WEIGHTS = "scores replayed from query and key", "weights replayed from query and key"
HEADS, OUTPUT = "heads are weights times values", "heads add up to the output"
OF_ARRAYS = (ROWS, MASKED, SCORES, WEIGHTS, HEADS, OUTPUT)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement about a trace: its largest error, in units of the largest number where that is above 1.

    passed: None for a check that was skipped; the note says why, or where the largest error is
    """

    name: str
    error: float | None = None
    tolerance: float = 0.0
    passed: bool | None = None
    note: str = ""

    @classmethod
    def of(cls, name: str, error: float, *, tolerance: float, note: str = "") -> "Check":
        """A check that was made; an error that is no number does not pass."""
        return cls(name=name, error=error, tolerance=tolerance, passed=error <= tolerance, note=note)

    def line(self) -> str:
        """What a person sees."""
        verdict = "skipped" if self.passed is None else "holds" if self.passed else "FAILS"
        error = "" if self.error is None else f"{self.error:.1e} of {self.tolerance:.0e}"
        return f"{verdict:<9}{self.name:<44}{error:<20}{self.note}".rstrip()


@dataclass(frozen=True)
class Checks:
    """All that was checked of a trace."""

    rows: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing that was checked failed."""
        return all(row.passed is not False for row in self.rows)

    @property
    def largest_error(self) -> float:
        """Of all that was checked."""
        return max((row.error for row in self.rows if row.error is not None), default=0.0)

    def __getitem__(self, name: str) -> Check:
        return next(row for row in self.rows if row.name == name)

    def lines(self) -> list[str]:
        """A line for each check, and one for all."""
        made = [row for row in self.rows if row.passed is not None]
        held = sum(row.passed is True for row in made)
        total = f"{held} of {len(made)} checks hold; largest error {self.largest_error:.1e}"
        return [*(row.line() for row in self.rows), total]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """As data that `json.dumps` takes."""
        rows = [asdict(row) for row in self.rows]
        found: dict[str, Any] = without_non_finite(
            {"passed": self.passed, "largest_error": self.largest_error, "checks": rows}
        )
        return found


def check_trace(trace: Trace) -> Checks:
    """Check all that can be of a trace; of one that was read from a file, its arrays alone."""
    from regard.inspection.model_checks import check_model

    return Checks((*_check_arrays(trace), *check_model(trace)))


@dataclass
class _Largest:
    """The largest error of one kind over all attentions."""

    error: float = -1.0
    where: str = ""

    def add(self, error: float, where: str) -> None:
        if not error <= self.error:  # a NaN stays
            self.error, self.where = error, where


def _check_arrays(trace: Trace) -> Iterator[Check]:
    """The checks of all attentions, each of which is in memory alone."""
    found = {name: _Largest() for name in OF_ARRAYS}
    n_missing = 0
    for group in attention_groups(trace):
        outputs = _output_names(trace, group)
        try:
            replayed, arrays = replays(trace, group, outputs.values())
        except UsageError:
            n_missing += len(group)  # what is large is not in files
            continue
        for attention, own in replayed.items():
            output = arrays[outputs[attention]] if attention in outputs else None
            for name, error in _errors(trace, attention, own, output):
                found[name].add(error, attention)
    missing = f"{n_missing} attentions are not in the file" if n_missing else ""
    tolerance = TOLERANCE if trace.full_precision else TOLERANCE_IN_HALF
    for name, largest in found.items():
        if largest.where:
            bound = 0.0 if name == MASKED else tolerance
            notes = [f"largest in {largest.where}" if largest.error else "", missing]
            yield Check.of(name, largest.error, tolerance=bound, note="; ".join(filter(None, notes)))
        else:
            yield Check(name=name, note=missing or _why_not(trace, name))


def _why_not(trace: Trace, name: str) -> str:
    if not trace.attentions():
        return "no attention"
    if name == MASKED:
        return "no mask hides anything"
    if name == OUTPUT:
        return "needs the model" if trace.subject is None else "no output projection, or an intervention in its place"
    return "an intervention took its place"


def _errors(
    trace: Trace, attention: str, own: AttentionReplay, output: NamedArray | None
) -> Iterator[tuple[str, float]]:
    """What was found for one attention; nothing of a tap that an intervention replaced."""
    replaced = {name.rpartition(".")[2] for name in trace.replaced if name.rpartition(".")[0] == attention}
    if "weights" not in replaced:
        totals = own.weights.sum(-1)
        yield ROWS, float(np.minimum(np.abs(totals - 1.0), np.where((own.weights == 0).all(-1), 0.0, np.inf)).max())
        hidden = _hidden(trace, attention, own.weights.shape[1], own.weights.shape[2])
        if hidden is not None:
            yield MASKED, float(np.abs(own.weights[:, hidden]).max(initial=0.0))
    heads = range(len(own.weights))
    if "scores" not in replaced:
        yield SCORES, max(difference(own.replayed_scores(head), own.scores[head]) for head in heads)
    if not replaced & {"scores", "weights"}:
        yield WEIGHTS, max(_weights_error(own, head) for head in heads)
    if output_name(trace, attention).rpartition(".")[2] not in replaced:
        yield HEADS, max(difference(own.replayed_heads(head), own.heads[head]) for head in heads)
    if "output" not in replaced and output is not None:
        yield OUTPUT, difference(_projected(trace, attention, own), np.asarray(output.values, dtype=np.float64))


def _weights_error(own: AttentionReplay, head: int) -> float:
    """The largest error of weights, in units of the largest score: what rounding it costs, the softmax hands on."""
    return difference(own.replayed_weights(head), own.weights[head]) / max(1.0, float(np.abs(own.scores[head]).max()))


def _hidden(trace: Trace, attention: str, n_queries: int, n_keys: int) -> Booleans | None:
    """(T, S): what order and window hide; None where they hide nothing, or do not apply."""
    reading = trace.reading
    own = reading.at(attention)
    if key_positions(attention, reading) is not own or n_queries != n_keys:
        return None
    behind = np.subtract.outer(np.arange(n_queries), np.arange(n_keys))  # how far a key stands before the query
    hidden = behind < 0 if reading.causal and own is reading.own else np.zeros_like(behind, dtype=bool)
    window = _window(trace, attention)
    if window is not None:
        hidden |= np.abs(behind) > window
    return hidden if hidden.any() else None


def _window(trace: Trace, attention: str) -> int | None:
    """How far self-attention reaches, as the nearest part around it says that knows; a file does not say."""
    if trace.subject is None:
        return None
    path = attention
    while path:
        path = path.rpartition(".")[0]
        window = getattr(trace.subject.model.get_submodule(path), "window", None)
        if isinstance(window, int):
            return window
    return None


def _output_names(trace: Trace, attentions: Sequence[str]) -> dict[str, str]:
    """The taps of what attentions with an output projection gave; none without the model, which has the projection."""
    if trace.subject is None:
        return {}
    model = trace.subject.model
    return {path: f"{path}.output" for path in attentions if hasattr(model.get_submodule(path), "output")}


def _projected(trace: Trace, attention: str, own: AttentionReplay) -> Numbers:
    """(T, D): the recorded heads through the output projection, with its bias."""
    projection: Any = trace.live("The output projection is needed, and").model.get_submodule(attention).output
    weight = projection.weight.detach().double().cpu().numpy()
    joined = own.heads.transpose(1, 0, 2).reshape(own.heads.shape[1], -1)  # (T, H · V)
    bias = 0.0 if projection.bias is None else projection.bias.detach().double().cpu().numpy()
    return np.asarray(joined @ weight.T + bias)
