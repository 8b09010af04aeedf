"""Training curves: loss, score and learning rate by step; gradient norms by layer; scores by length."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.errors import UsageError, did_you_mean
from regard.evaluation.metrics import METRICS, Metric, find_metric, headline_metric
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.render import INK, Numbers, make_figure, run_style, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Style = dict[str, Any]  # as matplotlib takes it
FEW = 10  # sentences
NAMED = 16  # layers whose names have room
_OFF_THE_LINE: Style = {"linestyle": "", "markersize": 4, "markerfacecolor": "none"}


class _Panel(NamedTuple):
    """A field of the records of one kind, and how it is drawn."""

    heading: str
    kind: str
    field: str
    draw: Callable[["Axes", Numbers, Numbers, Style], "Line2D"]


def curves_picture(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    tasks: Mapping[str, str] | None = None,
    scores: Sequence[str] = (),
) -> "Figure":
    """Draw what runs recorded while training, by step: losses, scores and the learning rate, one colour per run.

    A record is a line of `metrics.jsonl`: `kind` is "train" or "valid", `step` an integer, the rest numbers.

    tasks:   of each run; those of different tasks, whose losses do not compare, have panels of their own
    scores:  by name, a panel each; by default the one that says most
    """
    if not any(runs.values()):
        raise UsageError("There are no metrics to draw.", "Train for some steps first, or name a run that was trained.")
    for score in scores:
        if score not in (recorded := _recorded_scores(runs.values())):
            raise UsageError(f"No run has recorded the score '{score}'.", did_you_mean(score, recorded))
    styles = {name: run_style(number) for number, name in enumerate(runs)}
    groups: dict[str, list[str]] = {}
    for name in runs:
        groups.setdefault((tasks or {}).get(name, ""), []).append(name)
    panels = [
        (group, _panels([runs[name] for name in group], scores, f"{task}: " if len(groups) > 1 else ""))
        for task, group in groups.items()
    ]
    n_panels = len(panels[0][1])
    n_columns = 2 if len(groups) == 1 else n_panels
    n_rows = len(groups) * math.ceil(n_panels / n_columns)
    figure = make_figure(5 * n_columns, 3.3 * n_rows, layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
    lines: dict[str, Line2D] = {}
    drawn = [(group, panel) for group, own in panels for panel in own]
    for axes, (group, panel) in zip(grid, drawn, strict=False):
        lines |= _draw_panel(axes, panel, {name: runs[name] for name in group}, styles)
    for axes in grid[len(drawn) :]:
        axes.remove()
    _name_runs(figure, {name: lines[name] for name in runs if name in lines})
    return figure


def _panels(runs: Sequence[Sequence[Mapping[str, Any]]], scores: Sequence[str], prefix: str) -> list[_Panel]:
    """What is drawn of runs of one task."""
    shown = [find_metric(name) for name in scores] or [_main_score(runs)]
    return [
        _Panel(f"{prefix}training loss", "train", "loss", _draw_noisy),
        _Panel(f"{prefix}validation loss", "valid", "loss", _draw_dots),
        *(_Panel(f"{prefix}validation {score.label}", "valid", score.name, _draw_dots) for score in shown),
        _Panel(f"{prefix}learning rate", "train", "learning_rate", _draw_line),
    ]


def _draw_panel(
    axes: "Axes", panel: _Panel, runs: Mapping[str, Sequence[Mapping[str, Any]]], styles: Mapping[str, Style]
) -> dict[str, "Line2D"]:
    """Draw one field of some runs; return the line of each that has it."""
    axes.set_title(panel.heading, fontsize=11, color=INK, loc="left")
    tidy(axes)
    lines = {}
    for name, records in runs.items():
        steps, values = _series(records, kind=panel.kind, field=panel.field)
        if len(steps):
            lines[name] = panel.draw(axes, steps, values, styles[name])
    if axes.lines:
        axes.set_xlim(left=0)
        axes.set_xlabel("step", fontsize=9, color=INK)
    else:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "none recorded", ha="center", va="center", color="0.6", transform=axes.transAxes)
    return lines


def gradients_picture(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> "Figure":
    """Draw the gradient's norm by layer, from input to output: of one run at its first and its last record; of several one
    line each, the mean over all records.

    A record is a line of `metrics.jsonl` of the kind "gradients": `norms` are those of the layers by name, in their order.
    """
    found = {
        name: [record for record in records if record["kind"] == "gradients" and record.get("norms")]
        for name, records in runs.items()
    }
    for name, records in found.items():
        if not records:
            raise UsageError(
                f"{name} has no records of its gradients.",
                "Train a run that keeps them, of every 50th update: --set training.record_gradients=50",
            )
    heading = "the gradient's norm by layer"
    if len(found) == 1:
        [(run, records)] = found.items()
        heading = f"{run}: {heading}"
        groups = {f"update {one['step']:,}": [one] for one in (records[0], records[-1])}
    else:
        heading += ": the mean over all recorded updates"
        groups = found
    figure = make_figure(8, 4.6, layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    _scale_by_tens(axes)
    axes.set_title(safe_label(heading, longest=100), fontsize=11, color=INK, loc="left", **text_style())
    lines = {}
    for number, (name, records) in enumerate(groups.items()):
        norms = _mean_norms(records)
        lines[name] = _draw_dots(axes, np.arange(len(norms), dtype=np.float64), norms, run_style(number))
    _name_layers(axes, [_layers(records) for records in groups.values()])
    axes.set_xlabel("layer, from input to output", fontsize=9, color=INK)
    axes.set_ylabel("norm of the weights' gradient", fontsize=9, color=INK)
    _name_runs(figure, lines)
    return figure


def lengths_picture(
    ranges: Sequence[str], counts: Sequence[int], scores: Mapping[str, Sequence[float]], *, label: str
) -> "Figure":
    """Draw how a score depends on the length of the source: one colour per run, one point per range, which holds `counts`.

    The point of a range with fewer than `FEW` sentences is mere chance: it is hollow, and no line leads to it.
    """
    figure = make_figure(6.4, 4.2, layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    places = np.arange(len(ranges), dtype=np.float64)
    enough = np.array(counts) >= FEW
    lines = {}
    for number, (name, values) in enumerate(scores.items()):
        style, found = run_style(number), np.array(values)
        lines[name] = _draw_dots(axes, places, np.where(enough, found, np.nan), style)
        axes.plot(places[~enough], found[~enough], **_OFF_THE_LINE, marker=style["marker"], color=style["color"])
    axes.set_xticks(places, [f"{words}\n({count:,})" for words, count in zip(ranges, counts, strict=True)])
    axes.set_xlabel("words of the source (sentences)", fontsize=9, color=INK)
    axes.set_ylabel(label, fontsize=9, color=INK)
    axes.set_ylim(bottom=0)
    _name_runs(figure, lines)
    return figure


def _layers(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The layers that lead from input to output; a convolution that only brings a shortcut to its shape lies beside them."""
    names = dict.fromkeys(name for record in records for name in record["norms"])
    return [name for name in names if not name.endswith(".shortcut")]


