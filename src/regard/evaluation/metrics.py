"""The table of metrics: what every score of the package is called, which way is better, how it is written for people.

Loads nothing, so that lists of runs are quick. The formulas stand beside what they score: `classification.py` and so on.
"""

import math
from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What is to be known of a score beside its value."""

    name: str  # in settings, files and JSON
    label: str  # as people write it
    digits: int = 1  # behind the point, where runs are listed; a report of scores has one more
    higher_is_better: bool = True
    percent: bool = False  # a share, from 0 to 100
    decoded: bool = False  # needs generated output, so that a validation has it only if it decodes some

    def format(self, value: float | None, *, precise: bool = False) -> str:
        """Write a value of this metric; a dash where there is none, as for the loss of a run that diverged."""
        digits = self.digits + precise
        return "—" if value is None or math.isnan(value) else f"{value:.{digits}f}"


_ALL = (  # in the order in which tables have them
    Metric(name="loss", label="loss", digits=3, higher_is_better=False),
    Metric(name="perplexity", label="perplexity", digits=2, higher_is_better=False),
    Metric(name="bits_per_byte", label="bits per byte", digits=3, higher_is_better=False),
    Metric(name="bleu", label="BLEU", decoded=True),
    Metric(name="chrf", label="chrF", decoded=True),
    Metric(name="ter", label="TER", higher_is_better=False, decoded=True),
    Metric(name="exact_match", label="exact match", percent=True, decoded=True),
    Metric(name="wer", label="WER", higher_is_better=False, percent=True, decoded=True),
    Metric(name="cer", label="CER", higher_is_better=False, percent=True, decoded=True),
    Metric(name="accuracy", label="accuracy", percent=True),
    Metric(name="top_5", label="top-5 accuracy", percent=True),
    Metric(name="masked_accuracy", label="masked accuracy", percent=True),
    Metric(name="macro_f1", label="macro F1", percent=True),
    Metric(name="entity_f1", label="entity F1", percent=True),
    Metric(name="entity_precision", label="entity precision", percent=True),
    Metric(name="entity_recall", label="entity recall", percent=True),
    Metric(name="spearman", label="Spearman", digits=3),
    Metric(name="pearson", label="Pearson", digits=3),
    Metric(name="r_squared", label="R²", digits=3),
    Metric(name="mae", label="MAE", digits=3, higher_is_better=False),
    Metric(name="rmse", label="RMSE", digits=3, higher_is_better=False),
)
METRICS = {metric.name: metric for metric in _ALL}

# The one score to show of a run, beside its loss: the first of these that it has.
_HEADLINES = ("bleu", "entity_f1", "accuracy", "spearman", "masked_accuracy", "bits_per_byte", "perplexity")


def find_metric(name: str) -> Metric:
    """The metric of this name; one that the table lacks goes by its name alone, and more of it is better."""
    return METRICS.get(name) or Metric(name=name, label=name)


def headline_metric(names: Container[str]) -> Metric | None:
    """The metric among these that says most of a run, beside its loss; None where there is none."""
    return next((METRICS[name] for name in _HEADLINES if name in names), None)
