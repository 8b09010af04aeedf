"""Probe examples: a few of the validation split, as `predict` takes them, to be traced again and again while a model learns.

Which they are is each task's own (`probes`). They travel as JSON, so that a run keeps them whatever becomes of its data.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_TOKENS = 64  # of an example that is preferred: a longer one costs more than it shows
DTYPES: Mapping[str, np.dtype[Any]] = {
    "uint8": np.dtype(np.uint8),
    "float32": np.dtype("<f4"),
}  # of pixels and of vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeExample:
    """One example.

    title:     what people know it by: the text itself, or where an image or a sequence of vectors comes from
    input:     a text, the words of a sentence, or an array: pixels (H, W, C), vectors (T, F)
    text_b:    the second text of a pair
    expected:  what would be right
    """

    title: str
    input: Any
    text_b: str = ""
    expected: str = ""

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        given: Any = self.input if isinstance(self.input, str) else list(self.input)
        if isinstance(self.input, np.ndarray):
            [kind] = (name for name, dtype in DTYPES.items() if dtype == self.input.dtype)
            packed = base64.b64encode(np.ascontiguousarray(self.input, DTYPES[kind]).tobytes()).decode()
            given = {"dtype": kind, "shape": list(self.input.shape), "base64": packed}
        return {"title": self.title, "input": given, "text_b": self.text_b, "expected": self.expected}

    @classmethod
    def from_json(cls, found: Any) -> "ProbeExample":
        """Read what `to_json` returned; ValueError where it is anything else."""
        if not isinstance(found, dict) or found.keys() != {"title", "input", "text_b", "expected"}:
            raise ValueError("a probe example has other keys")
        given = found.pop("input")
        if not all(isinstance(text, str) for text in found.values()):
            raise ValueError("a probe example is not of texts")
        if isinstance(given, list):
            if not all(isinstance(word, str) for word in given):
                raise ValueError("the words of a probe example are not texts")
            given = tuple(given)
        elif not isinstance(given, str):
            given = _unpacked(given)
        return cls(input=given, **found)


def _unpacked(found: Any) -> npt.NDArray[Any]:
    """The array that was packed as text."""
    if not isinstance(found, dict) or found.keys() != {"dtype", "shape", "base64"} or found["dtype"] not in DTYPES:
        raise ValueError("the input of a probe example is neither text nor an array")
    try:
        content = base64.b64decode(found["base64"], validate=True)
        array: npt.NDArray[Any] = np.frombuffer(content, DTYPES[found["dtype"]]).reshape(found["shape"])
        return array.copy()
    except (TypeError, ValueError):
        raise ValueError("the array of a probe example is damaged") from None


def probe_rows(lengths: npt.NDArray[Any], n: int) -> list[int]:
    """Which n of these examples, (N,) or (N, 2) long: in equal distances, the next short one, else the shortest there."""
    longest = lengths if lengths.ndim == 1 else lengths.max(axis=1)
    edges = np.linspace(0, len(longest), min(n, len(longest)) + 1).astype(int).tolist()
    stretches = [longest[start:end] for start, end in pairwise(edges)]
    # argmax of what is true: the first; where nothing is, the shortest.
    places = [int((own <= MOST_TOKENS).argmax() if own.min() <= MOST_TOKENS else own.argmin()) for own in stretches]
    return [start + place for start, place in zip(edges, places, strict=False)]


def as_text(expected: Any) -> str:
    """What would be right, for people: a class, a number, tags."""
    if isinstance(expected, float):
        return f"{expected:.4g}"
    return expected if isinstance(expected, str) else " ".join(expected)
