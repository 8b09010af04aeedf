"""How good an output is: BLEU, chrF and TER by sacreBLEU, each with the signature that makes it comparable; perplexity.

Knows strings and numbers, no model. Scores of labels are in `labels.py`, of numbers in `numbers.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.evaluation.metrics import Metric, find_metric
from regard.evaluation.statistics import (
    METRICS,
    References,
    Statistics,
    gather_statistics,
    text_statistics,
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number, what it measures, and under which settings (sacreBLEU's signature)."""

    name: str
    value: float
    signature: str

    @property
    def metric(self) -> Metric:
        """What is to be known of the score beside its value."""
        return find_metric(self.name)

    @property
    def label(self) -> str:
        """The name as people write it."""
        return self.metric.label

    @property
    def text(self) -> str:
        """The value as people write it in a report of scores."""
        return self.metric.format(self.value, precise=True)

    def __str__(self) -> str:
        return f"{self.label} {self.text}{' %' if self.metric.percent else ''}"


def score_translations(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = METRICS,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Score]:
    """Score a whole corpus; the settings are those of `gather_statistics`."""
    gathered = gather_statistics(hypotheses, references, metrics=metrics, tokenize=tokenize, lowercase=lowercase)
    return [score_of(found) for found in gathered]


def score_of(statistics: Statistics) -> Score:
    """Score the corpus whose sentences were counted."""
    return Score(name=statistics.metric, value=statistics.score, signature=statistics.signature)


def perplexity(loss: float) -> Score:
    """Turn a mean cross entropy (in nats a token, without label smoothing) into a perplexity."""
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
    return [score_of(found) for found in text_statistics(np.array([nats]), np.array([float(n_tokens)]), whole)]
