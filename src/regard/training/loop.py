"""The loop: a generator that makes one update and yields what it saw. Saving, validating and showing are the caller's.

Everything random in update s is drawn from a generator seeded by (seed, s, micro-step), and the order of epoch e by
(seed, e): a run goes on from its place with nothing else to restore.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.random import fork_rng

from regard.config import TrainingConfig
from regard.errors import TrainingError
from regard.parts.dropout import seeded
from regard.runtime import Machine, mix
from regard.tasks.task import Examples, Indices, Task
from regard.training.averages import MovingAverage
from regard.training.optimizer import Optimizer
from regard.training.schedules import learning_rate

BAD_UPDATES = 3  # so many updates in a row without a number as their loss end the run


@dataclass(frozen=True, kw_only=True)
class Learner:
    """What takes part in an update; `total` is the number of the last one, 0 if nobody knows."""

    model: nn.Module
    task: Task
    examples: Examples
    optimizer: Optimizer
    average: MovingAverage | None
    config: TrainingConfig
    machine: Machine
    seed: int
    total: int


@dataclass
class Place:
    """Where a run stands: updates made, the epoch, batches of it already used, and bad updates so far."""

    step: int = 0
    epoch: int = 0
    batches: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one update was."""

    step: int
    epoch: int
    loss: float  # per unit of weight: a token's mean for translation
    weight: float  # how many tokens (or examples) it saw
    gradient_norm: float
    learning_rate: float
    skipped: bool
    seconds: float
    epoch_ended: bool


def updates(learner: Learner, place: Place) -> Iterator[Update]:
    """Yield one update after another from `place` on, without end; `place` moves along, to be saved by the caller."""
    while True:
        order = learner.examples.order(place.epoch)
        ended = False
        while not ended:
            group = order[place.batches : place.batches + learner.config.accumulate]
            place.step += 1
            place.batches += len(group)
            epoch, ended = place.epoch, place.batches >= len(order)
            if ended:
                place.epoch, place.batches = place.epoch + 1, 0
            yield _update(learner, place, group, epoch=epoch, epoch_ended=ended)


def gradients(learner: Learner, group: Sequence[Indices], *, step: int) -> tuple[float, float]:
    """Add up the gradients of the group's batches, as update number `step` has them; return the sums of loss and weight."""
    learner.optimizer.zero()
    total_loss, total_weight = 0.0, 0.0
    for micro, indices in enumerate(group):
        batch = learner.examples.batch(indices, learner.machine.device)
        number = mix(learner.seed, step, micro)
        with fork_rng(devices=[]), seeded(number, learner.machine.device), learner.machine.autocast():
            _seed_torch(number, learner.machine.device)
            loss, weight = learner.task.loss(learner.model, batch, smoothing=learner.config.label_smoothing)
        loss.backward()
        total_loss += float(loss.detach())
        total_weight += weight
    return total_loss, total_weight


def seconds_a_step(learner: Learner) -> float:
    """Time the gradients of two updates that are thrown away; the first one warms up."""
    kept = [buffer.clone() for buffer in learner.model.buffers()]  # a batch norm counts every batch
    order = learner.examples.order(0)
    middle = order[len(order) // 2 :][: learner.config.accumulate]
    learner.model.train()
    for _ in range(2):
        began = time.perf_counter()
        gradients(learner, middle, step=0)
        seconds = time.perf_counter() - began
    learner.optimizer.zero()
    for buffer, before in zip(learner.model.buffers(), kept, strict=True):
        buffer.copy_(before)
    return seconds


def _seed_torch(number: int, device: torch.device) -> None:
    """For the dropout of a network of the caller's own; ours does not draw from torch's common generators."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed takes two milliseconds
    if device.type == "cuda":
        torch.cuda.manual_seed(number)


def _update(learner: Learner, place: Place, group: Sequence[Indices], *, epoch: int, epoch_ended: bool) -> Update:
    """Make update number `place.step`; one whose loss or gradient is no number is skipped and counted."""
    began = time.perf_counter()
    loss, weight = gradients(learner, group, step=place.step)
    norm = _clip(learner.optimizer.gradients(), weight, learner.config.clip)
    rate = learning_rate(place.step, learner.config, total=learner.total)
    good = math.isfinite(loss) and math.isfinite(norm)
    if good:
        learner.optimizer.update(rate)
        if learner.average is not None:
            learner.average.update(place.step)
        place.skipped_in_a_row = 0
    else:
        _skip(learner, place, group)
    return Update(
        step=place.step,
        epoch=epoch,
        loss=loss / weight,
        weight=weight,
        gradient_norm=norm,
        learning_rate=rate,
        skipped=not good,
        seconds=time.perf_counter() - began,
        epoch_ended=epoch_ended,
    )


def _clip(gradients: list[Tensor], weight: float, clip: float) -> float:
    """Turn gradients of a sum into those of the mean, no longer than `clip`; return the mean's norm before clipping."""
    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))) / weight
    shrink = clip / norm if clip and norm > clip else 1.0
    if math.isfinite(norm):
        torch._foreach_mul_(gradients, shrink / weight)
    return norm


def _skip(learner: Learner, place: Place, group: Sequence[Indices]) -> None:
    place.skipped += 1
    place.skipped_in_a_row += 1
    if place.skipped_in_a_row >= BAD_UPDATES:
        lines = learner.examples.places(np.concatenate(group))
        shown = ", ".join(lines[:8]) + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")
        raise TrainingError(
            f"The loss was no number in {BAD_UPDATES} updates in a row, the last at step {place.step} (lines: {shown}).",
            "Lower training.learning_rate, or look at those lines; the last good checkpoint is kept.",
        )
