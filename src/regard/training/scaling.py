"""Scaling: a plan on more and more devices. Strong: the same batch for all of them; weak: as much for each.

A larger batch is no gift: beyond the critical batch size it hardly saves steps. After McCandlish et al. 2018, "An Empirical
Model of Large-Batch Training" (equation 2.7), a loss that takes S steps with a batch of B takes S (1 + C / B') / (1 + C / B)
with one of B', where C is the critical size.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.errors import UsageError
from regard.training.batch_shape import ImageBatchShape
from regard.training.plan import Layout, Plan

MOST_DEVICES = 1_000_000
HALF = 0.5  # the efficiency below which scaling is said to break
# Sizes at which training is known to work well, for critical ones, which depend on model, data and loss. Ott et al. 2018
# trained transformer-big to a better score on 128 devices with up to 3,584 tokens on each; Goyal et al. 2017 ResNet-50 on
# 8,192 images.
CRITICAL_TOKENS = 400_000
CRITICAL_IMAGES = 8_192


@dataclass(frozen=True, kw_only=True)
class ScaledPlan:
    """A plan on some number of devices.

    efficiency:  by layout, of what each device does per second beside what it does on the fewest
    steps:       that the same progress takes
    """

    plan: Plan
    replicated_efficiency: float
    sharded_efficiency: float
    steps: float

    def efficiency(self, *, sharded: bool) -> float:
        """Of one layout."""
        return self.sharded_efficiency if sharded else self.replicated_efficiency

    def layout(self, *, sharded: bool) -> Layout:
        """One layout of the plan."""
        return self.plan.sharded_layout if sharded else self.plan.replicated_layout

    def seconds(self, *, sharded: bool) -> float:
        """The run, as long as the same progress takes."""
        return self.steps * self.layout(sharded=sharded).time.seconds


def batch_size(plan: Plan) -> float:
    """The size of a step by which batches are compared: target tokens, tokens of text, or images."""
    return plan.batch.n_images if isinstance(plan.batch, ImageBatchShape) else plan.tokens[-1]


def critical_size(plan: Plan) -> int:
    """The critical batch size that is assumed."""
    return CRITICAL_IMAGES if isinstance(plan.batch, ImageBatchShape) else CRITICAL_TOKENS


def strong_scaling(plan: Plan, up_to: int) -> list[ScaledPlan]:
    """The same batch on twice as many devices, and again, as long as each has an example."""
    numbers = [n for n in _doubled(plan, up_to) if plan.work.n_examples >= n]
    return _compared([plan.on(n) for n in numbers], [plan.steps] * len(numbers))


def weak_scaling(plan: Plan, up_to: int) -> list[ScaledPlan]:
    """As much for each device on twice as many, and again; more tokens per step take fewer of them."""
    first, critical = plan.devices.n_devices, critical_size(plan)
    plans = [plan.on(n, times=n / first) for n in _doubled(plan, up_to)]
    base = 1 + critical / batch_size(plan)
    return _compared(plans, [plan.steps * (1 + critical / batch_size(one)) / base for one in plans])


def breaking_point(rows: Sequence[ScaledPlan], *, sharded: bool) -> tuple[int, str] | None:
    """The number of devices at which scaling breaks, and why: too little memory, or less than half of the efficiency."""
    for row in rows:
        layout, n_devices = row.layout(sharded=sharded), row.plan.devices.n_devices
        if not row.plan.fits(layout):
            return n_devices, "memory"
        if row.efficiency(sharded=sharded) < HALF:
            return n_devices, layout.time.limit
    return None


def beyond_critical(rows: Sequence[ScaledPlan]) -> int | None:
    """The number of devices from which on a step is larger than the critical size."""
    return next((row.plan.devices.n_devices for row in rows if batch_size(row.plan) > critical_size(row.plan)), None)


def _doubled(plan: Plan, up_to: int) -> Iterator[int]:
    first = plan.devices.n_devices
    if not first < up_to <= MOST_DEVICES:
        raise UsageError(
            f"--up-to must be above the {first:,} of --devices and at most {MOST_DEVICES:,}, not {up_to:,}.",
            f"Such as --up-to {first * 8}.",
        )
    for power in range(int(math.log2(up_to / first)) + 1):
        yield first * 2**power


def _compared(plans: Sequence[Plan], steps: Sequence[float]) -> list[ScaledPlan]:
    def per_device(plan: Plan, layout: Layout) -> float:
        return plan.work.n_examples / layout.time.seconds / plan.devices.n_devices

    first = plans[0]
    return [
        ScaledPlan(
            plan=plan,
            replicated_efficiency=per_device(plan, plan.replicated_layout) / per_device(first, first.replicated_layout),
            sharded_efficiency=per_device(plan, plan.sharded_layout) / per_device(first, first.sharded_layout),
            steps=number,
        )
        for plan, number in zip(plans, steps, strict=True)
    ]
