"""Which of two validations is better, by the score that the run is after (`training.best_by`).

Loads nothing large: whoever lists runs need not wait for it.
"""

import math
from collections.abc import Mapping
from typing import Any

from regard.evaluation.metrics import find_metric

Worth = tuple[int, float, float]
NOTHING: Worth = (-3, -math.inf, -math.inf)


def worth(validation: Mapping[str, Any], best_by: str) -> Worth:
    """How good a validation is, larger for a better one; NOTHING where nothing is known of it, or its loss is no number.

    Where it lacks the score, the accuracy counts (tags that name no entities have no entity F1), else the loss (of equal
    answers there is no Spearman), but any validation that has the score is better. Of equal ones that of the lower loss is.
    """
    loss = validation.get("loss")
    if loss is None or not math.isfinite(loss):
        return NOTHING
    for place, name in enumerate((best_by, "accuracy", "loss")):
        value = validation.get(name)
        if value is not None:
            return -place, value if find_metric(name).higher_is_better else -value, -loss
    return NOTHING


def prefers_average(average: Mapping[str, Any], best: Mapping[str, Any], best_by: str) -> bool:
    """Tell whether a run's plain name means its average, by the scores of both: unless the best checkpoint is better."""
    scored = "loss" in average and "loss" in best
    return not scored or worth(average, best_by) >= worth(best, best_by)