def _mean_norms(records: Sequence[Mapping[str, Any]]) -> Numbers:
    """The mean of each layer's norms, of those that are finite and above 0; NaN for a layer without any."""
    layers = _layers(records)
    norms = np.array([[record["norms"].get(layer) for layer in layers] for record in records], dtype=np.float64)
    return np.asarray(np.ma.masked_invalid(np.where(norms > 0, norms, np.nan)).mean(0).filled(np.nan))


def _scale_by_tens(axes: "Axes") -> None:
    """Let equal steps upwards be equal factors, beside plain numbers; between the tens too, where those are few."""
    from matplotlib.ticker import LogFormatter

    class PlainNumbers(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            is_shown = super().__call__(x, pos)
            return f"{x:g}" if is_shown else ""

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(PlainNumbers())
    axes.yaxis.set_minor_formatter(PlainNumbers(minor_thresholds=(1, 0.4)))
    axes.tick_params(axis="y", which="minor", labelsize=8, color="0.75", labelcolor=INK)


def _name_layers(axes: "Axes", layers: Sequence[Sequence[str]]) -> None:
    """Write the names of the layers where they are few and all runs have the same, else their numbers."""
    from matplotlib.ticker import MaxNLocator

    first = layers[0]
    if len(first) <= NAMED and all(others == first for others in layers):
        labels = [safe_label(name) for name in first]
        style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", **text_style()}
        axes.set_xticks(range(len(first)), labels, **style)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _name_runs(figure: "Figure", lines: Mapping[str, "Line2D"]) -> None:
    labels = [safe_label(name, longest=60) for name in lines]
    legend = figure.legend(
        list(lines.values()), labels, loc="outside upper center", ncols=4, frameon=False, fontsize=10
    )
    for text in legend.get_texts():
        text.set(**text_style())


def _recorded_scores(runs: Iterable[Sequence[Mapping[str, Any]]]) -> list[str]:
    """The scores that validations of any run recorded, in the order of the table of metrics."""
    found = {field for records in runs for record in records if record.get("kind") == "valid" for field in record}
    return [name for name in METRICS if name in found and name != "loss"]


def _main_score(runs: Iterable[Sequence[Mapping[str, Any]]]) -> Metric:
    """The score to draw beside the loss: the one that says most of those that any run recorded."""
    return headline_metric(_recorded_scores(runs)) or METRICS["bleu"]


def _series(records: Sequence[Mapping[str, Any]], *, kind: str, field: str) -> tuple[Numbers, Numbers]:
    """Steps and values of one field; records without it, or with no finite number, are left out."""
    found = [(r["step"], r[field]) for r in records if r.get("kind") == kind and r.get(field) is not None]
    pairs = np.array(found, dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs[:, 1])]
    return pairs[:, 0], pairs[:, 1]


def _draw_line(axes: "Axes", steps: Numbers, values: Numbers, style: Style) -> "Line2D":
    return axes.plot(steps, values, linewidth=1.6, **{**style, "marker": ""})[0]


def _draw_dots(axes: "Axes", steps: Numbers, values: Numbers, style: Style) -> "Line2D":
    return axes.plot(steps, values, linewidth=1.6, markersize=3.5, **style)[0]


def _draw_noisy(axes: "Axes", steps: Numbers, values: Numbers, style: Style) -> "Line2D":
    """Draw every step faintly, and over them a running mean of a fiftieth of the steps."""
    window = max(1, len(values) // 50)
    axes.plot(steps, values, color=style["color"], linewidth=0.8, alpha=0.35)
    sums = np.concatenate([[0.0], np.cumsum(values)])  # in time that does not grow with the window
    smooth = (sums[window:] - sums[:-window]) / window
    # Each mean stands at its window's middle, so that it does not lag behind.
    return _draw_line(axes, steps[window // 2 :][: len(smooth)], smooth, style)
