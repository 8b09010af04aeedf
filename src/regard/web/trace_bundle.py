"""A trace as the page has it: facts and arrays of its attention maps, steps and residual stream.

Every number is the trace's own. What is large is left to be asked for: the arithmetic of cells (row_bundle), and where all
maps together are too large, the largest weight of each block of cells comes first, and a map when somebody looks at it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError
from regard.inspection import maps, overview
from regard.inspection.attention_replay import attention_groups, output_name, recorded
from regard.inspection.axes import key_positions
from regard.inspection.head_labels import HeadLabel, label_heads
from regard.inspection.residual_stream import stream_or_map_taps
from regard.inspection.rollout import stacks_of
from regard.inspection.trace import Trace
from regard.inspection.trace_json import distinct_positions, shape_of, taps_json
from regard.inspection.words import row_words

FORMAT, VERSION = "regard page trace", 1
MOST_BYTES = 24 * 2**20  # of all maps together, as float16
EXACT_BYTES = 2**18  # of one map that travels as float32
N_BLOCKS = 128  # rows and columns of blocks, at most
Floats = npt.NDArray[Any]
Bundle = tuple[dict[str, Any], dict[str, Floats]]


def trace_bundle(trace: Trace, *, most_bytes: int = MOST_BYTES) -> Bundle:
    """Facts and arrays of a trace: what the page shows of it at once."""
    reading, positions, kinds = trace.reading, distinct_positions(trace), maps.kinds(trace)
    if trace.subject is not None:  # what the overview and the norms need, in one pass
        trace.record("*_residual.output", f"{overview.overview_attention(trace)}.weights")
    places = {path: (kind, layer) for kind, paths in kinds.items() for layer, path in enumerate(paths)}
    n_bytes = sum(2 * math.prod(shape_of(trace, f"{path}.weights")) for path in places)
    arrays: dict[str, Floats] = {}
    attentions: dict[str, Any] = {}
    for path, part, labels in _maps(trace):
        whole = _weights(part, path)
        block = _block(whole) if n_bytes > most_bytes else [1, 1]
        name = f"{'weights' if n_bytes <= most_bytes else 'blocks'}:{path}"
        arrays[name] = whole if n_bytes <= most_bytes else _blocks(whole, block)
        kind, layer = places[path]
        facts = {"kind": kind, "layer": layer, "array": name, "block": block}
        attentions[path] = facts | _attention(trace, part, path, whole, labels)
    screen = overview.to_json(trace)

    def is_here(path: str) -> bool:
        return _is_here(trace, f"{path}.weights")

    facts = {
        "format": FORMAT,
        "version": VERSION,
        "title": trace.title,
        "output": trace.output,
        "truncation": trace.result.truncation if trace.result else "",
        "positions": [asdict(own) for own in positions],
        "own": _number(positions, reading.own),
        "memory": None if reading.memory is None else _number(positions, reading.memory),
        "causal": reading.causal,
        "writes": [reading.outputs(id) for id in reading.writes],
        "write_ids": list(reading.writes),
        "n_given": reading.n_given,
        "steps": screen["steps"],
        "classes": screen["classes"],
        "kinds": kinds,
        "attentions": {path: attentions[path] for path in places},
        "stacks": {name: paths[0] for name, paths in stacks_of(trace).items() if all(map(is_here, paths))},
        "overview_attention": screen["attention"],
        "taps": taps_json(trace),
        "replaced": list(trace.replaced),
        "live": trace.subject is not None,
        "full_precision": trace.full_precision,
        "norms": _norms(trace, arrays),
        "feature_maps": _feature_maps(trace),
        "image": None,
    }
    if reading.image is not None:
        facts["image"], arrays["image"] = "image", reading.image
    facts["n_bytes"] = sum(array.nbytes for array in arrays.values())
    return facts, arrays


def _number(positions: list[Any], wanted: Any) -> int:
    return next(number for number, own in enumerate(positions) if own is wanted)


def page_weights(trace: Trace, path: str) -> Floats:
    """The weights (H, T, S) of an attention, NaN where a mask hides a place; recurrent decoders have one head."""
    if trace.subject is not None:
        trace.record(f"{path}.*")  # kept, since the arithmetic of its cells is asked for next
    return _weights(_part(trace, [path]), path)


def _maps(trace: Trace) -> Iterator[tuple[str, Trace, list[HeadLabel]]]:
    """Each attention, a trace that has its weights, and the labels of its heads; what was left out comes in few passes, and
    is not kept."""
    for group in attention_groups(trace):
        part = _part(trace, group)
        labels = label_heads(part)
        for path in group:
            yield path, part, [own for own in labels if own.attention == path]


def _part(trace: Trace, paths: Sequence[str]) -> Trace:
    """A trace of weights, and scores where there are any, of some attentions alone."""
    names = [f"{path}.{tap}" for path in paths for tap in ("weights", "scores")]
    return Trace(
        title=trace.title,
        output=trace.output,
        reading=trace.reading,
        arrays=recorded(trace, [name for name in names if _is_here(trace, name)]),
        left_out={},
        formulas={},
        full_precision=trace.full_precision,
    )


def _weights(part: Trace, path: str) -> Floats:
    if f"{path}.scores" in part:
        values = maps.masked_weights(part, path).values
    else:
        values = _hidden_by_order(part, path, np.array(part[f"{path}.weights"].values, np.float32))
    return compact(values[None] if values.ndim == 2 else values)


def compact(values: Floats) -> Floats:
    """Numbers of a map as they are, where it is small, so that all digits that are shown hold; else in half of the bytes."""
    return values if values.nbytes <= EXACT_BYTES else values.astype(np.float16)


def _hidden_by_order(trace: Trace, path: str, values: Floats) -> Floats:
    """Without scores, which a probe's file does not keep: hidden is what comes later than a decoder's own position."""
    own = trace.reading.at(path)
    if trace.reading.causal and own is trace.reading.own and key_positions(path, trace.reading) is own:
        later = np.triu(np.ones(values.shape[-2:], bool), 1)
        values[(values == 0) & later] = np.nan
    return values


def _is_here(trace: Trace, name: str) -> bool:
    return name in trace and (trace.subject is not None or name not in trace.left_out)


def _attention(trace: Trace, part: Trace, path: str, weights: Floats, labels: list[HeadLabel]) -> dict[str, Any]:
    """What the page knows of an attention beside its kind and its map; `part` has its weights."""
    reading, formula = trace.reading, trace.formulas.get(path)
    positions = distinct_positions(trace)
    n_rows, n_columns = weights.shape[1:]
    needed = [f"{path}.{tap}" for tap in ("query", "key", "value", "scores")]
    return {
        "n_heads": len(weights),
        "rows": _number(positions, reading.at(path)),
        "columns": _number(positions, key_positions(path, reading)),
        "row_labels": _fitting(maps.row_labels(part, path), n_rows),
        "column_labels": _fitting(maps.column_labels(part, path), n_columns),
        "row_words": _words(row_words(path, reading), n_rows),
        "column_words": _words(key_positions(path, reading).words, n_columns),
        "heads": [
            {
                "label": own.label,
                "entropy": own.entropy,
                "entropy_share": own.entropy_share,
                "near_diagonal": own.near_diagonal,
                "numbers": dict(own.numbers),
            }
            for own in labels
        ],
        "shape": list(weights.shape),
        "formula": None if formula is None else {"kind": formula.kind, "text": formula.text},
        "has_rows": formula is not None and all(_is_here(trace, name) for name in (*needed, output_name(trace, path))),
    }


def _fitting(labels: tuple[str, ...], size: int) -> list[str]:
    return list(labels) if len(labels) == size else [str(place) for place in range(size)]


def _words(words: Sequence[int | None], size: int) -> list[int | None]:
    """Which word each position belongs to; none where words are not told apart."""
    return list(words) if len(words) == size else []


def _block(weights: Floats) -> list[int]:
    """How many rows and columns of a map make a block."""
    return [-(-size // N_BLOCKS) for size in weights.shape[1:]]


def _blocks(weights: Floats, block: list[int]) -> Floats:
    """The largest weight of each block of (H, T, S); NaN where all of it is hidden."""
    padded = np.full(
        (len(weights), *(-(-size // own) * own for size, own in zip(weights.shape[1:], block, strict=True))),
        np.nan,
        np.float16,
    )
    padded[:, : weights.shape[1], : weights.shape[2]] = weights
    heads, rows, columns = padded.shape
    cells = padded.reshape(heads, rows // block[0], block[0], columns // block[1], block[1])
    largest: Floats = np.fmax.reduce(cells, axis=(2, 4))
    return largest


def _norms(trace: Trace, arrays: dict[str, Floats]) -> dict[str, Any] | None:
    """The lengths of the residual stream's vectors (sublayer, position); of an image network (sublayer, 1)."""
    try:
        norms = trace.residual_norms()
    except UsageError:
        return None
    arrays["norms"] = np.asarray(norms.values, np.float32).reshape(len(norms.values), -1)
    return {"sublayers": list(norms.labels["sublayer"]), "array": "norms"}


def _feature_maps(trace: Trace) -> list[str]:
    """The taps of a convolutional network's feature maps, which can be asked for one by one."""
    if trace.subject is None:
        return []
    try:
        names = stream_or_map_taps(trace)
    except UsageError:
        return []
    return [name for name in names if len(shape_of(trace, name)) == 3]
