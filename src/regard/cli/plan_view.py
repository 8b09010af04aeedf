"""What `regard plan` prints: parameters, memory by kind, FLOPs and time, for people and for programs."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regard.cli.terminal import duration, print_facts, print_lines, print_table, results, size

if TYPE_CHECKING:
    from regard.training.plan import Layout, Plan
    from regard.training.step_model import StepTime
    from regard.training.step_timing import Measurement

TERA = 1e12


def show(plan: "Plan", measured: "Measurement | None", *, paper: bool) -> None:
    """Show a plan to people."""
    print_facts(rows(plan), results())
    print_lines([""])
    print_table(*memory_table(plan))
    if plan.devices.n_devices > 1:
        print_lines([""])
        print_table(*time_table(plan))
    shown = [verdict_rows(plan), paper_rows(plan) if paper else [], measured_rows(plan, measured) if measured else []]
    for more in shown:
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
        *([("links", str(plan.interconnect))] if each else []),
        (
            "time",
            f"{span(plan.seconds)}, {seconds(plan.seconds_per_step)} per step, at {plan.utilisation:.0%} of the peak",
        ),
    ]


def memory_table(plan: "Plan") -> tuple[list[str], list[list[str]]]:
    """Memory by kind: on one device, or on each of several, replicated and sharded."""
    one = plan.devices.n_devices == 1
    layouts = [plan.replicated_layout] if one else [plan.replicated_layout, plan.sharded_layout]
    kinds = [{**dataclasses.asdict(layout.memory), "total": layout.memory.total} for layout in layouts]
    cells = [
        [kind, *(text for memory in kinds for text in shown(memory[kind], memory["total"]))]
        for kind in kinds[0]
        if any(memory[kind] for memory in kinds)
    ]
    headings = ["memory", "", "share"] if one else ["memory per device", "replicated", "share", "sharded", "share"]
    return headings, cells


def shown(n_bytes: int, total: int) -> tuple[str, str]:
    """Bytes and their share; nothing of what there is none of."""
    return (size(n_bytes), f"{n_bytes / total:.0%}") if n_bytes else ("", "")


def time_table(plan: "Plan") -> tuple[list[str], list[list[str]]]:
    """The time of a step by what it is for, replicated and sharded."""
    times = [plan.replicated_layout.time, plan.sharded_layout.time]

    def row(label: str, of: "Callable[[StepTime], float]") -> list[str]:
        return [label, *(text for time in times for text in (seconds(of(time)), f"{of(time) / time.seconds:.0%}"))]

    return ["time per step", "replicated", "share", "sharded", "share"], [
        row("compute", lambda time: time.compute),
        row("waiting", lambda time: time.waiting),
        row("communication", lambda time: time.exposed),
        row("update", lambda time: time.update),
        row("total", lambda time: time.seconds),
        row("hidden communication", lambda time: time.communication - time.exposed),
    ]


def verdict_rows(plan: "Plan") -> list[tuple[str, str]]:
    """What limits a step on several devices, and whether a device has the memory."""
    rows = []
    if plan.devices.n_devices > 1:
        limits = ((name, layout.time.limit) for name, layout in layouts(plan).items())
        rows.append(("limits", "; ".join(f"{name}: {limit or 'the FLOPs'}" for name, limit in limits)))
    if not plan.fits(plan.layout):
        needed = f"{size(plan.memory.total)} are needed, and {plan.devices.name} has {size(plan.devices.memory)}"
        rows.append(("does not fit", f"{needed}: {smaller(plan)}"))
    return rows


def smaller(plan: "Plan") -> str:
    """What to do where memory does not suffice."""
    if plan.devices.n_devices > 1 and not plan.sharded and plan.fits(plan.sharded_layout):
        return f"with --shard each has {size(plan.sharded_layout.memory.total)}"
    if plan.memory.activations > plan.memory.total / 2:
        return "give more devices, or a smaller batch; training.accumulate makes the same step of several"
    return "give more devices, with --shard" if plan.devices.n_devices == 1 else "give more devices, or a smaller model"


def layouts(plan: "Plan") -> dict[str, "Layout"]:
    """Both layouts by name."""
    return {"replicated": plan.replicated_layout, "sharded": plan.sharded_layout}


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
    together = ""
    if measured.processes > 1:
        together = f", the sum of gradients {seconds(measured.all_reduce_seconds)}"
    reached = f"{measured.utilisation(plan):.0%} of the peak of {flops(devices.peak)} in {devices.precision}"
    return [
        (
            "measured",
            f"here, gradients of {measured.batch} took {took}, an update {seconds(measured.update_seconds)}{together}",
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
        "fits": plan.fits(plan.layout),
        "seconds_per_step": plan.seconds_per_step,
        "seconds": plan.seconds,
    }
    if plan.devices.n_devices > 1:
        facts |= {
            "sharded": plan.sharded,
            "interconnect": dataclasses.asdict(plan.interconnect),
            "layouts": {name: layout_facts(layout) for name, layout in layouts(plan).items()},
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
            "all_reduce_seconds": measured.all_reduce_seconds,
            "flops_per_second": measured.flops_per_second(plan),
            "utilisation": measured.utilisation(plan),
            "seconds_per_step": measured.seconds_per_step(plan),
            "seconds": measured.seconds(plan),
        }
    return facts


def layout_facts(layout: "Layout") -> dict[str, Any]:
    """Bytes and seconds of a layout, by kind."""
    time = {**dataclasses.asdict(layout.time), "seconds": layout.time.seconds}
    return {
        "memory": {**dataclasses.asdict(layout.memory), "total": layout.memory.total},
        "time": time,
        "limit": layout.time.limit,
    }


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
