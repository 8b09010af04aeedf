"""Perplexity, and what it is computed from: the cross entropy of tokens (loss), and bits per byte of the text.

Running text has no sentences: a stretch of it adds what it cost a model, its tokens and its bytes.
"""

import math

import numpy as np

from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, SummedCounts


def perplexity(loss: float) -> Score:
    """Turn a mean cross entropy (in nats per token, without label smoothing) into a perplexity."""
    try:
        value = math.exp(loss)
    except OverflowError:
        value = math.inf
    return Score(name="perplexity", value=value, signature="unit:token")


def text_scores(nats: float, *, n_tokens: int, n_bytes: int | None) -> list[Score]:
    """Score running text by the cross entropy of its tokens, summed, in nats.

    n_bytes: of the text, if its tokens hold all of it; None for no bits per byte. These compare models over different
    vocabularies: what all the text costs, over all its bytes.
    """
    whole = None if n_bytes is None else np.array([float(n_bytes)])
    found = cross_entropy_statistics(np.array([nats]), np.array([float(n_tokens)]), whole)
    return [statistics.score for statistics in found]


def cross_entropy_statistics(nats: Floats, n_tokens: Floats, n_bytes: Floats | None = None) -> list[SummedCounts]:
    """What stretches of text (N,) cost: loss, perplexity and, where their bytes are given, bits per byte."""
    by_token = np.stack((nats, n_tokens), axis=1)
    found = [
        SummedCounts(metric="loss", signature="unit:nats per token", counts=by_token, formula=_cost),
        SummedCounts(metric="perplexity", signature="unit:token", counts=by_token, formula=_perplexity),
    ]
    if n_bytes is not None:
        signature = f"tokens:{n_tokens.sum():.0f}|bytes:{n_bytes.sum():.0f}"
        by_byte = np.stack((nats, n_bytes), axis=1)
        found.append(SummedCounts(metric="bits_per_byte", signature=signature, counts=by_byte, formula=_bits))
    return found


def _cost(sums: Floats) -> Floats:
    """Nats per token, or per byte."""
    cost: Floats = sums[..., 0] / sums[..., 1]
    return cost


def _perplexity(sums: Floats) -> Floats:
    with np.errstate(over="ignore"):  # infinity is the right answer then
        perplexity: Floats = np.exp(_cost(sums))
    return perplexity


def _bits(sums: Floats) -> Floats:
    bits: Floats = _cost(sums) / np.log(2)
    return bits
