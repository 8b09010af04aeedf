"""What is given to be labelled: texts or vectors, encoded and cut to what the model reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.labelled.encoding import EncodedTexts, encode_texts
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.tasks.labelling.examples import VectorSequences


def encode_vectors(inputs: Sequence[Any], texts_b: Sequence[str], *, n_features: int, longest: int) -> VectorSequences:
    """Take sequences of vectors (T, F), at most `longest` vectors of each."""
    if any(texts_b):
        raise UsageError("A sequence of vectors has no second text.", "Leave the second texts out.")
    rows = [_vectors(number, one, n_features) for number, one in enumerate(inputs)]
    cut = [len(row) > longest for row in rows]
    return VectorSequences([row[:longest] for row in rows], n_features, cut=cut)


def encode_pairs(
    inputs: Sequence[Any], texts_b: Sequence[str], tokenizer: Tokenizer, *, pairs: bool, longest: int
) -> EncodedTexts:
    """Encode texts with their second ones, where the run learned from `pairs`, and without any where not."""
    second = texts_b if any(texts_b) else ()
    if inputs and bool(second) != pairs:
        if second:
            raise UsageError("The model learned from single texts, and second ones are given.", "Leave them out.")
        raise UsageError(
            "The model learned from pairs of texts, and there is no second text.",
            "Give one to each: --text-b TEXT, or a tab and the text behind a line of standard input; in Python texts_b=[…].",
        )
    if second and len(second) != len(inputs):
        raise UsageError(
            f"There are {len(inputs):,} texts and {len(second):,} second ones.",
            "Give one for each text, empty where there is none.",
        )
    return encode_texts([_text(number, one) for number, one in enumerate(inputs)], second, tokenizer, longest)


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
