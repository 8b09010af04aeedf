"""Importance as a picture: layers × heads for each kind of attention, layers × sublayers for each stack.

A cell is coloured by what its absence changes: orange where the network is worse without it, blue where it is better, grey
where nothing changes. Cells whose 95 % interval includes zero are hatched.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.evaluation.metrics import find_metric
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.importance import Importance, PartImportance
from regard.inspection.render import INK, make_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Blue, grey, orange (after Okabe and Ito), in even steps of lightness to both sides of zero.
SIGNED = ("#00507d", "#0072B2", "#5fa3cc", "#a9c6d9", "#e4e4e4", "#ecc09d", "#e39255", "#D55E00", "#983f00")
_CELL, _LARGEST = 0.62, 14.0  # inches of a cell, and of all panels side by side
_SMALLEST_WITH_NUMBERS = 0.4
_TOP, _BETWEEN = 0.72, 0.95  # inches above the cells of a row of panels, and between two panels

Panel = tuple[str, list[str], Mapping[tuple[int, str], PartImportance]]  # a heading, the columns, the cells


def importance_picture(importance: Importance, *, metric: str = "", title: str = "") -> "Figure":
    """Draw the importance of all parts by a metric, by default the one that says most: heads above, sublayers below."""
    metric = metric or importance.metric
    heads = [one for one in importance.parts if one.head is not None]
    others = [one for one in importance.parts if one.head is None]
    bands = [panels for panels in (_head_panels(heads), _sublayer_panels(others)) if panels]
    cell = min(_CELL, *(_fitting(panels) for panels in bands))
    depths = [max(_n_layers(panel) for panel in panels) for panels in bands]
    widths = [sum(len(columns) * cell * _stretch(panels) + _BETWEEN for _, columns, _ in panels) for panels in bands]
    across = max(5.2, max(widths) + 0.9)
    feet = [0.8 if panels is not bands[0] or not heads else 0.2 for panels in bands]
    down = 0.75 + sum(_TOP + depth * cell + foot for depth, foot in zip(depths, feet, strict=True)) + 0.35
    figure = make_figure(across, down)
    top = 0.75
    for panels, depth, foot in zip(bands, depths, feet, strict=True):
        _draw_band(figure, panels, metric, cell=cell, top=top + _TOP, depth=depth)
        top += _TOP + depth * cell + foot
    style: dict[str, Any] = {"color": INK, "va": "top", **text_style([title])}
    shown = find_metric(metric)
    heading = title or f"change of {shown.label} when a part is cut"
    figure.text(0.3 / across, 1 - 0.14 / down, safe_label(heading, longest=110), fontsize=12, **style)
    about = f"{shown.label} of the whole network {shown.format(importance.whole[metric], precise=True)}, "
    about += f"{importance.n_examples:,} examples; orange: worse without it; hatched: the 95 % interval includes 0"
    figure.text(0.3 / across, 1 - 0.45 / down, about, fontsize=8.5, **{**style, "color": "0.4"})
    return figure


def _head_panels(parts: Sequence[PartImportance]) -> list[Panel]:
    """A panel for each kind of attention."""
    found: dict[str, dict[tuple[int, str], PartImportance]] = {}
    for one in parts:
        stack, layer, sublayer = one.place
        found.setdefault(_heading(f"{stack} {sublayer}"), {})[layer, str(one.head)] = one
    return [(heading, _columns(cells), cells) for heading, cells in found.items()]


def _sublayer_panels(parts: Sequence[PartImportance]) -> list[Panel]:
    """A panel for each stack of layers."""
    found: dict[str, dict[tuple[int, str], PartImportance]] = {}
    for one in parts:
        stack, layer, sublayer = one.place
        found.setdefault(_heading(stack), {})[layer, _heading(sublayer)] = one
    return [(heading, _columns(cells), cells) for heading, cells in found.items()]


def _columns(cells: Mapping[tuple[int, str], PartImportance]) -> list[str]:
    return list(dict.fromkeys(column for _, column in cells))


def _heading(path: str) -> str:
    words = path.replace("self_attention", "self-attention").replace("cross_attention", "cross-attention")
    return words.replace("feed_forward", "feed-forward").replace("_", " ").replace(".", " ").strip()


def _n_layers(panel: Panel) -> int:
    return 1 + max(layer for layer, _ in panel[2])


def _fitting(panels: Sequence[Panel]) -> float:
    """How wide a cell may be so that all panels stand side by side."""
    room = _LARGEST - len(panels) * _BETWEEN
    return max(0.16, room / sum(len(columns) * _stretch(panels) for _, columns, _ in panels))


def _stretch(panels: Sequence[Panel]) -> float:
    """How much wider than high the cells are: those of sublayers have names above them."""
    return 1.0 if all(column.isdigit() for _, columns, _ in panels for column in columns) else 1.6


def _draw_band(figure: "Figure", panels: Sequence[Panel], metric: str, *, cell: float, top: float, depth: int) -> None:
    """Draw panels side by side on one scale, and the scale."""
    from matplotlib.colors import LinearSegmentedColormap

    shown, (across, down) = find_metric(metric), figure.get_size_inches()
    colours = SIGNED[::-1] if shown.higher_is_better else SIGNED
    scale = LinearSegmentedColormap.from_list("signed", colours)
    deltas = [one.changes[metric].delta for _, _, cells in panels for one in cells.values()]
    largest = float(np.nanmax(np.abs([*deltas, 0.0]))) or 1.0
    left, wide = 0.75, cell * _stretch(panels)
    for heading, columns, cells in panels:
        width, height = len(columns) * wide, (1 + max(layer for layer, _ in cells)) * cell
        axes = figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))
        _draw_panel(axes, heading, columns, cells, metric, scale, largest, cell=cell)
        left += width + _BETWEEN
    beside = figure.add_axes(
        ((left - _BETWEEN + 0.2) / across, 1 - (top + depth * cell) / down, 0.14 / across, depth * cell / down)
    )
    _draw_scale(beside, scale, largest, f"change of {shown.label}")


def _draw_panel(
    axes: "Axes",
    heading: str,
    columns: Sequence[str],
    cells: Mapping[tuple[int, str], PartImportance],
    metric: str,
    scale: "Colormap",
    largest: float,
    *,
    cell: float,
) -> None:
    """A grid of cells: a row for each layer."""
    from matplotlib.patches import Rectangle

    n_layers = 1 + max(layer for layer, _ in cells)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(n_layers - 0.5, -0.5))
    digits = find_metric(metric).digits
    for (layer, column), one in cells.items():
        change, x = one.changes[metric], columns.index(column)
        strength = change.delta / largest if np.isfinite(change.delta) else 0.0
        box: dict[str, Any] = {"facecolor": scale(0.5 + 0.5 * strength), "edgecolor": "white", "linewidth": 1.2}
        axes.add_patch(Rectangle((x - 0.5, layer - 0.5), 1, 1, **box))
        if not change.is_sure:
            lines: dict[str, Any] = {"facecolor": "none", "edgecolor": "#9a9a9a", "hatch": "////", "linewidth": 0}
            axes.add_patch(Rectangle((x - 0.47, layer - 0.47), 0.94, 0.94, **lines))
        if cell >= _SMALLEST_WITH_NUMBERS:
            shown = _number(change.delta, digits)
            ink = "white" if abs(strength) > 0.62 else INK
            ground: dict[str, Any] = {} if change.is_sure else {"bbox": _ground(scale(0.5 + 0.5 * strength))}
            axes.text(x, layer, shown, ha="center", va="center", fontsize=7.5, color=ink, **ground)
    style: dict[str, Any] = {"fontsize": 8.5, "color": INK, **text_style(columns)}
    every = max(1, round(0.16 / cell))
    axes.set_xticks(range(0, len(columns), every), [safe_label(column) for column in columns[::every]], **style)
    axes.set_yticks(range(0, n_layers, every), [str(layer) for layer in range(0, n_layers, every)], **style)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, pad=3)
    if all(column.isdigit() for column in columns):
        axes.set_xlabel("head", fontsize=8.5, color="0.4")
    axes.set_ylabel("layer", fontsize=8.5, color="0.4")
    axes.set_title(safe_label(heading, longest=60), fontsize=10.5, loc="left", pad=8, color=INK, **text_style())
    for spine in axes.spines.values():
        spine.set_visible(False)


def _number(value: float, digits: int) -> str:
    """A signed number in few letters, as +.043, −3.1 or 0."""
    text = f"{value:+.{digits}f}"
    if not any(digit in text for digit in "123456789"):
        return "0" if np.isfinite(value) else "—"
    return (text.replace("0.", ".", 1) if digits > 1 and abs(value) < 1 else text).replace("-", "−")


def _ground(colour: Any) -> dict[str, Any]:
    """What a number stands on where the cell is hatched."""
    return {"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"}


def _draw_scale(axes: "Axes", scale: "Colormap", largest: float, label: str) -> None:
    axes.imshow(
        np.linspace(1, 0, 256)[:, None], cmap=scale, aspect="auto", extent=(0, 1, -largest, largest), vmin=0, vmax=1
    )
    axes.set_xticks([])
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_ylabel(label, fontsize=8.5, color=INK)
    axes.tick_params(labelsize=8, color="0.75", labelcolor=INK)
    for spine in axes.spines.values():
        spine.set(color="0.75", linewidth=0.6)
