"""Step timing: a few real training steps of a planned model on this machine, to see its throughput. Seconds at most.

The batch is as large a share of the planned one as a second or two are expected to be enough for, down to one sequence,
which is cut if need be, or to an image or two, which are not: some models read one size alone. What a step costs whatever
its batch (gradients to be made and added, weights to be fetched) would count for too much in a small one: a tiny batch is
timed beside it, and the optimizer's update by itself.
"""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from regard import runtime
from regard.config import RuntimeConfig, TrainingConfig
from regard.errors import UsageError
from regard.models.presets import build_model
from regard.parts.dropout import seeded
from regard.training.batch_shape import AnyBatchShape, BatchShape, ImageBatchShape
from regard.training.cost import meta_model, min_batch_size, training_flops
from regard.training.devices import THIS, Devices, this_machine
from regard.training.optimizer import Optimizer
from regard.training.plan import Plan, needed_memory
from regard.training.synthetic_batch import synthetic_loss

BATCH_SECONDS = 1.5  # that the gradients of a batch should take
TINY = 4  # tokens in the sequence beside it
LIMIT = 6.0  # seconds after which no further round begins
ROUNDS = 3
ROOM = 0.8  # the share of the free memory that may be taken


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was timed on this machine: the gradients of a batch, those of a tiny one, and an update; the fastest of each.

    batch:  a share of the planned one
    flops:  of its gradients, the forward pass included
    """

    devices: Devices
    batch: AnyBatchShape
    flops: float
    gradient_seconds: float
    tiny_flops: float
    tiny_seconds: float
    update_seconds: float

    def seconds_per_step(self, plan: Plan) -> float:
        """How long a step of the plan takes here: the line through the two batches, and an update."""
        more_flops, more_seconds = self.flops - self.tiny_flops, self.gradient_seconds - self.tiny_seconds
        if more_flops <= 0 or more_seconds <= 0:  # as good as one batch, or a machine that was disturbed
            more_flops, more_seconds = self.flops, self.gradient_seconds
        beyond = (plan.flops_per_step - self.flops) * more_seconds / more_flops
        return self.gradient_seconds + beyond + self.update_seconds

    def seconds(self, plan: Plan) -> float:
        """How long the whole plan takes here."""
        return plan.steps * self.seconds_per_step(plan)

    def flops_per_second(self, plan: Plan) -> float:
        """What the machine reaches in a step of the plan."""
        return plan.flops_per_step / self.seconds_per_step(plan)

    def utilisation(self, plan: Plan) -> float:
        """The share of the measured peak that this is."""
        return self.flops_per_second(plan) / self.devices.peak


def measure(plan: Plan) -> Measurement:
    """Time a training step of the planned model on this machine, whatever devices the plan is for."""
    devices = plan.devices if plan.devices.name == THIS else this_machine()
    machine = runtime.prepare(RuntimeConfig(precision=devices.precision))
    network = meta_model(plan.config)
    batch = _fitting_batch(plan, network, seconds=BATCH_SECONDS, peak=devices.peak)
    tiny = _tiny_batch(network, batch)
    _refuse_too_large(plan, needed_memory(network, batch, devices, optimizer=plan.optimizer).total, machine.device)
    with runtime.denormals_as_zero():
        gradient_seconds, tiny_seconds, update_seconds = _time_steps(plan, batch, tiny, machine)
    return Measurement(
        devices=devices,
        batch=batch,
        flops=training_flops(network, batch),
        gradient_seconds=gradient_seconds,
        tiny_flops=training_flops(network, tiny),
        tiny_seconds=tiny_seconds,
        update_seconds=update_seconds,
    )


def _fitting_batch(plan: Plan, network: nn.Module, *, seconds: float, peak: float) -> AnyBatchShape:
    """Choose a share of the planned batch that should take so long: fewer sequences, or one that is cut; fewer images."""
    enough = seconds * peak * plan.utilisation
    one = plan.batch.with_examples(1)
    if isinstance(one, BatchShape):
        one = replace(one, target_length=round(one.target_length))
    flops = training_flops(network, one)
    while flops > enough and isinstance(one, BatchShape) and one.length > 1:
        # Of no target stays none, of one token one.
        one = replace(one, length=one.length // 2, target_length=-(-one.target_length // 2))
        flops = training_flops(network, one)
    return one.with_examples(max(min_batch_size(network), min(round(plan.batch.n_examples), int(enough / flops))))


def _tiny_batch(network: nn.Module, batch: AnyBatchShape) -> AnyBatchShape:
    """The smallest batch: one sequence of a few tokens, or as few images as can be."""
    if isinstance(batch, ImageBatchShape):
        return batch.with_examples(min_batch_size(network))
    return BatchShape(n_sequences=1, length=min(TINY, batch.length), target_length=min(TINY, batch.target_length))


def _time_steps(
    plan: Plan, batch: AnyBatchShape, tiny: AnyBatchShape, machine: runtime.Machine
) -> tuple[float, float, float]:
    """Return the seconds of the gradients of both batches and of an update: the fastest, but for the first round."""
    model = build_model(plan.config).to(machine.device).train()
    optimizer = Optimizer(model, TrainingConfig(optimizer=plan.optimizer))
    began = time.perf_counter()
    rounds: list[tuple[float, float, float]] = []
    while not rounds or (len(rounds) <= ROUNDS and time.perf_counter() - began < LIMIT):
        own = _gradient_seconds(model, optimizer, batch, machine)
        small = own if tiny == batch else _gradient_seconds(model, optimizer, tiny, machine)
        start = time.perf_counter()
        optimizer.update(0.0)  # which costs the same, and keeps the weights
        _wait(machine.device)
        rounds.append((own, small, time.perf_counter() - start))
    own, small, update = (min(column) for column in zip(*(rounds[1:] or rounds), strict=True))
    return own, small, update


def _gradient_seconds(model: nn.Module, optimizer: Optimizer, batch: AnyBatchShape, machine: runtime.Machine) -> float:
    start = time.perf_counter()
    optimizer.zero_grad()
    with seeded(0, machine.device), machine.autocast():
        loss = synthetic_loss(model, batch, device=machine.device)
    loss.backward()
    _wait(machine.device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize()


def _refuse_too_large(plan: Plan, needed: int, device: torch.device) -> None:
    free = free_memory() if device.type == "cpu" else None
    if free is not None and needed > ROOM * free:
        raise UsageError(
            f"A step of {plan.model} needs at least {needed / 1e9:.2g} GB, and this machine has {free / 1e9:.2g} GB free.",
            "Measure a smaller model, or leave the measurement out.",
        )


def free_memory() -> int | None:
    """Return the bytes that new memory can be had of without swapping; None where nobody says."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
