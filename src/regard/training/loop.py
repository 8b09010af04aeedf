"""The loop: a generator that makes one update and yields what it saw. Saving, validating and showing are the caller's.

Everything random in update s is drawn from a generator seeded by (seed, s, micro-step), and the order of epoch e by
(seed, e): a run goes on from its place with nothing else to restore.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, tee
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.random import fork_rng

from regard.config import TrainingConfig
from regard.errors import TrainingError
from regard.parts.dropout import seeded
from regard.runtime import Machine, mix
from regard.tasks.task import Examples, Indices, Task
from regard.training.buffers import Statistics
from regard.training.ema import MovingAverage
from regard.training.gradient_norms import is_recorded, norms_by_layer
from regard.training.optimizer import Optimizer
from regard.training.prefetch import reading_ahead
from regard.training.schedules import learning_rate

BAD_UPDATES = 3  # so many updates in a row without a number as their loss end the run


@dataclass(frozen=True, kw_only=True)
class Learner:
    """What takes part in an update.

    total:    the number of the last one, 0 if nobody knows
    workers:  threads that read batches ahead of their update
    """

    model: nn.Module
    task: Task
    examples: Examples
    optimizer: Optimizer
    average: MovingAverage | None
    config: TrainingConfig
    machine: Machine
    seed: int
    total: int
    workers: int = 0

    @cached_property
    def statistics(self) -> Statistics:
        """What the model counts of each batch."""
        return Statistics(self.model)

    def read(self, indices: Indices) -> Any:
        """Put a batch of these examples together."""
        return self.examples.batch(indices, self.machine.device)


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
    layer_norms: Mapping[str, float] = field(default_factory=dict)  # of the gradient by layer, where they are recorded


@dataclass(frozen=True)
class Portion:
    """What one update learns from: `accumulate` batches of an epoch, at its end perhaps fewer."""

    epoch: int
    batches: Sequence[Indices]
    ends_epoch: bool


def updates(learner: Learner, place: Place) -> Iterator[Update]:
    """Yield one update after another from `place` on, without end; `place` moves along, to be saved by the caller."""
    to_learn, to_read = tee(portions(learner, epoch=place.epoch, batches=place.batches))
    wanted = (indices for portion in to_read for indices in portion.batches)
    with reading_ahead(learner.read, wanted, workers=learner.workers) as batches:
        for portion in to_learn:
            place.step += 1
            place.batches += len(portion.batches)
            if portion.ends_epoch:
                place.epoch, place.batches = place.epoch + 1, 0
            yield _update(learner, place, portion, islice(batches, len(portion.batches)))


def portions(learner: Learner, *, epoch: int, batches: int) -> Iterator[Portion]:
    """Yield what the updates learn from, without end, from this epoch on, of which so many batches were used already."""
    while True:
        order = learner.examples.order(epoch)
        ends = False
        while not ends:
            used, batches = batches, batches + learner.config.accumulate
            ends = batches >= len(order)
            yield Portion(epoch, order[used:batches], ends)
        epoch, batches = epoch + 1, 0


def gradients(learner: Learner, batches: Iterable[Any], *, step: int) -> tuple[float, float]:
    """Add up the gradients of the batches, as update number `step` has them; return the sums of loss and weight."""
    learner.optimizer.zero()
    total_loss, total_weight = 0.0, 0.0
    for micro, batch in enumerate(batches):
        number = mix(learner.seed, step, micro)
        with fork_rng(devices=[]), seeded(number, learner.machine.device), learner.machine.autocast():
            _seed_torch(number, learner.machine.device)
            loss, weight = learner.task.loss(learner.model, batch, smoothing=learner.config.label_smoothing)
        loss.backward()
        total_loss += float(loss.detach())
        total_weight += weight
    return total_loss, total_weight


def seconds_per_step(learner: Learner) -> float:
    """Time the gradients of two updates that are thrown away; the first one warms up."""
    counted = learner.statistics.copy()
    order = learner.examples.order(0)
    middle = order[len(order) // 2 :][: learner.config.accumulate]
    learner.model.train()
    for _ in range(2):
        began = time.perf_counter()
        gradients(learner, map(learner.read, middle), step=0)
        seconds = time.perf_counter() - began
    learner.optimizer.zero()
    learner.statistics.restore(counted)
    return seconds


def _seed_torch(number: int, device: torch.device) -> None:
    """For the dropout of a network of the caller's own; ours does not draw from torch's common generators."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed takes two milliseconds
    if device.type == "cuda":
        torch.cuda.manual_seed(number)


def _update(learner: Learner, place: Place, portion: Portion, batches: Iterable[Any]) -> Update:
    """Make update number `place.step`; one whose loss or gradient is no number changes nothing, and is counted."""
    began = time.perf_counter()
    counted = learner.statistics.copy()
    loss, weight = gradients(learner, batches, step=place.step)
    recorded = is_recorded(place.step, every=learner.config.record_gradients)
    layer_norms = norms_by_layer(learner.model, weight=weight) if recorded else {}
    norm = _clip(learner.optimizer.gradients(), weight, learner.config.clip)
    rate = learning_rate(place.step, learner.config, total=learner.total)
    good = math.isfinite(loss) and math.isfinite(norm)
    if good:
        learner.optimizer.update(rate)
        if learner.average is not None:
            learner.average.update(place.step)
        place.skipped_in_a_row = 0
    else:
        learner.statistics.restore(counted)
        _skip(learner, place, portion)
    return Update(
        step=place.step,
        epoch=portion.epoch,
        loss=loss / weight,
        weight=weight,
        gradient_norm=norm,
        learning_rate=rate,
        skipped=not good,
        seconds=time.perf_counter() - began,
        epoch_ended=portion.ends_epoch,
        layer_norms=layer_norms,
    )


def _clip(gradients: list[Tensor], weight: float, clip: float) -> float:
    """Turn gradients of a sum into those of the mean, no longer than `clip`; return the mean's norm before clipping."""
    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))) / weight
    shrink = clip / norm if clip and norm > clip else 1.0
    if math.isfinite(norm):
        torch._foreach_mul_(gradients, shrink / weight)
    return norm


def _skip(learner: Learner, place: Place, portion: Portion) -> None:
    place.skipped += 1
    place.skipped_in_a_row += 1
    if place.skipped_in_a_row >= BAD_UPDATES:
        lines = learner.examples.places(np.concatenate(portion.batches))
        shown = ", ".join(lines[:8]) + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")
        raise TrainingError(
            f"The loss was no number in {BAD_UPDATES} updates in a row, the last at step {place.step} (lines: {shown}).",
            "Lower training.learning_rate, or look at those lines; the last good checkpoint is kept.",
        )
