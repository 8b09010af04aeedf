"""Parts of a trace that the page asks for one by one: embeddings, feature maps, rollout, gradients, two traces compared."""

from contextlib import suppress
from typing import Any, Literal

import numpy as np

from regard.errors import UsageError
from regard.inspection import maps
from regard.inspection.attention_replay import recorded
from regard.inspection.trace import Trace
from regard.inspection.trace_json import distinct_positions
from regard.web.trace_bundle import Bundle, compact, page_weights

EMBEDDED = ("tokens", "positions", "segments", "sum", "output")


def embedding_bundle(trace: Trace) -> Bundle:
    """Of each embedding (source, target, …) those taps that have a row for each position, (T, D): tokens, positions, sum."""
    found: dict[str, dict[str, str]] = {}
    for name in trace:
        module, _, tap = name.rpartition(".")
        if tap in EMBEDDED and module.rpartition(".")[2].endswith("embedding"):
            found.setdefault(module, {})[tap] = name
    arrays = {}
    for name, array in recorded(trace, [name for taps in found.values() for name in taps.values()]).items():
        if array.values.ndim == 2 and len(array.values) == len(trace.reading.at(name)):
            arrays[name] = np.asarray(array.values, np.float32)
    positions = distinct_positions(trace)
    facts = [
        {
            "name": module,
            "rows": next(number for number, own in enumerate(positions) if own is trace.reading.at(f"{module}.")),
            "arrays": {tap: name for tap, name in taps.items() if name in arrays},
        }
        for module, taps in found.items()
    ]
    return {"embeddings": [own for own in facts if own["arrays"]]}, arrays


def map_bundle(trace: Trace, tap: str) -> Bundle:
    """A feature map (C, H, W) of an image network."""
    array = recorded(trace, [tap])[tap]
    if array.values.ndim != 3 or array.axes[0] != "channel":
        raise UsageError(f"{tap} is not a feature map.", "Choose one of those that the page lists.")
    return {"tap": tap, "axes": list(array.axes)}, {"map": np.asarray(array.values, np.float32)}


def tree_facts(trace: Trace) -> dict[str, Any]:
    """The beam's tree, with what each node attended to where there is a source to attend to."""
    tree = trace.beam_tree()
    return tree.to_json(trace.tree_attention(tree) if "cross" in maps.kinds(trace) else None)


def passing_bundle(trace: Trace, kind: Literal["rollout", "flow"], stack: str) -> Bundle:
    """Attention rollout or attention flow (T, T) through the layers of a stack."""
    found = trace.rollout(stack) if kind == "rollout" else trace.flow(stack)
    labels = list(found.labels.get(found.axes[0], ()))
    return {"stack": stack, "labels": labels}, {kind: np.asarray(found.values, np.float32)}


def gradient_facts(trace: Trace, token: str | int, position: int) -> dict[str, Any]:
    """The lengths of a logit's gradients: (sublayer, position), of an image network (sublayer, 1)."""
    norms = trace.gradients(token, position=position)
    values = norms.values.reshape(len(norms.values), -1)
    labels = list(norms.labels.get(norms.axes[1], ())) if len(norms.axes) > 1 else []
    return {"sublayers": list(norms.labels["sublayer"]), "positions": labels, "values": values.tolist()}


def difference_bundle(a: Trace, b: Trace) -> Bundle:
    """What differs between two traces, the maps b - a of attentions of one shape, NaN where either is hidden, and the norms
    of the residual streams of both, if they have the same sublayers and positions."""
    facts = a.difference(b).to_json()
    arrays = {}
    facts["norms"] = None
    with suppress(UsageError):  # of a network that has no such stream
        first, second = a.residual_norms(), b.residual_norms()
        if first.shape == second.shape and first.labels["sublayer"] == second.labels["sublayer"]:
            facts["norms"] = list(first.labels["sublayer"])
            for name, norms in (("norms:a", first), ("norms:b", second)):
                arrays[name] = np.asarray(norms.values, np.float32).reshape(len(norms.values), -1)
    for path in a.attentions():
        if path in b.attentions():
            before, after = page_weights(a, path), page_weights(b, path)
            if before.shape == after.shape:
                arrays[f"weights:{path}"] = compact(after.astype(np.float32) - before.astype(np.float32))
    return facts, arrays
