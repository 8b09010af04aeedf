"""Scores by name, as people read them."""

from collections.abc import Mapping

from regard.evaluation.metrics import find_metric, headline_metric

Scores = Mapping[str, float | None]


def scores_text(scores: Scores) -> str:
    """Write scores in a line: loss 2.345, perplexity 10.4, BLEU 23.1. The step beside them is left out."""
    return ", ".join(f"{find_metric(name).label} {score_cell(scores, name)}" for name in scores if name != "step")


def score_cell(scores: Scores, name: str) -> str:
    """Write one score; nothing where there is none of this name."""
    return find_metric(name).format(scores[name]) if name in scores else ""


def telling_score(scores: Scores) -> str:
    """Write the score that says most beside the loss, with its name; nothing where there is none."""
    metric = headline_metric(scores)
    return scores_text({metric.name: scores[metric.name]}) if metric else ""
