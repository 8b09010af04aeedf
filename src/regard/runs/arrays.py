"""Arrays in a small safetensors file, by name, with facts beside them: written whole, read within bounds. Loads no torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from regard.regular_files import read_regular
from regard.runs.disk import write_atomically
from regard.runs.json_files import parse_json
from regard.runs.tensor_header import METADATA

Arrays = dict[str, npt.NDArray[Any]]
FACTS = "facts"


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], *, facts: Mapping[str, Any]) -> None:
    """Write arrays, and facts that JSON can hold; equal ones give equal bytes."""
    # Not ascontiguousarray, which makes a list of one of a single number.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # One key only: safetensors writes several in random order.
    write_atomically(path, save(contiguous, metadata={FACTS: json.dumps(facts, allow_nan=False)}))


def load_arrays(path: Path, *, most: int) -> tuple[Arrays, Any]:
    """Read what `save_arrays` wrote, a regular file of at most so many bytes: OSError, or ValueError where it is none."""
    content = read_regular(path, most=most)
    try:
        arrays = load(content)  # which holds every offset to the file's length
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return arrays, parse_json(header[METADATA][FACTS])
    except (SafetensorError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}, {error}") from None
