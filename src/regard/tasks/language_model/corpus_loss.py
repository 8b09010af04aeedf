"""The loss over a corpus, unit by unit (documents, or stretches of text): for language models that are compared on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.config import DataConfig
from regard.data.documents.comparison_units import read_stretches
from regard.data.text.tokenizer import Tokenizer
from regard.tasks.language_model.examples import WindowExamples

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TextCosts:
    """The nats, tokens and bytes (N,) of each of N stretches of the text; `unit` says what these are."""

    unit: str
    nats: Floats
    n_tokens: Floats
    n_bytes: Floats
    seconds: float  # that the model took


def text_costs(text: WindowExamples, data: DataConfig, tokenizer: Tokenizer, losses: Callable[[], Floats]) -> TextCosts:
    """Compute what a text costs that was read with the same `data`; `losses` is asked for that of each token."""
    n_documents: int = text.corpus.facts["n_documents"]
    found = read_stretches(text.files, data, tokenizer, n_documents=n_documents)
    began = time.perf_counter()
    found_losses = losses()
    seconds = time.perf_counter() - began
    n_stretches = len(found.n_bytes)
    return TextCosts(
        unit=found.unit,
        nats=np.bincount(found.members, weights=found_losses, minlength=n_stretches).astype(np.float64),
        n_tokens=np.bincount(found.members, minlength=n_stretches).astype(np.float64),
        n_bytes=found.n_bytes.astype(np.float64),
        seconds=seconds,
    )
