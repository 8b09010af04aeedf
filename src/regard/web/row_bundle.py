"""The arithmetic of one row of a head as the page has it: each cell of it, term by term, in one answer."""

import numpy as np

from regard.inspection.attention_replay import recorded
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.web.trace_bundle import Bundle, Floats


def row_bundle(trace: Trace, attention: str, *, head: int, query: int) -> Bundle:
    """The arithmetic of all weights of one query in one head: what `Trace.cell` says of each of its keys."""
    cell = trace.cell(attention, head=head, query=query, key=0)
    found = recorded(trace, [f"{attention}.scores", f"{attention}.weights"])
    scores, weights = (_row(found[f"{attention}.{tap}"], head, query) for tap in ("scores", "weights"))
    summands = np.asarray(cell.formula.summands(cell.query_vector, cell.keys))  # (S, K)
    constants = cell.formula.constants()
    arrays: dict[str, Floats | None] = {
        "query": cell.query_vector,
        "keys": cell.keys,
        "values": cell.values,
        "summands": summands,
        "sums": summands.sum(-1),
        "biases": cell.biases,
        "scores": cell.scores,
        "recorded_scores": scores,
        "visible": cell.visible,
        "exponentials": cell.exponentials,
        "weights": cell.weights,
        "recorded_weights": weights,
        "weighted_values": cell.weights[:, None] * cell.values,
        "head_output": cell.head_output,
        "recorded_head_output": cell.recorded_head_output,
        "added": cell.added,
        "sublayer_output": cell.sublayer_output,
        "residual": cell.residual,
    }
    facts = {
        "attention": attention,
        "head": head,
        "query": query,
        "reads": cell.reads,
        "writes": cell.writes,
        "key_labels": list(cell.key_labels),
        "formula": {"kind": cell.formula.kind, "text": cell.formula.text, "constants": constants},
        "scale": cell.scale,
        "largest": cell.largest,
        "denominator": cell.denominator,
        "error": cell.error,
        "tolerance": cell.tolerance,
        "compared": list(cell.compared),
        "notes": list(cell.notes),
    }
    return facts, {name: array for name, array in arrays.items() if array is not None}


def _row(array: NamedArray, head: int, query: int) -> Floats:
    values = array.values if array.values.ndim == 3 else array.values[None]
    return np.asarray(values[head, query])
