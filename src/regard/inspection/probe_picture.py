"""The time machine as a picture: the attention map of a probe example at several steps; loss and logit lens by step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.maps import check_head, column_labels, find_attention, kinds, masked_weights, row_labels
from regard.inspection.probe_timeline import ProbeTimeline, written
from regard.inspection.render import INK, RUN_COLOURS, draw_legend, draw_map, label_tokens, make_figure, tidy
from regard.inspection.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_MAPS = 6  # side by side
LABELLED = 24  # positions whose labels have room


def probes_picture(
    timeline: ProbeTimeline, probe: int = 0, *, kind: str = "", layer: int = -1, head: int | None = None
) -> "Figure":
    """Draw what is known of a probe example: maps at steps in equal distances, below them the lens and the loss.

    The lens shows, by sublayer and step, the probability of what is written in the end, the mean over positions.
    """
    traces = timeline.traces(probe)
    if not traces:
        raise UsageError(
            f"Nothing was recorded of probe example {probe} in {timeline.run} yet.", "Look again after some steps."
        )
    has_maps = bool(kinds(next(iter(traces.values()))))
    if (kind or head is not None) and not has_maps:
        raise UsageError("This model has no attention to look at.", "Leave --kind, --layer and --head out.")
    shown = _chosen(list(traces))
    figure = make_figure(2.3 * max(4, len(shown)), (3.3 if has_maps else 0.4) + 3.0, layout="constrained")
    title = safe_label(f"probe {probe}: {timeline.titles[probe]}", longest=120)
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12, **text_style())
    parts: Any = figure.subfigures(2, 1, height_ratios=(3.3 if has_maps else 0.01, 3.0))
    above, below = parts
    if has_maps:
        _draw_maps(above, timeline, probe, {step: traces[step] for step in shown}, kind, layer, head)
    left, right = below.subplots(1, 2, width_ratios=(3, 2))
    _draw_lens(left, traces)
    _draw_losses(right, timeline)
    return figure


def _chosen(steps: Sequence[int]) -> list[int]:
    """So many of the steps as have room, the first and the last among them."""
    places = np.linspace(0, len(steps) - 1, min(MOST_MAPS, len(steps)))
    return [steps[round(place)] for place in places]


def _draw_maps(
    figure: Any,
    timeline: ProbeTimeline,
    probe: int,
    traces: dict[int, Trace],
    kind: str,
    layer: int,
    head: int | None,
) -> None:
    """One map per step, on one scale; what was written at that step is what its rows are."""
    panels = figure.subplots(1, len(traces), squeeze=False)[0]
    image = None
    for axes, (step, trace) in zip(panels, traces.items(), strict=True):
        path = find_attention(trace, kind, layer)
        weights = masked_weights(trace, path).values
        if head is not None and len(weights) > 1:
            check_head(trace, path, head)
        values = weights.mean(0) if head is None else weights[min(head, len(weights) - 1)]
        image = draw_map(axes, values)
        axes.set_aspect("auto")
        rows, columns = row_labels(trace, path), column_labels(trace, path)
        fitting = [labels if len(labels) <= LABELLED else () for labels in (columns, rows)]
        label_tokens(axes, *fitting, font_size=6, rotation=90)
        loss = timeline.losses.get(step)
        below = written(trace.output, timeline.titles[probe])
        axes.set_title(f"step {step:,}" + ("" if loss is None else f"\nloss {loss:.3f}"), fontsize=9, color=INK)
        axes.set_xlabel(safe_label(below, longest=28), fontsize=7, color=INK, **text_style())
    of = "mean over heads" if head is None else f"head {head}"
    panels[0].set_ylabel(f"{path}, {of}", fontsize=7, color=INK)
    draw_legend(figure.colorbar(image, ax=list(panels), fraction=0.02, pad=0.01), "attention weight")


def _draw_lens(axes: "Axes", traces: dict[int, Trace]) -> None:
    """By sublayer and step, how likely the lens finds what is written, the mean over positions."""
    axes.set_title("logit lens: probability of what is written", fontsize=10, color=INK, loc="left")
    found = {step: trace.lens(top=1) for step, trace in traces.items() if trace.names("*.lens_ids")}
    if not found:
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color="0.75", linewidth=0.6)
        axes.text(0.5, 0.5, "this model has none", ha="center", va="center", color="0.6", transform=axes.transAxes)
        return
    names = next(iter(found.values())).sublayers
    image = draw_map(axes, np.array([lens.followed.mean(1) for lens in found.values()]).T)
    axes.set_aspect("auto")
    every = -(-len(found) // 12)
    axes.set_xticks(range(0, len(found), every), [f"{step:,}" for step in list(found)[::every]], fontsize=8, color=INK)
    axes.set_yticks(range(len(names)), names, fontsize=6, color=INK)
    axes.tick_params(length=0)
    axes.set_xlabel("step", fontsize=9, color=INK)
    draw_legend(axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02), "probability")


def _draw_losses(axes: "Axes", timeline: ProbeTimeline) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title("loss at these steps", fontsize=10, color=INK, loc="left")
    tidy(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    series = (("training", timeline.losses, "o-"), ("validation", timeline.valid_losses, "s--"))
    for (name, losses, style), colour in zip(series, RUN_COLOURS, strict=False):
        if losses:
            axes.plot(list(losses), list(losses.values()), style, color=colour, markersize=4, label=name)
    axes.set_xlabel("step", fontsize=9, color=INK)
    if axes.lines:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
