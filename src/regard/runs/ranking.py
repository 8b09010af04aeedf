"""Ranking of validations, for the best checkpoint: by the metric that the run is after (`training.best_by`).

Loads nothing large: whoever lists runs need not wait for it.
"""

import math
from collections.abc import Mapping
from typing import Any

from regard.evaluation.metrics import find_metric

RankKey = tuple[int, float, float]
UNRANKED: RankKey = (-3, -math.inf, -math.inf)


def rank_key(validation: Mapping[str, Any], best_by: str) -> RankKey:
    """How good a validation is, larger for a better one; UNRANKED without one, or where its loss is NaN or infinite.

    Where it lacks the metric, the accuracy counts (tags that name no entities have no entity F1), else the loss (of equal
    predictions there is no Spearman), but any validation that has the metric is better. Of equal ones, that with the lower
    loss is.
    """
    loss = validation.get("loss")
    if loss is None or not math.isfinite(loss):
        return UNRANKED
    for place, name in enumerate((best_by, "accuracy", "loss")):
        value = validation.get(name)
        if value is not None:
            return -place, value if find_metric(name).higher_is_better else -value, -loss
    return UNRANKED


def prefers_average(average: Mapping[str, Any], best: Mapping[str, Any], best_by: str) -> bool:
    """Tell whether a run's plain name means its average, by the scores of both: unless the best checkpoint is better."""
    scored = "loss" in average and "loss" in best
    return not scored or rank_key(average, best_by) >= rank_key(best, best_by)
