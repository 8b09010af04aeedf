"""One attention weight in full: query and key, their products, scale and bias, mask, softmax, value, output projection.

    score = Σ query · key · scale + bias        weight = exp(score - largest) / Σ exp(…)        head = Σ weight · value

Everything is computed again from what a trace recorded, and stands beside what was recorded. Each kind of attention brings
its own formula (parts/score_formula.py); how a cell is shown, and written as a program, is cell_text.py's.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.attention_replay import (
    AttentionReplay,
    Booleans,
    Numbers,
    bias_name,
    check_attention,
    masked_softmax,
    output_name,
    replay,
)
from regard.inspection.axes import key_positions
from regard.inspection.trace import Trace
from regard.parts.score_formula import ScoreFormula
from regard.runs.disk import without_non_finite

TOLERANCE, TOLERANCE_IN_HALF = 1e-5, 2e-2


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cell:
    """The arithmetic of one attention weight; S keys, heads of width K, values of width V, a model of width D.

    attention, head, query, key:        where it stands; positions count from 0
    reads, writes, attends_to:          the tokens at the query (and what a decoder writes there) and at the key
    formula:                            how summands come of query and key
    query_vector, key_vector, summands: (K,); they add up to `sum`
    scale, bias:                        score = sum · scale + bias; bias is None where there is none
    hidden:                             whether a mask hides the key from the query
    keys, values:                       (S, K) and (S, V), of all keys
    scores, visible, exponentials:      (S,); of what is visible, exp(score - largest), which add up to `denominator`
    weights, weight:                    (S,), and the one of this key
    weighted_value, head_output:        (V,): weight · value, and the sum of such over all keys
    output_slice, added:                (D, V) of the output projection, and what the head adds by it, (D,), without the
                                        projection's bias; None without the model, and where there is no projection
    sublayer_output, residual:          (D,), recorded: what the sublayer gives, and the residual stream after it
    recorded_…:                         as it was in the network
    compared:                           of score, weight and head output, what must be the same there: all that no
                                        intervention took the place of
    error:                              the largest difference from what was recorded of these
    """

    attention: str
    head: int
    query: int
    key: int
    reads: str
    writes: str
    attends_to: str
    key_labels: tuple[str, ...]
    formula: ScoreFormula
    query_vector: Numbers
    key_vector: Numbers
    summands: Numbers
    sum: float
    scale: float
    bias: float | None
    biases: Numbers | None
    score: float
    recorded_score: float
    hidden: bool
    keys: Numbers
    values: Numbers
    scores: Numbers
    visible: Booleans
    largest: float
    exponentials: Numbers
    denominator: float
    weights: Numbers
    weight: float
    recorded_weight: float
    weighted_value: Numbers
    head_output: Numbers
    recorded_head_output: Numbers
    output_slice: Numbers | None
    added: Numbers | None
    sublayer_output: Numbers | None
    residual: Numbers | None
    compared: tuple[str, ...]
    error: float
    tolerance: float
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Term by term, for a terminal of 100 columns."""
        from regard.inspection.cell_text import cell_lines

        return cell_lines(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def python(self) -> str:
        """A program of its own (numpy only) that computes weight and head output from plain numbers, and asserts them."""
        from regard.inspection.cell_text import cell_program

        return cell_program(self)

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        facts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "formula"}
        plain = {name: own.tolist() if isinstance(own, np.ndarray) else own for name, own in facts.items()}
        formula = {"kind": self.formula.kind, "text": self.formula.text, "constants": self.formula.constants()}
        found: dict[str, Any] = without_non_finite({**plain, "formula": formula})
        return found


