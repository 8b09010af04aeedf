"""When a run is over: a pure function of its settings and of where it stands."""

from regard.config import TrainingConfig
from regard.evaluation.metrics import find_metric


def reason_to_end(training: TrainingConfig, *, step: int, epoch: int, seconds: float, worse: int) -> str:
    """Say why the run is over, or nothing if it is not; `worse` counts validations in a row without a better one."""
    if training.steps and step >= training.steps:
        return f"{training.steps:,} steps are done"
    if training.epochs and epoch >= training.epochs and step >= training.min_steps:
        waited = f" and {training.min_steps:,} steps" if epoch > training.epochs and training.min_steps else ""
        return f"{training.epochs:,} epochs{waited} are done"
    if training.minutes and seconds >= 60 * training.minutes:
        return f"{training.minutes:g} minutes are over"
    if training.patience and worse >= training.patience:
        return f"{training.patience} validations brought no better {find_metric(training.best_by).label}"
    return ""
