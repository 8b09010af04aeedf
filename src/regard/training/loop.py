"""The training loop: gradient accumulation, gradient clipping, one update; a generator that yields what it saw.

Saving, validating and showing are the caller's. Everything random in update s is drawn from a generator seeded by
(seed, s, micro-step), and the order of epoch e by (seed, e): a run goes on from its cursor with nothing else to restore.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from regard.training.buffers import SavedBuffers
from regard.training.distributed import World
from regard.training.ema import WeightEMA
from regard.training.gradient_norms import is_recorded, norms_by_layer
from regard.training.optimizer import Optimizer
from regard.training.prefetch import prefetch
from regard.training.schedules import projected_total, scheduled_share
from regard.training.state import Cursor

MAX_SKIPPED = 3  # so many updates in a row with a NaN or infinite loss or gradient end the run


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """What takes part in an update.

    total:    the number of the last one by steps or epochs; 0: no limit
    elapsed:  the seconds that the run has taken so far
    workers:  threads that prefetch batches
    world:    the processes that share the work
    """

    model: nn.Module
    task: Task
    examples: Examples
    optimizer: Optimizer
    ema: WeightEMA | None
    config: TrainingConfig
    machine: Machine
    seed: int
    total: int
    elapsed: Callable[[], float] = lambda: 0.0
    workers: int = 0
    world: World = field(default_factory=World)

    @cached_property
    def buffers(self) -> SavedBuffers:
        """What the model tracks of each batch, beside its weights."""
        return SavedBuffers(self.model)

    def collate(self, indices: Indices) -> Any:
        """Put this process's share of a batch of these examples together; None where it has none of them."""
        own = self.world.share(indices, self.examples)
        return self.examples.batch(own, self.machine.device) if len(own) else None


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one update was."""

    step: int
    epoch: int
    loss: float  # per unit of weight: per token for translation
    weight: float  # how many tokens (or examples) it saw
    gradient_norm: float
    learning_rate: float
    skipped: bool
    seconds: float
    epoch_ended: bool
    layer_norms: Mapping[str, float] = field(default_factory=dict)  # of the gradient by layer, where they are recorded


@dataclass(frozen=True)
class BatchGroup:
    """The batches whose gradients one update accumulates: `accumulate` of an epoch, at its end perhaps fewer."""

    epoch: int
    batches: Sequence[Indices]
    ends_epoch: bool


def updates(trainer: Trainer, cursor: Cursor) -> Iterator[Update]:
    """Yield one update after another from `cursor` on, until the leader ends them; `cursor` moves along, to be saved."""
    to_learn, to_read = tee(batch_groups(trainer, epoch=cursor.epoch, batches=cursor.batches))
    wanted = (indices for group in to_read for indices in group.batches)
    with prefetch(trainer.collate, wanted, workers=trainer.workers) as batches:
        for group in to_learn:
            cursor.step += 1
            cursor.batches += len(group.batches)
            if group.ends_epoch:
                cursor.epoch, cursor.batches = cursor.epoch + 1, 0
            seconds = trainer.world.begin_update(trainer.elapsed())
            if seconds is None:
                return
            yield _update(trainer, cursor, group, islice(batches, len(group.batches)), elapsed=seconds)


def batch_groups(trainer: Trainer, *, epoch: int, batches: int) -> Iterator[BatchGroup]:
    """Yield the batches of each update, without end, from this epoch on, of which so many were used already."""
    while True:
        order = trainer.examples.order(epoch)
        ends = False
        while not ends:
            used, batches = batches, batches + trainer.config.accumulate
            ends = batches >= len(order)
            yield BatchGroup(epoch, order[used:batches], ends)
        epoch, batches = epoch + 1, 0


def gradients(trainer: Trainer, batches: Iterable[Any], *, step: int) -> tuple[float, float]:
    """Accumulate the gradients of update number `step`, over its batches and all processes; return the sums."""
    trainer.optimizer.zero_grad()
    total_loss, total_weight = 0.0, 0.0
    for micro, batch in enumerate(batches):
        if batch is None:
            continue
        loss, weight = batch_loss(trainer, batch, seed=trainer.world.seed(mix(trainer.seed, step, micro)))
        loss.backward()
        total_loss += float(loss.detach())
        total_weight += weight
    return trainer.world.add_up(list(trainer.optimizer.named.values()), total_loss, total_weight)


def batch_loss(trainer: Trainer, batch: Any, *, seed: int) -> tuple[Tensor, float]:
    """The forward pass: the sum of the losses of a batch, and its weight; whatever is random in it is of this seed."""
    device = trainer.machine.device
    with fork_rng(devices=[]), seeded(seed, device), trainer.machine.autocast():
        _seed_torch(seed, device)
        return trainer.task.loss(trainer.model, batch, smoothing=trainer.config.label_smoothing)


def seconds_per_step(trainer: Trainer) -> float:
    """Time the gradients of two updates that are thrown away; the first one warms up."""
    buffers = trainer.buffers.copy()
    order = trainer.examples.order(0)
    middle = order[len(order) // 2 :][: trainer.config.accumulate]
    trainer.model.train()
    for _ in range(2):
        began = time.perf_counter()
        gradients(trainer, map(trainer.collate, middle), step=0)
        seconds = time.perf_counter() - began
    trainer.optimizer.zero_grad()
    trainer.buffers.restore(buffers)
    return seconds


def _seed_torch(number: int, device: torch.device) -> None:
    """For the dropout of a network of the caller's own; ours does not draw from torch's common generators."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed takes two milliseconds
    if device.type == "cuda":
        torch.cuda.manual_seed(number)


