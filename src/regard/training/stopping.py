"""Early stopping and the other ends of a run, and overfitting: pure functions of its settings and its training state."""

from dataclasses import dataclass

from regard.config import TrainingConfig
from regard.evaluation.metrics import find_metric

OVERFITTED = 1.02  # so many times the lowest validation loss is clearly higher
N_OVERFITTED = 2  # validations in a row that show it


@dataclass(frozen=True)
class End:
    """Why a run is over: the key of [training] whose limit is reached, and a sentence for people."""

    limit: str
    reason: str


def reached_end(training: TrainingConfig, *, step: int, epoch: int, seconds: float, not_improved: int) -> End | None:
    """Say why the run is over; None if it is not.

    not_improved: validations in a row without a better score; `training.patience` of them stop the run early
    """
    if training.steps and step >= training.steps:
        return End("steps", f"{training.steps:,} steps are done")
    if training.epochs and epoch >= training.epochs and step >= training.min_steps:
        waited = f" and {training.min_steps:,} steps" if epoch > training.epochs and training.min_steps else ""
        return End("epochs", f"{training.epochs:,} epochs{waited} are done")
    if training.minutes and seconds >= 60 * training.minutes:
        return End("minutes", f"{training.minutes:g} minutes are over")
    if training.patience and not_improved >= training.patience:
        best_by = find_metric(training.best_by).label
        return End("patience", f"early stopping: no better {best_by} in {training.patience} validations")
    return None


def is_overfitted(loss: float, *, lowest: float) -> bool:
    """Whether a validation loss has clearly risen above the lowest one."""
    return loss > lowest + (OVERFITTED - 1) * abs(lowest)


def overfitting_note(*, loss: float, lowest: float, step: int) -> str:
    """What the user should know when the validation loss rises, whose lowest value was that of `step`."""
    return (
        f"the validation loss rises: it is {loss:.3f}, and was {lowest:.3f} at step {step:,}. The model overfits: more"
        " dropout (model.dropout), a smaller model or more data help."
    )
