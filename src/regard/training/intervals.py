"""Validation and checkpoint intervals: after which updates a run is validated and saved, and which is its last."""

import math

from regard.config import TrainingConfig
from regard.tasks.task import Examples

COUNTED = 5_000_000  # examples of all epochs together whose batches are counted, which takes seconds
MIN_VALIDATION_INTERVAL = 100  # updates, where epochs are shorter and no interval is set


def steps_per_epoch(n_batches: int, training: TrainingConfig) -> int:
    """The updates of one pass over the data."""
    return math.ceil(n_batches / training.accumulate)


def steps_in_epochs(examples: Examples, training: TrainingConfig) -> int:
    """The updates of all epochs; of very many examples those of the first, times the number of epochs.

    Where texts are long, epochs differ in their number of batches: which are cut together is a matter of chance.
    """
    if training.epochs * len(examples) > COUNTED:
        return training.epochs * steps_per_epoch(len(examples.order(0)), training)
    return sum(steps_per_epoch(len(examples.order(epoch)), training) for epoch in range(training.epochs))


def last_step(training: TrainingConfig, *, steps_in_epochs: int) -> int:
    """The number of the last update, at which a schedule ends; 0 if nobody knows."""
    by_epochs = max(steps_in_epochs, training.min_steps) if training.epochs else 0
    return min((end for end in (training.steps, by_epochs) if end), default=0)


def validation_is_due(training: TrainingConfig, *, step: int, steps_per_epoch: int) -> bool:
    """Whether a validation follows update number `step`: by training.validate_every, or once per epoch."""
    every = training.validate_every or max(MIN_VALIDATION_INTERVAL, steps_per_epoch)
    return step > 0 and step % every == 0


def save_is_due(training: TrainingConfig, *, step: int, seconds: float) -> bool:
    """Whether a checkpoint is saved after update number `step`, so many seconds after the one before."""
    by_steps = training.save_every_steps and step % training.save_every_steps == 0
    by_time = training.save_every_minutes and seconds >= 60 * training.save_every_minutes
    return bool(by_steps or by_time)
