"""The memory of a training step, estimated before the first one: a batch that cannot fit is refused, not killed.

Counted is what a step holds at once whatever the allocator does: the activations that autograd keeps for the backward pass,
and the optimizer's state. Some examples of the largest batch are read, then twice as many: the others cost in proportion.
What a step takes beyond that (gradients, buffers of kernels) is not counted, so that nothing is refused that might have
fitted: real steps took 1.3 to 2.3 times as much (docs/LOG.md).
"""

import math
from dataclasses import dataclass

import numpy as np

from regard import runtime
from regard.errors import ConfigError
from regard.tasks.task import Indices
from regard.training.loop import Trainer, batch_loss
from regard.training.optimizer import count_state
from regard.training.saved_activations import SavedActivations

FEWEST = 8  # examples of a batch from which on a part of it stands for the whole
MOST_READ = 8  # of them that are read
SAFE = 0.4  # share of the free memory that a batch may be estimated to take to be recommended


@dataclass(frozen=True, kw_only=True)
class StepMemory:
    """The bytes that a step needs: those for each of its examples, and those for any number.

    size: how many tokens or images its batch has
    """

    size: int
    n_examples: int
    per_example: float
    fixed: float

    @property
    def needed(self) -> float:
        return self.fixed + self.n_examples * self.per_example

    def fitting(self, free: float) -> int:
        """How many tokens or images fit into so many bytes, for sure, in two digits; 0 if not those of an example."""
        share = (SAFE * free - self.fixed) / (self.n_examples * self.per_example)
        if share * self.n_examples < 1:
            return 0
        number = int(share * self.size)
        unit: int = 10 ** max(0, len(str(number)) - 2)
        return number - number % unit


def refuse_too_large(trainer: Trainer) -> None:
    """Refuse to train with batches for which memory does not suffice; name a number that would fit."""
    step = estimate_step(trainer)
    runtime.release_freed_memory()
    free = runtime.available_memory(trainer.machine.device)
    if step is None or free is None or step.needed <= free:
        return
    unit = trainer.task.spec.batch_unit
    number = step.fitting(free)
    times = trainer.config.accumulate * math.ceil(step.size / number) if number else 0
    raise ConfigError(
        f"A batch of {step.size:,} {unit} needs more than {step.needed / 1e9:,.1f} GB of memory, and "
        f"{free / 1e9:,.1f} GB are free.",
        f"Lower it: --batch-{unit} {number}; with --set training.accumulate={times} an update reads as much."
        if number
        else "Choose a smaller model, or shorter examples.",
    )


def estimate_step(trainer: Trainer) -> StepMemory | None:
    """Estimate a step of the largest batch; None if it has so few examples that no part of it stands for the whole."""
    batch = max(trainer.examples.order(0), key=trainer.examples.size)
    if len(batch) < FEWEST:
        return None
    count = min(MOST_READ, len(batch) // 2) // 2
    buffers = trainer.buffers.copy()
    trainer.model.train()
    less, more = (_saved_bytes(trainer, _spread(batch, number)) for number in (count, 2 * count))
    trainer.buffers.restore(buffers)
    per_example = max(1.0, (more - less) / count)
    ranks = trainer.world.ranks
    return StepMemory(
        size=trainer.examples.size(batch),
        n_examples=math.ceil(len(batch) * ranks.local_size / ranks.size),  # what the processes of this machine share
        per_example=per_example,
        fixed=max(0.0, less - count * per_example) + _optimizer_bytes(trainer),
    )


def _spread(batch: Indices, count: int) -> Indices:
    """So many examples of a batch, which is sorted by length: the longest, to which all are padded, and others."""
    return batch[np.linspace(0, len(batch) - 1, count).round().astype(np.int64)]


def _saved_bytes(trainer: Trainer, examples: Indices) -> int:
    saved = SavedActivations(trainer.model)
    with saved.hooks():
        batch_loss(trainer, trainer.collate(examples), seed=runtime.mix(trainer.seed, "memory"))
    return saved.n_bytes


def _optimizer_bytes(trainer: Trainer) -> int:
    """The bytes that the optimizer's state will take, if there is none yet."""
    return 0 if trainer.optimizer.state() else 4 * count_state(trainer.model, trainer.config.optimizer)
