"""Trace files: a trace as one file in the safetensors format, a JSON manifest and one blob of arrays; read without pickle.

Numbers are float16, unless full precision is asked for, or they are beyond float16's range. Of logits over many outputs only
the largest of each position are kept, with the written token's, under names of their own:

    logits.top_ids, logits.top_values   (position, rank): the largest, best first; the written token in the last place
    logits.log_sum                      (position): log Σ exp of all logits, so that value - log_sum is a log-probability

`trace["logits"]` of such a file is refused, as is everything that was left out: the model is needed for it. With full
precision all logits are kept. A trace that was read has no model (`subject` is None).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from regard.errors import DataError, TrainingError, UsageError
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.inspection.trace_manifest import (
    FORMAT,
    VERSION,
    make_manifest,
    read_arrays,
    read_formulas,
    read_left_out,
    read_reading,
    read_texts,
)
from regard.regular_files import MEGABYTE
from regard.runs.arrays import load_arrays, save_arrays

MOST_FILE = 1024 * MEGABYTE
MANY_OUTPUTS, TOP_LOGITS = 1000, 100  # outputs from which on only so many logits of each position are kept
IMAGE = "regard.image"
TOP_IDS, TOP_VALUES, LOG_SUM = ".top_ids", ".top_values", ".log_sum"
_HALF = np.finfo(np.float16)


def save_trace(trace: Trace, path: str | Path, *, full_precision: bool = False) -> Path:
    """Write a trace; what is there under that name stays whole until the new one is."""
    path = Path(path)
    full_precision = full_precision and trace.full_precision
    arrays: dict[str, NamedArray] = {}
    left_out = trace.left_out
    for name in trace.kept:
        array = trace[name]
        if not full_precision and array.axes[-1:] == ("output",) and array.shape[-1] > MANY_OUTPUTS:
            left_out[name] = array.shape
            arrays.update(_top_logits(trace, name, array))
        else:
            arrays[name] = array
    outputs = {*trace.reading.writes, *_occurring(arrays)}
    manifest = make_manifest(trace, arrays, outputs=sorted(outputs))
    exact = (TOP_IDS, TOP_VALUES, LOG_SUM)  # few numbers, from which probabilities are made
    stored = {
        name: array.values if full_precision or name.endswith(exact) else _half(array.values)
        for name, array in arrays.items()
    }
    manifest |= {
        "full_precision": full_precision,
        "left_out": {name: list(shape) for name, shape in left_out.items()},
        "float32": [name for name, values in stored.items() if values.dtype == np.float32 and not full_precision],
    }
    image = trace.reading.image
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(path, stored if image is None else {**stored, IMAGE: image}, facts=manifest)
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.", "Choose a place that can be written to.") from error
    except TrainingError as error:
        raise UsageError(error.problem, "Free some space, or choose another place.") from error
    return path


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `Trace.save` wrote; nothing in the file is run, and everything in it is checked."""
    path = Path(path)
    try:
        stored, manifest = load_arrays(path, most=MOST_FILE)
    except OSError as error:
        raise DataError(
            f"The trace {path} cannot be read: {error.strerror or error}.",
            "Write one first: regard.load(RUN).trace(…).save(FILE)",
        ) from error
    except ValueError as error:
        _refuse(path, f"it is damaged, or of another kind ({_first_line(error)})")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        _refuse(path, "it is a safetensors file of another kind")
    if manifest.get("version") != VERSION:
        raise DataError(
            f"{path} is a trace of version {str(manifest.get('version'))[:20]}; this regard reads version {VERSION}.",
            "Update regard, or write the trace again: regard.load(RUN).trace(…).save(FILE)",
        )
    try:
        return _trace(stored, manifest)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else _first_line(error)
        _refuse(path, f"its parts do not belong together ({what})")


def _trace(stored: Mapping[str, npt.NDArray[Any]], manifest: Mapping[str, Any]) -> Trace:
    reading, positions = read_reading(manifest, stored.get(IMAGE))
    arrays = read_arrays(manifest, stored, positions)
    if not isinstance(manifest["full_precision"], bool):
        raise ValueError("it does not say how precise it is")
    title, output = read_texts([manifest["title"], manifest["output"]])
    return Trace(
        title=title,
        output=output,
        reading=reading,
        arrays=arrays,
        left_out=read_left_out(manifest),
        formulas=read_formulas(manifest, arrays),
        replaced=read_texts(manifest["replaced"]),
        full_precision=manifest["full_precision"],
    )


def _refuse(path: Path, why: str) -> NoReturn:
    raise DataError(
        f"{path} is not a trace that can be read: {why}.", "Write it again: regard.load(RUN).trace(…).save(FILE)"
    )


def _first_line(error: Exception) -> str:
    return "".join(one if one.isprintable() else " " for one in str(error)[:200])


def _half(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As float16, unless numbers are too large for it, or all of them too small."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    sizes = np.abs(values[np.isfinite(values)])
    largest = sizes.max(initial=0.0)
    fits = largest == 0 or _HALF.smallest_normal <= largest <= _HALF.max
    return values.astype(np.float16 if fits else np.float32)


def _top_logits(trace: Trace, name: str, array: NamedArray) -> dict[str, NamedArray]:
    """The largest logits of each position, best first; in the last place the written token's, if it is not among them."""
    logits = np.asarray(array.values, dtype=np.float64)
    top: Any = _largest(logits)
    if logits.ndim == 2:
        for position, token in enumerate(trace.reading.writes[: len(top)]):
            if token not in top[position]:
                top[position, -1] = token
    largest = logits.max(-1)
    log_sum = largest + np.log(np.exp(logits - largest[..., None]).sum(-1))
    axes, labels = array.axes, {axis: own for axis, own in array.labels.items() if axis != "output"}
    values = np.take_along_axis(logits, top, axis=-1)
    return {
        f"{name}{TOP_IDS}": NamedArray(top, (*axes[:-1], "rank"), labels),
        f"{name}{TOP_VALUES}": NamedArray(values.astype(np.float32), (*axes[:-1], "rank"), labels),
        f"{name}{LOG_SUM}": NamedArray(np.asarray(log_sum, dtype=np.float32), axes[:-1], labels),
    }


def _largest(logits: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """(…, V) to the numbers (…, top) of the largest, best first."""
    return np.argsort(-logits, axis=-1, kind="stable")[..., :TOP_LOGITS].astype(np.int64)


def _occurring(arrays: Mapping[str, NamedArray]) -> set[int]:
    """The numbers of all outputs that a reader may ask the names of."""
    found: set[int] = set()
    for name, array in arrays.items():
        if name.endswith(TOP_IDS):
            found.update(np.unique(array.values).astype(int).tolist())
        elif array.axes[-1:] == ("output",):
            found.update(np.unique(_largest(array.values)).tolist())
    return found
