"""A trace as JSON, for pages and programs: what it is of, its tokens with their offsets, which maps and taps there are.

Every part has a `to_json` of its own; numbers that are not finite are null. The page's message (web/trace_bundle.py) is made
of the same parts, with arrays beside them.
"""

from typing import Any

from regard.errors import UsageError
from regard.inspection.logit_rows import n_outputs
from regard.inspection.maps import kinds
from regard.inspection.residual_stream import stream_or_map_taps, stream_taps
from regard.inspection.tap_names import tap_phrase
from regard.inspection.trace import Trace
from regard.tasks.offers import can_read_out
from regard.tasks.reading import Positions


def trace_json(trace: Trace) -> dict[str, Any]:
    """What a trace is of, and what can be asked of it."""
    return {
        "input": trace.title,
        "output": trace.output,
        "live": trace.subject is not None,
        "full_precision": trace.full_precision,
        "interventions": list(trace.replaced),
        "tokens": tokens_json(trace),
        "attentions": attentions_json(trace),
        "taps": taps_json(trace),
        "offers": offers(trace),
    }


def taps_json(trace: Trace) -> list[dict[str, Any]]:
    """Every tap in the order of the pass: its name, what it is, its axes, which are known of those in memory, its shape."""
    left_out = trace.left_out
    return [
        {
            "name": name,
            "about": tap_phrase(name),
            "axes": None if name in left_out else list(trace[name].axes),
            "shape": list(shape_of(trace, name)),
            "kept": name not in left_out,
        }
        for name in trace
    ]


def offers(trace: Trace) -> dict[str, bool]:
    """Which views the model behind a trace has: a page shows no others."""
    live = trace.subject is not None
    reads = trace.subject is not None and can_read_out(trace.subject.model) and n_outputs(trace) > 1
    return {
        "maps": bool(trace.attentions()),
        "cells": any(path in trace.formulas for path in trace.attentions()),
        "cross_attention": "cross" in kinds(trace),
        "lens": bool(trace.names("*.lens_ids")) or (reads and _is_there(stream_taps, trace)),
        "norms": bool(trace.names("*.norm")) or _is_there(stream_or_map_taps, trace),
        "beam_tree": live and trace.reading.watch is not None,
        "ablation": live,
        "image": trace.reading.image is not None,
    }


def _is_there(find: Any, trace: Trace) -> bool:
    try:
        find(trace)
    except UsageError:
        return False
    return True


def tokens_json(trace: Trace) -> dict[str, Any]:
    """Every position with its token, id, offsets in the text and word; what is written at each; what is attended to."""
    reading, every = trace.reading, distinct_positions(trace)
    number = {id(own): place for place, own in enumerate(every)}
    return {
        "sequences": [_sequence(own) for own in every],
        "own": number[id(reading.own)],
        "memory": None if reading.memory is None else number[id(reading.memory)],
        "places": [{"part": start, "sequence": number[id(own)]} for start, own in reading.places],
        "writes": [
            {"position": place, "id": token, "text": reading.outputs(token), "given": place < reading.n_given}
            for place, token in enumerate(reading.writes)
        ],
    }


def distinct_positions(trace: Trace) -> list[Positions]:
    """Each axis of tokens or patches once, in the order in which they are numbered."""
    reading = trace.reading
    found: list[Positions] = []
    for own in (*(own for _, own in reading.places), *([reading.memory] if reading.memory else [])):
        if not any(own is known for known in found):
            found.append(own)
    return found


def shape_of(trace: Trace, name: str) -> tuple[int, ...]:
    """The shape of a tap, whether it is held in memory or not."""
    left_out = trace.left_out
    return left_out[name] if name in left_out else trace[name].shape


def _sequence(own: Positions) -> dict[str, Any]:
    return {
        "name": own.name,
        "text": own.text,
        "grid": None if own.grid is None else list(own.grid),
        "tokens": [
            {
                "position": place,
                "text": label,
                "id": own.ids[place] if own.ids else None,
                "span": list(own.spans[place]) if own.spans else None,
                "word": own.words[place] if own.words else None,
            }
            for place, label in enumerate(own.labels)
        ],
    }


def attentions_json(trace: Trace) -> list[dict[str, Any]]:
    """Every attention: its kind, its layer among those of the kind, how many heads and positions it has."""
    found = []
    for kind, paths in kinds(trace).items():
        for layer, path in enumerate(paths):
            n_heads, n_queries, n_keys = shape_of(trace, f"{path}.weights")
            found.append(
                {"path": path, "kind": kind, "layer": layer, "heads": n_heads, "queries": n_queries, "keys": n_keys}
            )
    return found
