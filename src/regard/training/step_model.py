"""The time of a training step on many devices: a model of compute, memory, communication and waiting. Nothing is run.

compute        FLOPs by peak and utilisation; but never less than it takes to start the kernels, or to read the weights
waiting        for the slowest device: none takes a part of an example, and no two are equally fast
communication  replicated: all-reduce of the gradients, in buckets, while the backward pass goes on. Sharded, as FSDP does
               it: all-gather of the weights of each block before its forward and its backward pass, reduce-scatter of
               its gradients. Exposed is what computing does not hide: on a CPU, which does both, all of it
update         the optimizer's reads and writes, and Muon's products; sharded, each device updates its share
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from regard.parts.stack import find_stacks
from regard.training.devices import Devices
from regard.training.interconnect import Interconnect

FLOAT = 4  # bytes: weights, gradients and moments are fp32 in every precision
BUCKET = 25 * 2**20  # bytes of gradients that are reduced together, as DistributedDataParallel has it
# Assumptions. An eager kernel of PyTorch takes the CPU some 5 µs; one device differs from another by a hundredth of a step.
LAUNCH = 5e-6
JITTER = 0.01
FORWARD, BACKWARD = 1 / 3, 2 / 3  # shares of the FLOPs
NOTABLE = 0.1  # the share of a step from which on something limits it


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a step does, however many devices share it.

    kernels:       of one device, both ways; 0 where nobody counted
    units:         the parameters of each block, which are gathered together where weights are sharded; last, the others
    state:         how many numbers the optimizer keeps
    update_flops:  of Muon's products; each device makes all of them, sharded too, as they need whole matrices
    """

    flops: float
    n_examples: float
    kernels: int
    units: tuple[int, ...]
    state: int
    update_flops: float

    @property
    def parameters(self) -> int:
        return sum(self.units)


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The seconds of a step, by what they are for.

    ideal:          of compute, what the FLOPs take
    compute:        of a device with the mean share of the batch
    communication:  while it goes on, hidden or not; latency: of that, what it would take without any bytes
    exposed:        of communication, what nothing hides
    """

    ideal: float
    compute: float
    waiting: float
    communication: float
    latency: float
    exposed: float
    update: float

    @property
    def seconds(self) -> float:
        return self.compute + self.waiting + self.exposed + self.update

    @property
    def limit(self) -> str:
        """What costs most beside the FLOPs; empty where nothing costs a tenth of the step."""
        wire = "latency" if self.latency > self.communication / 2 else "bandwidth"
        losses = {
            "few examples per device": self.compute - self.ideal,
            "stragglers": self.waiting,
            wire: self.exposed,
            "update": self.update,
        }
        worst = max(losses, key=losses.__getitem__)
        return worst if losses[worst] >= NOTABLE * self.seconds else ""


def step_time(
    work: Work, devices: Devices, interconnect: Interconnect, *, utilisation: float, sharded: bool
) -> StepTime:
    """Model a step of this work on these devices."""
    n, speed = devices.n_devices, devices.peak * utilisation
    ideal = work.flops / n / speed
    least = _least_compute(work, devices)
    each = work.n_examples / n
    slowest = max(ideal * (math.ceil(each) / each if n > 1 else 1), least) * (1 + JITTER * normal_maximum(n))
    compute = max(ideal, least)
    parts = _sharded if sharded else _replicated
    communication, exposed = parts(work, devices, interconnect, slowest)
    products = work.update_flops / ((devices.fastest or devices.peak) * utilisation)
    latency, _ = parts(work, devices, interconnect, slowest, scale=0.0)
    return StepTime(
        ideal=ideal,
        compute=compute,
        waiting=slowest - compute,
        communication=communication,
        latency=latency,
        exposed=exposed,
        update=_update_bytes(work) / (n if sharded else 1) * _per_byte(devices) + products,
    )


def _least_compute(work: Work, devices: Devices) -> float:
    """What a step takes with hardly any examples: its kernels started, its weights read once forwards, twice backwards."""
    starts = 0.0 if devices.on_cpu else work.kernels * LAUNCH
    return max(starts, 3 * FLOAT * work.parameters * _per_byte(devices))


def _update_bytes(work: Work) -> int:
    """Weights and state are read and written, gradients are read twice: they are clipped by their norm."""
    return FLOAT * (4 * work.parameters + 2 * work.state)


def _per_byte(devices: Devices) -> float:
    return 1 / devices.bandwidth if devices.bandwidth else 0.0


def _replicated(
    work: Work, devices: Devices, interconnect: Interconnect, compute: float, *, scale: float = 1.0
) -> tuple[float, float]:
    """Return the seconds of communication, and of that what the backward pass does not hide; `scale`: of all bytes."""
    if devices.n_devices == 1:
        return 0.0, 0.0
    size = FLOAT * work.parameters
    n_buckets = math.ceil(size / BUCKET)
    bucket = interconnect.all_reduce(scale * size / n_buckets)
    sums = interconnect.all_reduce(0)  # of the weights of all examples, by which the gradients are divided
    total = n_buckets * bucket + sums
    return total, _exposed([bucket] * n_buckets, hidden_by=_free(devices) * BACKWARD * compute) + sums


def _sharded(
    work: Work, devices: Devices, interconnect: Interconnect, compute: float, *, scale: float = 1.0
) -> tuple[float, float]:
    if devices.n_devices == 1:
        return 0.0, 0.0
    width = gathered_width(devices.precision)
    gathers = [interconnect.all_gather(scale * width * unit) for unit in work.units]
    scatters = [interconnect.all_gather(scale * FLOAT * unit) for unit in work.units]
    sums = 2 * interconnect.all_reduce(0)  # as above, and of the norm of the gradients
    free = _free(devices) * compute
    forward = _exposed(gathers, hidden_by=free * FORWARD)
    backward = _exposed([a + b for a, b in zip(gathers, scatters, strict=True)], hidden_by=free * BACKWARD)
    return 2 * sum(gathers) + sum(scatters) + sums, forward + backward + sums


def _exposed(parts: Sequence[float], *, hidden_by: float) -> float:
    """One of the parts has nothing to hide behind: the first weights gathered, or the last gradients reduced."""
    longest = max(parts)
    return sum(parts) if not hidden_by else longest + max(0.0, sum(parts) - longest - hidden_by)


def _free(devices: Devices) -> float:
    """The share of computing behind which communication hides: a processor that computes cannot carry bytes as well."""
    return 0.0 if devices.on_cpu else 1.0


def gathered_width(precision: str) -> int:
    """The bytes of a weight that is gathered."""
    return 2 if precision == "bf16" else FLOAT


def normal_maximum(n: int) -> float:
    """About the largest of so many draws of a standard normal, on average (Blom 1958)."""
    if n == 1:
        return 0.0
    from statistics import NormalDist

    return NormalDist().inv_cdf((n - 0.375) / (n + 0.25))


def count_units(model: nn.Module) -> tuple[int, ...]:
    """Count the parameters of each block of a network; last, those of none. What several share counts once."""
    counted: set[nn.Parameter] = set()

    def count(module: nn.Module) -> int:
        own = [parameter for parameter in module.parameters() if parameter not in counted]
        counted.update(own)
        return sum(parameter.numel() for parameter in own)

    blocks = [count(layer) for stack in find_stacks(model) for layer in stack.layers]
    return tuple(unit for unit in (*blocks, count(model)) if unit)
