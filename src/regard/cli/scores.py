"""Scores by name, as people read them."""

from collections.abc import Mapping

from regard.evaluation.intervals import from_record, is_interval_end
from regard.evaluation.metrics import find_metric, headline_metric

Scores = Mapping[str, float | None]


def scores_text(scores: Scores, *, intervals: bool = False) -> str:
    """Write scores in a line: loss 2.345, perplexity 10.4, BLEU 23.1. The step beside them is left out.

    intervals: whether those that have one are written with it: accuracy 81.2 (95 % interval 78.6 to 83.5)
    """
    shown = []
    for name in scores:
        if name != "step" and not is_interval_end(name):
            within = interval_text(scores, name) if intervals else ""
            shown.append(f"{find_metric(name).label} {score_cell(scores, name)}{within}")
    return ", ".join(shown)


def interval_text(scores: Scores, name: str) -> str:
    """Write the confidence interval of one score, in brackets; nothing where it has none."""
    interval, metric = from_record(scores, name), find_metric(name)
    return f" (95 % interval {metric.format(interval[0])} to {metric.format(interval[1])})" if interval else ""


def score_cell(scores: Scores, name: str) -> str:
    """Write one score; nothing where there is none of this name."""
    return find_metric(name).format(scores[name]) if name in scores else ""


def telling_score(scores: Scores) -> str:
    """Write the score that says most beside the loss, with its name; nothing where there is none."""
    metric = headline_metric(scores)
    return scores_text({metric.name: scores[metric.name]}) if metric else ""