def explain_cell(trace: Trace, attention: str, *, head: int, query: int, key: int) -> Cell:
    """The arithmetic of one attention weight from what was recorded; refuse places that the attention does not have."""
    check_attention(trace, attention)
    if trace.subject is not None:
        trace.record(f"{attention}.*")  # kept, since neighbours are likely to be asked for next
    own = replay(trace, attention)
    _check_places(attention, own, head=head, query=query, key=key)
    summands, biases = own.summands(head, query), own.bias_row(head, query)
    formula, visible = own.formula, own.visible(head)[query]
    scores: Numbers = summands.sum(-1) * formula.scale + (0.0 if biases is None else biases)
    weights = masked_softmax(scores, visible)
    largest = float(scores[visible].max(initial=-np.inf)) if visible.any() else 0.0
    exponentials = np.exp(np.where(visible, scores, -np.inf) - largest)
    values = own.values(head)
    head_output: Numbers = weights @ values
    pairs = {
        "score": (scores, own.scores[head, query]),
        "weight": (weights, own.weights[head, query]),
        "head output": (head_output, own.heads[head, query]),
    }
    compared = _compared(trace, attention)
    tolerance = TOLERANCE if trace.full_precision else TOLERANCE_IN_HALF
    output_slice = _output_slice(trace, attention, head, width=values.shape[1])
    return Cell(
        attention=attention,
        head=head,
        query=query,
        key=key,
        **_tokens(trace, attention, query, key),
        formula=formula,
        query_vector=own.query[head, query],
        key_vector=own.keys(head)[key],
        summands=summands[key],
        sum=float(summands[key].sum()),
        scale=formula.scale,
        bias=None if biases is None else float(biases[key]),
        biases=biases,
        score=float(scores[key]),
        recorded_score=float(own.scores[head, query, key]),
        hidden=not visible[key],
        keys=own.keys(head),
        values=values,
        scores=scores,
        visible=visible,
        largest=largest,
        exponentials=exponentials,
        denominator=float(exponentials.sum()),
        weights=weights,
        weight=float(weights[key]),
        recorded_weight=float(own.weights[head, query, key]),
        weighted_value=weights[key] * values[key],
        head_output=head_output,
        recorded_head_output=own.heads[head, query],
        output_slice=output_slice,
        added=None if output_slice is None else output_slice @ own.heads[head, query],
        sublayer_output=_recorded_row(trace, f"{attention}.output", query),
        residual=_recorded_row(trace, f"{attention}_residual.output", query),
        compared=compared,
        error=max((difference(*pairs[name]) for name in compared), default=0.0),
        # What rounding costs grows with a score, and the softmax hands it on.
        tolerance=tolerance * max(1.0, float(np.abs(scores).max())),
        notes=tuple(_notes(trace, attention)),
    )


def difference(a: Numbers, b: Numbers) -> float:
    """The largest difference of two arrays, in units of the largest number of the second where that is above 1."""
    if b.size == 0:
        return 0.0
    size = np.abs(b).max()
    return float(np.abs(a - b).max() / max(1.0, size)) if np.isfinite(size) else np.inf


def _check_places(attention: str, own: AttentionReplay, *, head: int, query: int, key: int) -> None:
    for name, place, size in zip(("head", "query", "key"), (head, query, key), own.weights.shape, strict=True):
        if not 0 <= place < size:
            many = {"head": "heads", "query": "queries", "key": "keys"}[name]
            raise UsageError(
                f"{attention} has the {many} 0 to {size - 1}, and no {name} {place}.",
                f"Choose a {name} from 0 to {size - 1}; they count from 0.",
            )


def _compared(trace: Trace, attention: str) -> tuple[str, ...]:
    """What the network computed itself, and not an intervention in its place, nor from one."""
    taps = {"score": "scores", "weight": "weights", "head output": output_name(trace, attention).rpartition(".")[2]}
    replaced = [name for name, tap in taps.items() if f"{attention}.{tap}" in trace.replaced]
    names = list(taps)
    return tuple(names[: names.index(replaced[0])] if replaced else names)


def _tokens(trace: Trace, attention: str, query: int, key: int) -> dict[str, Any]:
    """Who asks and who answers: what stands at the query and is written there, what stands at the keys."""
    reading = trace.reading
    own, keys = reading.at(attention), key_positions(attention, reading)
    n_keys = trace[f"{attention}.weights"].shape[-1]
    labels = keys.labels if len(keys) == n_keys else tuple(map(str, range(n_keys)))
    return {
        "reads": own.labels[query] if query < len(own) else str(query),
        "writes": reading.written(query) if reading.causal and own is reading.own else "",
        "attends_to": labels[key],
        "key_labels": labels,
    }


def _output_slice(trace: Trace, attention: str, head: int, *, width: int) -> Numbers | None:
    """The columns (D, V) of the output projection that belong to a head."""
    if trace.subject is None:
        return None
    projection = getattr(trace.subject.model.get_submodule(attention), "output", None)
    weight = getattr(projection, "weight", None)
    if weight is None:
        return None
    columns = weight.detach()[:, head * width : (head + 1) * width]
    return np.asarray(columns.double().cpu().numpy(), dtype=np.float64)


def _recorded_row(trace: Trace, name: str, position: int) -> Numbers | None:
    if name not in trace or (trace.subject is None and name in trace.left_out):
        return None
    return np.asarray(trace[name].values[position], dtype=np.float64)


def _notes(trace: Trace, attention: str) -> list[str]:
    notes = []
    watched = {
        f"{attention}.{tap}" for tap in ("query", "key", "value", "scores", "weights", "heads", "context", "output")
    }
    for name in sorted((watched | {bias_name(trace, attention)}) & set(trace.replaced)):
        notes.append(f"An intervention took the place of {name}, which does not follow from what comes before it.")
    if trace.subject is None:
        notes.append("Read from a file: the output projection is not here.")
    if not trace.full_precision:
        notes.append("The numbers were kept as float16; save the trace with full_precision=True for all of theirs.")
    return notes
