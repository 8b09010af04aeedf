"""Scores by name, as people read them."""

from collections.abc import Mapping

from regard.cli.terminal import decimal
from regard.evaluation.names import LABELS, TELLING, digits

Scores = Mapping[str, float | None]


def scores_text(scores: Scores) -> str:
    """Write scores in a line: loss 2.345, perplexity 10.4, BLEU 23.1. The step beside them is left out."""
    return ", ".join(f"{LABELS.get(name, name)} {score_cell(scores, name)}" for name in scores if name != "step")


def score_cell(scores: Scores, name: str) -> str:
    """Write one score; nothing where there is none of this name."""
    return decimal(scores[name], digits(name)) if name in scores else ""


def telling_score(scores: Scores) -> str:
    """Write the score that says most beside the loss, with its name; nothing where there is none."""
    return next((scores_text({name: scores[name]}) for name in TELLING if name in scores), "")