def _update(trainer: Trainer, cursor: Cursor, group: BatchGroup, batches: Iterable[Any], *, elapsed: float) -> Update:
    """Make update number `cursor.step`; one with a NaN or infinite loss or gradient changes nothing, and is counted."""
    began = time.perf_counter()
    buffers = trainer.buffers.copy()
    loss, weight = gradients(trainer, batches, step=cursor.step)
    recorded = is_recorded(cursor.step, every=trainer.config.record_gradients)
    layer_norms = norms_by_layer(trainer.model, weight=weight) if recorded else {}
    norm = _clip(trainer.optimizer.gradients(), weight, trainer.config.clip)
    total = projected_total(trainer.total, minutes=trainer.config.minutes, step=cursor.step, seconds=elapsed)
    share = scheduled_share(cursor.step, trainer.config, total=total)
    good = math.isfinite(loss) and math.isfinite(norm)
    if good:
        with trainer.machine.autocast():  # Muon's products are of the run's precision
            trainer.optimizer.update(share)
        if trainer.ema is not None:
            trainer.ema.update(cursor.step)
        cursor.skipped_in_a_row = 0
    else:
        trainer.buffers.restore(buffers)
        _skip(trainer, cursor, group)
    return Update(
        step=cursor.step,
        epoch=group.epoch,
        loss=loss / weight,
        weight=weight,
        gradient_norm=norm,
        learning_rate=trainer.config.learning_rate * share,
        skipped=not good,
        seconds=time.perf_counter() - began,
        epoch_ended=group.ends_epoch,
        layer_norms=layer_norms,
    )


def _clip(gradients: list[Tensor], weight: float, clip: float) -> float:
    """Turn gradients of a sum into those of the mean, clipped to the norm `clip`; return the mean's norm before clipping."""
    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))) / weight
    shrink = clip / norm if clip and norm > clip else 1.0
    if math.isfinite(norm):
        torch._foreach_mul_(gradients, shrink / weight)
    return norm


def _skip(trainer: Trainer, cursor: Cursor, group: BatchGroup) -> None:
    cursor.skipped += 1
    cursor.skipped_in_a_row += 1
    if cursor.skipped_in_a_row >= MAX_SKIPPED:
        places = trainer.examples.places(np.concatenate(group.batches))
        shown = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
        raise TrainingError(
            f"Loss or gradient was NaN or infinite for {MAX_SKIPPED} consecutive steps, the last at step {cursor.step} "
            f"(read from {shown}).",
            "Lower the learning rates, or check what is read there; the last good checkpoint is kept.",
        )
