"""The manifest of a trace file: what JSON holds beside the arrays, and the way back, with nothing taken on trust.

format, version, title, output, full_precision
positions   each axis of tokens or patches once: name, labels, ids, text, spans, words, grid
places      which positions belong to which part of the model, by the beginning of its path; memory: those attended to
writes, n_given, causal                as of a reading
outputs     the names of the tokens or classes that occur, by their numbers
arrays      name, axes and, by axis, the number of the positions that label it; in the order of the pass
left_out    names and shapes of what is too large
formulas, replaced, float32            how scores come about; taps an intervention replaced; arrays beyond float16's range
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.parts.score_formula import DotProductFormula, ScoreFormula, formula_from_json, formula_to_json
from regard.runs.json_files import is_count, is_number
from regard.tasks.reading import Positions, Reading

FORMAT, VERSION = "regard trace", 1
MOST_PLACES = 2**20  # positions of one axis, names of outputs, arrays
MOST_LAYERED = 16  # axes of an array

Arrays = Mapping[str, npt.NDArray[Any]]


def make_manifest(trace: Trace, arrays: Mapping[str, NamedArray], *, outputs: Sequence[int]) -> dict[str, Any]:
    """What JSON holds of a trace, of which these arrays are written, and these numbers of outputs named."""
    reading = trace.reading
    positions: list[Positions] = []
    for own in (*(own for _, own in reading.places), *([reading.memory] if reading.memory else [])):
        if not any(own is known for known in positions):
            positions.append(own)

    def number(wanted: Positions) -> int:
        return next(place for place, own in enumerate(positions) if own is wanted)

    labels = {own.labels: place for place, own in enumerate(positions)}
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": trace.title,
        "output": trace.output,
        "positions": [asdict(own) for own in positions],
        "places": [[start, number(own)] for start, own in reading.places],
        "memory": number(reading.memory) if reading.memory else None,
        "writes": list(reading.writes),
        "n_given": reading.n_given,
        "causal": reading.causal,
        "outputs": {str(one): reading.outputs(one) for one in sorted(set(outputs))},
        "arrays": [
            {
                "name": name,
                "axes": list(array.axes),
                "labels": {axis: labels[tuple(own)] for axis, own in array.labels.items() if tuple(own) in labels},
            }
            for name, array in arrays.items()
        ],
        "formulas": {path: formula_to_json(formula) for path, formula in trace.formulas.items()},
        "replaced": list(trace.replaced),
    }


def read_reading(manifest: Mapping[str, Any], image: npt.NDArray[Any] | None) -> tuple[Reading, list[Positions]]:
    """The reading of a trace whose model is not here, and all its positions; ValueError for what is none."""
    positions = [_positions(own) for own in _list(manifest["positions"])]
    places = tuple((_text(start), positions[_index(place, positions)]) for start, place in _list(manifest["places"]))
    if not places or places[-1][0]:
        raise ValueError("no positions are for all parts of the model")
    memory, writes = manifest["memory"], _counts(manifest["writes"])
    names = manifest["outputs"]
    if (
        not isinstance(names, dict)
        or len(names) > MOST_PLACES
        or not all(isinstance(own, str) for own in names.values())
    ):
        raise ValueError("the names of outputs are no texts")
    if not isinstance(manifest["causal"], bool) or not is_count(manifest["n_given"]):
        raise ValueError("it does not say what was given")
    if image is not None and (image.dtype != np.uint8 or image.ndim != 3):
        raise ValueError("its image has no pixels")
    known: dict[str, str] = dict(names)
    return Reading(
        forward=_no_model,
        places=places,
        outputs=lambda one: known.get(str(one), f"#{one}"),
        memory=None if memory is None else positions[_index(memory, positions)],
        writes=writes,
        n_given=manifest["n_given"],
        causal=manifest["causal"],
        image=image,
    ), positions


def _no_model() -> NoReturn:
    raise UsageError(
        "The model is not here: the trace was read from a file.", "Load the run: regard.load(RUN).trace(…)"
    )


def _positions(kept: Any) -> Positions:
    labels = tuple(_text(own) for own in _list(kept["labels"]))
    words = tuple(None if own is None else _count(own) for own in _list(kept["words"]))
    spans = tuple((_count(begin), _count(end)) for begin, end in _list(kept["spans"]))
    ids = _counts(kept["ids"])
    for own in (ids, spans, words):
        if own and len(own) != len(labels):
            raise ValueError(f"{len(labels)} positions have {len(own)} ids, spans or words")
    grid = kept["grid"]
    if grid is not None:
        rows, columns = _counts(grid)
        grid = (rows, columns)
        if rows * columns > len(labels):
            raise ValueError("a grid has more patches than there are positions")
    return Positions(
        name=_text(kept["name"]),
        labels=labels,
        ids=ids,
        text=_text(kept["text"]),
        spans=spans,
        words=words,
        grid=grid,
    )


def read_arrays(manifest: Mapping[str, Any], stored: Arrays, positions: Sequence[Positions]) -> dict[str, NamedArray]:
    """The arrays with their axes and labels, as float32 (ids as they are); ValueError where they do not belong together."""
    found = {}
    for entry in _list(manifest["arrays"]):
        name, axes = _text(entry["name"]), tuple(_text(axis) for axis in _list(entry["axes"]))
        values = stored[name]
        if values.dtype in (np.float16, np.float32):
            values = values.astype(np.float32)  # a copy, which may be written to
        elif values.dtype == np.int32:
            values = values.astype(np.int64)
        if values.ndim != len(axes) or len(axes) > MOST_LAYERED or values.dtype not in (np.float32, np.int64):
            raise ValueError(f"{name[:100]} has the shape {values.shape} of {values.dtype}, and {len(axes)} axes")
        if not isinstance(entry["labels"], dict):
            raise ValueError(f"{name[:100]} has labels of no axis")
        labels = {axis: positions[_index(place, positions)].labels for axis, place in entry["labels"].items()}
        for axis, own in labels.items():
            if axis not in axes or len(own) != values.shape[axes.index(axis)]:
                raise ValueError(f"{name[:100]} has {len(own)} labels on the axis {axis[:100]}, which is not as long")
        found[name] = NamedArray(values, axes, labels)
    return found


def read_formulas(manifest: Mapping[str, Any], arrays: Mapping[str, NamedArray]) -> dict[str, ScoreFormula]:
    """The formulas of attentions, each held against the arrays that it speaks of."""
    if not isinstance(manifest["formulas"], dict):
        raise ValueError("it has no formulas")
    found = {path: formula_from_json(kept) for path, kept in manifest["formulas"].items()}
    for path, formula in found.items():
        if isinstance(formula, DotProductFormula):
            heads = formula.n_heads, formula.n_key_heads
            if not (is_number(formula.scale) and all(map(is_count, heads)) and min(heads) and heads[0] % heads[1] == 0):
                raise ValueError(f"the formula of {path[:100]} has no such heads")
        _check_shapes(path, formula, arrays)
    return found


def _check_shapes(path: str, formula: ScoreFormula, arrays: Mapping[str, NamedArray]) -> None:
    """Arrays of an attention, as far as they are there, must fit each other."""
    sizes: dict[str, int] = {"H": formula.n_heads}
    sizes["G"] = formula.n_key_heads if isinstance(formula, DotProductFormula) else 1
    if not isinstance(formula, DotProductFormula):
        sizes["K"] = len(formula.weight)
    alphabet = {"query": "HTK", "key": "GSK", "value": "GSV", "scores": "HTS", "weights": "HTS", "heads": "HTV"}
    for tap, letters in {**alphabet, "context": "HTV"}.items():
        array = arrays.get(f"{path}.{tap}")
        if array is None:
            continue
        shape = array.shape if array.values.ndim == 3 else (1, *array.shape)  # recurrent decoders have one head
        if len(shape) != 3 or any(
            sizes.setdefault(letter, size) != size for letter, size in zip(letters, shape, strict=True)
        ):
            raise ValueError(f"{path[:100]}.{tap} has the shape {array.shape}, which does not fit its attention")


def read_left_out(manifest: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what was too large."""
    if not isinstance(manifest["left_out"], dict) or len(manifest["left_out"]) > MOST_PLACES:
        raise ValueError("it does not say what was left out")
    return {name: _counts(shape) for name, shape in manifest["left_out"].items()}


def read_texts(kept: Any) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(_text(own) for own in _list(kept))


def _list(kept: Any) -> list[Any]:
    if not isinstance(kept, list) or len(kept) > MOST_PLACES:
        raise ValueError("a list was expected")
    return kept


def _text(kept: Any) -> str:
    if not isinstance(kept, str):
        raise ValueError(f"a text was expected, not {type(kept).__name__}")
    return kept


def _count(kept: Any) -> int:
    if not is_count(kept):
        raise ValueError("a whole number was expected")
    return kept


def _counts(kept: Any) -> tuple[int, ...]:
    return tuple(_count(own) for own in _list(kept))


def _index(kept: Any, items: Sequence[object]) -> int:
    if _count(kept) >= len(items):
        raise ValueError("a number points to positions that are not there")
    return int(kept)
