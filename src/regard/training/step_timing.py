"""Step timing: a few real training steps of a planned model on this machine, to see its throughput. Seconds at most.

The batch is as large a share of the planned one as a second or two are expected to be enough for, down to one sequence,
which is cut if need be, or to an image or two, which are not: some models read one size alone. What a step costs whatever
its batch (gradients to be made and added, weights to be fetched) would count for too much in a small one: a tiny batch is
timed beside it, and the optimizer's update by itself.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from regard import runtime
from regard.config import RuntimeConfig
from regard.errors import UsageError
from regard.training.batch_shape import AnyBatchShape, BatchShape, ImageBatchShape
from regard.training.cost import count_activations, meta_model, min_batch_size, training_flops
from regard.training.devices import THIS, Devices, this_machine
from regard.training.plan import Plan, needed_memory
from regard.training.step_trial import Timed, Trial, time_rounds, time_together

BATCH_SECONDS = 1.5  # that the gradients of a batch should take
TINY = 4  # tokens in the sequence beside it
ROOM = 0.8  # the share of the free memory that may be taken


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was timed on this machine: the gradients of a batch, those of a tiny one, and an update; the fastest of each.

    batch:  a share of the planned one
    flops:  of its gradients, the forward pass included
    processes:  among which the planned batch is shared
    turns:  how often as long each takes as when it was timed, because there are more of them for the same processors
    all_reduce_seconds: until the processes have the sum of their gradients
    """

    devices: Devices
    batch: AnyBatchShape
    flops: float
    gradient_seconds: float
    tiny_flops: float
    tiny_seconds: float
    update_seconds: float
    processes: int = 1
    turns: float = 1.0
    all_reduce_seconds: float = 0.0

    def seconds_per_step(self, plan: Plan) -> float:
        """How long a step of the plan takes here: the line through the two batches, an update, the sum of gradients."""
        more_flops, more_seconds = self.flops - self.tiny_flops, self.gradient_seconds - self.tiny_seconds
        if more_flops <= 0 or more_seconds <= 0:  # as good as one batch, or a machine that was disturbed
            more_flops, more_seconds = self.flops, self.gradient_seconds
        beyond = (plan.flops_per_step / self.processes - self.flops) * more_seconds / more_flops
        return self.turns * (self.gradient_seconds + beyond + self.update_seconds) + self.all_reduce_seconds

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
    """Time a training step of the planned model on this machine, whatever devices the plan is for.

    Of a plan for several processes here, as many are started as there are processors for, but two at least.
    """
    devices = plan.devices if plan.devices.name == THIS else this_machine()
    machine = runtime.prepare(RuntimeConfig(precision=devices.precision))
    network = meta_model(plan.config)
    share = plan.batch.with_examples(plan.batch.n_examples / devices.n_devices)
    batch = _fitting_batch(share, network, flops=BATCH_SECONDS * devices.peak * plan.utilisation)
    tiny = _tiny_batch(network, batch)
    trial = Trial(config=plan.config, optimizer=plan.optimizer, batch=batch, tiny=tiny)
    n_workers = min(devices.n_devices, max(2, runtime.cores()))
    _refuse_too_large(plan, n_workers * _needed(plan, network, batch, devices), machine.device)
    if n_workers == 1:
        timed = Timed(*(min(column) for column in zip(*time_rounds(trial, machine), strict=True)))
    else:
        timed = time_together(trial, n_workers, precision=devices.precision)
    # In a ring of n processes, each carries 2 (n - 1) / n of the bytes, and all of them share the processors.
    carried = (devices.n_devices - 1) / max(1, n_workers - 1)
    return Measurement(
        devices=devices,
        batch=batch,
        flops=training_flops(network, batch),
        gradient_seconds=timed.gradient_seconds,
        tiny_flops=training_flops(network, tiny),
        tiny_seconds=timed.tiny_seconds,
        update_seconds=timed.update_seconds,
        processes=devices.n_devices,
        turns=devices.n_devices / n_workers,
        all_reduce_seconds=carried * timed.all_reduce_seconds,
    )


def _needed(plan: Plan, network: nn.Module, batch: AnyBatchShape, devices: Devices) -> int:
    """The bytes that a step of this batch needs here."""
    activations = count_activations(network, batch, on_cpu=devices.on_cpu, precision=devices.precision)
    alone = replace(devices, n_devices=1)
    return needed_memory(replace(plan.work, n_examples=batch.n_examples), activations, alone).total


def _fitting_batch(share: AnyBatchShape, network: nn.Module, *, flops: float) -> AnyBatchShape:
    """Choose a part of a batch that has so many FLOPs: fewer sequences, or one that is cut; fewer images."""
    one = share.with_examples(1)
    if isinstance(one, BatchShape):
        one = replace(one, target_length=round(one.target_length))
    of_one = training_flops(network, one)
    while of_one > flops and isinstance(one, BatchShape) and one.length > 1:
        # Of no target stays none, of one token one.
        one = replace(one, length=one.length // 2, target_length=-(-one.target_length // 2))
        of_one = training_flops(network, one)
    return one.with_examples(max(min_batch_size(network), min(round(share.n_examples), int(flops / of_one))))


def _tiny_batch(network: nn.Module, batch: AnyBatchShape) -> AnyBatchShape:
    """The smallest batch: one sequence of a few tokens, or as few images as can be."""
    if isinstance(batch, ImageBatchShape):
        return batch.with_examples(min_batch_size(network))
    return BatchShape(n_sequences=1, length=min(TINY, batch.length), target_length=min(TINY, batch.target_length))


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
