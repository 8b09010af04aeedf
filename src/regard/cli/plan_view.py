"""What `regard plan` prints: parameters, memory by kind, FLOPs and time, for people and for programs."""

import dataclasses
from typing import TYPE_CHECKING, Any

from regard.cli.terminal import duration, print_facts, print_lines, print_table, results, size

if TYPE_CHECKING:
    from regard.training.plan import Plan
    from regard.training.step_timing import Measurement

TERA = 1e12


def show(plan: "Plan", measured: "Measurement | None", *, paper: bool) -> None:
    """Show a plan to people."""
    print_facts(rows(plan), results())
    print_lines([""])
    memory = plan.memory
    kinds = {**dataclasses.asdict(memory), "total": memory.total}
    heading = "memory" if plan.devices.n_devices == 1 else "memory per device"
    print_table(
        [heading, "", "share"], [[kind, size(count), f"{count / memory.total:.0%}"] for kind, count in kinds.items()]
    )
    for more in (paper_rows(plan) if paper else [], measured_rows(plan, measured) if measured else []):
        if more:
            print_lines([""])
            print_facts(more, results())


def rows(plan: "Plan") -> list[tuple[str, str]]:
    """What is planned, as labels and texts."""
    devices = plan.devices
    parts = ", ".join(f"{part.replace('_', ' ')} {count:,}" for part, count in plan.parts.items())
    each = " each" if devices.n_devices > 1 else ""
    return [
        ("model", f"{plan.model} for {plan.task}, {sizes(plan)}"),
        ("parameters", f"{plan.parameters:,}: {parts}"),
        ("step", plan.batch.reading(plan.tokens)),
        ("FLOPs", f"{power(plan.flops_per_step)} per step, {power(plan.flops)} in {plan.steps:,} steps"),
        ("devices", f"{devices.label}, {flops(devices.peak)}{each} in {devices.precision} ({devices.source})"),
        (
            "time",
            f"{span(plan.seconds)}, {seconds(plan.seconds_per_step)} per step, at {plan.utilisation:.0%} of the peak",
        ),
    ]


def sizes(plan: "Plan") -> str:
    """What the data decides of a model."""
    n_features = getattr(plan.config, "n_features", 0)
    if n_features:
        return f"vectors of {n_features:,} numbers"
    if not plan.vocab_size:
        return f"{getattr(plan.config, 'n_outputs', 0):,} classes"
    return f"vocabulary of {plan.vocab_size:,} tokens"


def paper_rows(plan: "Plan") -> list[tuple[str, str]]:
    """Our figures beside those of the paper."""
    from regard.training.batch_shape import BatchShape
    from regard.training.paper import RUNS

    assert isinstance(plan.batch, BatchShape)  # it is about translation
    run, devices = RUNS[plan.model], plan.devices
    ratio = plan.seconds / run.seconds
    occupied = run.seconds * devices.n_devices * devices.peak
    assumed = f"{plan.batch.length} tokens are our assumption"
    product = f"{span(run.seconds)} × {devices.n_devices} devices × {flops(devices.peak)}"
    return [
        ("the paper", f"Vaswani et al. 2017, which does not say how long sentences are: {assumed}"),
        ("its time", f"{span(run.seconds)} (section 5.2); ours is {ratio:.2f} of it"),
        ("its FLOPs", f"{power(run.device_flops)} (table 2), which is {product} = {power(occupied)}:"),
        ("", f"all that the devices could do in that time; the model's FLOPs are {plan.flops / occupied:.0%} of it"),
    ]


def measured_rows(plan: "Plan", measured: "Measurement") -> list[tuple[str, str]]:
    """What was measured here, and what follows for the whole run."""
    devices = measured.devices
    took = f"{seconds(measured.gradient_seconds)}, of a tiny batch {seconds(measured.tiny_seconds)}"
    reached = f"{measured.utilisation(plan):.0%} of the peak of {flops(devices.peak)} in {devices.precision}"
    return [
        (
            "measured",
            f"here, gradients of {measured.batch} took {took}, an update {seconds(measured.update_seconds)}",
        ),
        ("time here", f"{span(measured.seconds(plan))}, {seconds(measured.seconds_per_step(plan))} per step"),
        ("reached", f"{flops(measured.flops_per_second(plan))}, {reached} ({devices.source})"),
    ]


def as_json(plan: "Plan", measured: "Measurement | None", *, paper: bool) -> dict[str, Any]:
    """A plan for programs: bytes, FLOPs, seconds."""
    facts: dict[str, Any] = {
        "model": plan.model,
        "task": plan.task,
        "vocab_size": plan.vocab_size,
        "config": dataclasses.asdict(plan.config),
        "parameters": plan.parameters,
        "parts": dict(plan.parts),
        "tokens": plan.tokens,
        **plan.batch.to_json(),
        "steps": plan.steps,
        "memory": {**dataclasses.asdict(plan.memory), "total": plan.memory.total},
        "flops_per_step": plan.flops_per_step,
        "flops": plan.flops,
        "devices": dataclasses.asdict(plan.devices),
        "utilisation": plan.utilisation,
        "seconds_per_step": plan.seconds_per_step,
        "seconds": plan.seconds,
    }
    if paper:
        from regard.training.paper import RUNS

        run = RUNS[plan.model]
        ratio = plan.seconds / run.seconds
        facts["paper"] = {"seconds": run.seconds, "ratio": ratio, "device_flops": run.device_flops}
    if measured is not None:
        facts["measured"] = {
            "devices": dataclasses.asdict(measured.devices),
            **measured.batch.to_json(),
            "flops": measured.flops,
            "gradient_seconds": measured.gradient_seconds,
            "tiny_flops": measured.tiny_flops,
            "tiny_seconds": measured.tiny_seconds,
            "update_seconds": measured.update_seconds,
            "flops_per_second": measured.flops_per_second(plan),
            "utilisation": measured.utilisation(plan),
            "seconds_per_step": measured.seconds_per_step(plan),
            "seconds": measured.seconds(plan),
        }
    return facts


def power(number: float) -> str:
    """Write a large number by its first digits: 9.53e17."""
    return f"{number:.3g}".replace("e+", "e")


def flops(per_second: float) -> str:
    """Write a speed as people say it: 142 GFLOP/s, 9.5 TFLOP/s."""
    unit, divisor = ("TFLOP/s", TERA) if per_second >= TERA else ("GFLOP/s", 1e9)
    return f"{per_second / divisor:.3g} {unit}"


def seconds(number: float) -> str:
    """Write the time of a step: 0.036 s."""
    return f"{number:.2g} s" if number < 10 else duration(number)


def span(number: float) -> str:
    """Write the time of a run, days with a decimal."""
    return duration(number) if number < 48 * 3600 else f"{number / 86400:,.1f} days"
