"""What `regard plan --up-to` prints: a plan on more and more devices, what limits it, and where it breaks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.cli.plan_view import layout_facts, seconds, span
from regard.cli.terminal import print_facts, print_lines, print_table, results, size

if TYPE_CHECKING:
    from regard.training.scaling import ScaledPlan

LAYOUTS = {"replicated": False, "sharded": True}
TITLES = {
    "strong": "strong scaling: the same step for all devices, {step}",
    "weak": "weak scaling: as much for each device, which makes larger steps, and fewer of them",
}


def show_scaling(scaled: "Mapping[str, Sequence[ScaledPlan]]") -> None:
    """Show tables by kind of scaling and layout; nothing where none are asked for."""
    for kind, rows in scaled.items():
        first = rows[0].plan
        print_lines(["", TITLES[kind].format(step=first.batch.reading(first.tokens))])
        for name, sharded in LAYOUTS.items():
            print_lines([""])
            print_table(
                [name, unit(rows), "memory", "step", "efficiency", "steps", "the run", "limited by"],
                [cells(row, sharded=sharded) for row in rows],
                left=(0, 7),
            )
    if scaled:
        print_lines([""])
        print_facts([*breaking_rows(scaled), *assumptions(scaled)], results())


def cells(row: "ScaledPlan", *, sharded: bool) -> list[str]:
    """A row of a table."""
    from regard.training.scaling import batch_size

    layout = row.layout(sharded=sharded)
    return [
        f"{row.plan.devices.n_devices:,}",
        f"{batch_size(row.plan) / row.plan.devices.n_devices:,.0f}",
        size(layout.memory.total) + ("" if row.plan.fits(layout) else ", too much"),
        seconds(layout.time.seconds),
        f"{row.efficiency(sharded=sharded):.0%}",
        f"{row.steps:,.0f}",
        span(row.seconds(sharded=sharded)),
        layout.time.limit or "the FLOPs",
    ]


def unit(rows: "Sequence[ScaledPlan]") -> str:
    """What a device has of a step."""
    return "images each" if not rows[0].plan.tokens else "tokens each"


def breaking_rows(scaled: "Mapping[str, Sequence[ScaledPlan]]") -> list[tuple[str, str]]:
    """What breaks first, by kind of scaling."""
    from regard.training.scaling import beyond_critical, breaking_point, critical_size

    found = []
    for kind, rows in scaled.items():
        for name, sharded in LAYOUTS.items():
            point = breaking_point(rows, sharded=sharded)
            last = rows[-1].plan.devices.n_devices
            holds = f"above half of the efficiency up to {last:,} devices"
            found.append((f"{kind}, {name}", f"breaks at {point[0]:,} devices: {point[1]}" if point else holds))
        if (beyond := beyond_critical(rows)) is not None:
            what = f"more than {critical_size(rows[0].plan):,} {unit(rows).removesuffix(' each')} per step"
            found.append((f"{kind}, batch", f"beyond the critical size from {beyond:,} devices on: {what}"))
    return found


def assumptions(scaled: "Mapping[str, Sequence[ScaledPlan]]") -> list[tuple[str, str]]:
    """What the tables rest on."""
    from regard.training.interconnect import REACHED
    from regard.training.scaling import critical_size
    from regard.training.step_model import JITTER, LAUNCH

    plan = next(iter(scaled.values()))[0].plan
    size = f"a critical batch of {critical_size(plan):,} {'images' if not plan.tokens else 'tokens'}"
    share = f"computing reaches {plan.utilisation:.0%} of the peak, links {REACHED:.0%} of their bandwidth"
    noise = f"a kernel takes {LAUNCH * 1e6:.0f} µs to start, devices differ by {JITTER:.0%}"
    return [("assumed", f"{share}; {noise}; {size}")]


def scaling_as_json(scaled: "Mapping[str, Sequence[ScaledPlan]]") -> dict[str, Any]:
    """The same for programs."""
    return {"scaling": {kind: [row_facts(row) for row in rows] for kind, rows in scaled.items()}} if scaled else {}


def row_facts(row: "ScaledPlan") -> dict[str, Any]:
    """A plan on some number of devices."""
    layouts = {
        name: {
            **layout_facts(row.layout(sharded=sharded)),
            "efficiency": row.efficiency(sharded=sharded),
            "seconds": row.seconds(sharded=sharded),
            "fits": row.plan.fits(row.layout(sharded=sharded)),
        }
        for name, sharded in LAYOUTS.items()
    }
    return {"devices": row.plan.devices.n_devices, "tokens": row.plan.tokens, "steps": row.steps, "layouts": layouts}
