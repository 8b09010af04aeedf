"""Trace files: a trace as one file in the safetensors format, a JSON manifest and one blob of arrays; read without pickle.

Numbers are float16, unless full precision is asked for, or they are beyond float16's range. Of logits over many outputs only
the largest of each position are kept, with the written token's, under names of their own (`logit_rows.py`): all logits of
such a file are refused, as is everything that was left out, since the model is needed for it. With full precision all are
kept. A trace that was read has no model (`subject` is None): what its output layer makes of the residual stream, the logit
lens, is kept beside it (`lens_arrays.py`).
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from regard.errors import DataError, TrainingError, UsageError
from regard.inspection.lens_arrays import IDS, LENS, RANKS, SHARES, lens_arrays, lens_costs_little
from regard.inspection.logit_rows import LOG_SUM, TOP_IDS, TOP_VALUES, largest_ids, top_logits
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
_HALF = np.finfo(np.float16)


def save_trace(trace: Trace, path: str | Path, *, full_precision: bool = False, lens: int | None = None) -> Path:
    """Write a trace; what is there under that name stays whole until the new one is. `lens`: as `Trace.save` has it."""
    path = Path(path)
    full_precision = full_precision and trace.full_precision
    arrays: dict[str, NamedArray] = {}
    left_out = trace.left_out
    for name in trace.kept:
        array = trace[name]
        if not full_precision and array.axes[-1:] == ("output",) and array.shape[-1] > MANY_OUTPUTS:
            left_out[name] = array.shape
            arrays.update(top_logits(trace, TOP_LOGITS, name))
        else:
            arrays[name] = array
    arrays |= _lens(trace, lens)
    outputs = {*trace.reading.writes, *_occurring(arrays)}
    manifest = make_manifest(trace, arrays, outputs=sorted(outputs))
    exact = (TOP_IDS, TOP_VALUES, LOG_SUM)  # few numbers, from which probabilities are made
    stored = {
        name: array.values if full_precision or name.endswith(exact) else _compact(array.values)
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
    _check_ranked(arrays)
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


def _check_ranked(arrays: Mapping[str, NamedArray]) -> None:
    """Numbers of outputs must be whole, and have their logits or probabilities beside them; ValueError where not."""
    beside = {TOP_IDS: ((TOP_VALUES,), (LOG_SUM,)), IDS: ((SHARES,), (LENS, RANKS))}
    for name, array in arrays.items():
        ending = next((ending for ending in beside if name.endswith(ending)), None)
        if ending is None:
            continue
        ranked, single = beside[ending]
        whole = np.issubdtype(array.values.dtype, np.integer) and array.values.ndim in (1, 2)
        fits = all(arrays[name.removesuffix(ending) + one].shape == array.shape for one in ranked)
        fits &= all(arrays[name.removesuffix(ending) + one].shape == array.shape[:-1] for one in single)
        if not (whole and fits and array.values.size and array.values.min() >= 0):
            raise ValueError(f"{name[:100]} does not fit the numbers beside it")


def _refuse(path: Path, why: str) -> NoReturn:
    raise DataError(
        f"{path} is not a trace that can be read: {why}.", "Write it again: regard.load(RUN).trace(…).save(FILE)"
    )


def _first_line(error: Exception) -> str:
    return "".join(one if one.isprintable() else " " for one in str(error)[:200])


def _lens(trace: Trace, top: int | None) -> dict[str, NamedArray]:
    """What the lens says, of a model that has one; unasked (None) only if that takes no more than a second."""
    if trace.subject is None or top == 0:
        return {}
    if top is not None:
        return lens_arrays(trace, top)
    with suppress(UsageError):  # a recurrent or convolutional network
        if lens_costs_little(trace):
            return lens_arrays(trace)
    return {}


def _compact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As float16, unless numbers are too large for it, or all of them too small; numbers of outputs and ranks as int32."""
    if not np.issubdtype(values.dtype, np.floating):
        return values.astype(np.int32)
    sizes = np.abs(values[np.isfinite(values)])
    largest = sizes.max(initial=0.0)
    fits = largest == 0 or _HALF.smallest_normal <= largest <= _HALF.max
    return values.astype(np.float16 if fits else np.float32)


def _occurring(arrays: Mapping[str, NamedArray]) -> set[int]:
    """The numbers of all outputs that a reader may ask the names of."""
    found: set[int] = set()
    for name, array in arrays.items():
        if name.endswith((TOP_IDS, IDS)):
            found.update(np.unique(array.values).astype(int).tolist())
        elif array.axes[-1:] == ("output",):
            found.update(np.unique(largest_ids(array.values, TOP_LOGITS)).tolist())
    return found
