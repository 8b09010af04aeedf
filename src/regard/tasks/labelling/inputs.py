"""What is given to be answered: texts or vectors, encoded and cut to what the model reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.labelled.encoding import encode_texts
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.tasks.labelling.examples import Sequences, TokenSequences, VectorSequences

Inputs = Sequence[str] | Sequence[npt.NDArray[np.floating]]  # texts, or vectors (T, F) where a run is about them


def text_inputs(
    texts: Inputs, texts_b: Sequence[str], tokenizer: Tokenizer, *, longest: int
) -> tuple[Sequences, list[bool]]:
    """Encode texts, with a second one each or none at all; and tell which of them were cut to `longest` tokens."""
    if texts_b and len(texts_b) != len(texts):
        raise UsageError(
            f"There are {len(texts):,} texts and {len(texts_b):,} second ones.",
            "Give one for each text, empty where there is none.",
        )
    checked = [_text(number, one) for number, one in enumerate(texts)]
    found = encode_texts(checked, texts_b, tokenizer, longest)
    return TokenSequences(found.ids, found.ids_b, tokenizer), [n_lost > 0 for n_lost in found.n_lost]


def vector_inputs(
    inputs: Inputs, texts_b: Sequence[str], *, n_features: int, longest: int
) -> tuple[Sequences, list[bool]]:
    """Check sequences of vectors; and tell which of them were cut to `longest` vectors."""
    if texts_b:
        raise UsageError("A sequence of vectors has no second text.", "Leave the second texts out.")
    rows = [_vectors(number, one, n_features) for number, one in enumerate(inputs)]
    cut = [len(row) > longest for row in rows]
    return VectorSequences([row[:longest] for row in rows], n_features), cut


def _text(number: int, given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(
            f"Input {number} is no text, but of type {type(given).__name__}: the run was trained on texts.",
            "Give each text as a string.",
        )
    return given


def _vectors(number: int, given: Any, n_features: int) -> npt.NDArray[np.float32]:
    if isinstance(given, str) or np.ndim(given) != 2 or np.shape(given)[1] != n_features or not len(given):
        what = "a text" if isinstance(given, str) else f"an array of shape {np.shape(given)}"
        raise UsageError(
            f"Input {number} is {what}: the run was trained on sequences of vectors of {n_features:,} features.",
            f"Give arrays of shape (T, {n_features}).",
        )
    return np.ascontiguousarray(given, np.float32)
