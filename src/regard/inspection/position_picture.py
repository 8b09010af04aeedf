"""Positional encodings as pictures: the encoding itself, and beside it what it says of distance, by dot products.

An encoding that is added to tokens (sinusoidal, learned, index, fraction) is drawn as it is, a row per position. Rotary
turns queries and keys: what it makes of a vector of ones. A relative bias is added to scores, by distance and head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from regard.errors import UsageError, did_you_mean
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.render import INK, RUN_COLOURS, Numbers, make_figure, tidy
from regard.parts.positions import POSITIONS, Learned, RelativeBias, Rotation, make_positions
from regard.runs.disk import without_non_finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = (*(name for name in POSITIONS if name != "none"), "relative")
LEARNED: dict[str, type[nn.Module]] = {"learned": Learned, "relative": RelativeBias}  # there are none without a run
# From negative to positive, through white: orange and blue are told apart by colour-blind readers too.
_SIGNED = ("#7f3b08", "#D55E00", "#f1a86a", "#ffffff", "#6bb3e0", "#0072B2", "#08306b")


@dataclass(frozen=True, kw_only=True)
class Panels:
    """What is drawn of one encoding: values (rows, columns) as a map, and values by distance with their range.

    rows, columns:  what they are
    first_column:   the number of the first
    by_distance:    (N, 4): a distance, the mean there, the least and the greatest
    """

    name: str
    values: Numbers
    rows: str
    columns: str
    first_column: int
    legend: str
    by_distance: Numbers
    measure: str
    over: str

    def to_json(self) -> dict[str, Any]:
        """The table and the curve, as data that `json.dumps` takes."""
        facts = {name: own.tolist() if isinstance(own, np.ndarray) else own for name, own in vars(self).items()}
        found: dict[str, Any] = without_non_finite(facts)
        return found


def encoding_panels(kind: str, length: int, width: int, *, base: float = 10000.0) -> Panels:
    """What is drawn of an encoding that needs no training, of so many positions and features; `base` of its frequencies."""
    if kind not in DRAWN:
        raise UsageError(f"There are no positions '{kind}' to draw.", did_you_mean(kind, DRAWN))
    places = torch.arange(length)
    if kind == "rotary":
        turned = Rotation(places, width, base=base)(torch.ones(length, width))
        return replace(
            _encoded("rotary: a vector of equal features, turned", turned.numpy() / np.sqrt(width)),
            measure="dot product of query and key",
        )
    module = make_positions(kind, width, limit=length, base=base)
    assert module is not None
    return _encoded(kind, module(places, torch.tensor([length])).reshape(length, width).numpy())


def model_panels(model: nn.Module, kind: str, length: int = 0) -> list[Panels]:
    """What is drawn of the positions that a model has learned, each by its path; `length` 0 for all positions."""
    if kind not in LEARNED:
        raise UsageError(
            f"{kind} positions are not learned: they are the same in every run.",
            f"Leave the run out: regard plot --positions {kind}",
        )
    found = [(path, module) for path, module in model.named_modules() if isinstance(module, LEARNED[kind])]
    if not found:
        raise UsageError(
            f"This model has no {kind} positions.",
            "Name a run of another model, such as gpt-nano (learned) or t5-tiny (relative).",
        )
    with torch.inference_mode():
        return [_learned(path, module, length) for path, module in found]


def _learned(path: str, module: nn.Module, length: int) -> Panels:
    if isinstance(module, RelativeBias):
        return _bias(path, module, length or module.max_distance)
    assert isinstance(module, Learned)
    return _encoded(path, module.weight[: length or None].float().cpu().numpy())


def _encoded(name: str, encoding: Any) -> Panels:
    """The panels of vectors (T, D): their numbers, and the dot products of each two by their distance."""
    encoding = np.asarray(encoding, np.float64)
    products = encoding @ encoding.T
    lines = [np.diagonal(products, offset) for offset in range(len(encoding))]
    return Panels(
        name=name,
        values=encoding,
        rows="position",
        columns="feature",
        first_column=0,
        legend="value",
        by_distance=_ranges(range(len(lines)), lines),
        measure="dot product of two positions",
        over="positions",
    )


def _bias(name: str, module: RelativeBias, longest: int) -> Panels:
    """The panels of a bias by the distance of a key from its query, below 0 for keys before it; a decoder has no others."""
    device = module.weight.device
    behind = module.buckets[module.max_distance :]
    places = torch.arange(-longest, 1 if bool((behind == behind[0]).all()) else longest + 1, device=device)
    values = module(torch.zeros(1, dtype=torch.long, device=device), places)[0, :, 0].double().cpu().numpy()  # (H, N)
    return Panels(
        name=name,
        values=values,
        rows="head",
        columns="distance of the key from the query",
        first_column=-longest,
        legend="bias",
        by_distance=_ranges(places.tolist(), values.T),
        measure="what is added to the score",
        over="heads",
    )


def _ranges(distances: Sequence[int], values: Sequence[Any]) -> Numbers:
    return np.array(
        [[distance, own.mean(), own.min(), own.max()] for distance, own in zip(distances, values, strict=True)]
    )


def positions_picture(panels: Sequence[Panels], *, title: str = "") -> "Figure":
    """Draw encodings one below the other: a map of each, and beside it what it says of distance."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    figure = make_figure(11, 3.9 * len(panels) + 0.4, layout="constrained")
    grid = figure.subplots(len(panels), 2, squeeze=False, width_ratios=(3, 2))
    colours = LinearSegmentedColormap.from_list("signed", _SIGNED)
    style = {"fontsize": 11, "color": INK, **text_style([title])}
    for (left, right), own in zip(grid, panels, strict=True):
        n_rows, n_columns = own.values.shape
        largest = float(np.abs(own.values).max()) or 1.0
        edges = own.first_column - 0.5, own.first_column + n_columns - 0.5, n_rows - 0.5, -0.5
        image = left.imshow(
            own.values, cmap=colours, vmin=-largest, vmax=largest, aspect="auto", extent=edges, interpolation="nearest"
        )
        left.set_title(safe_label(own.name, longest=60), loc="left", **style)
        left.set_xlabel(own.columns, fontsize=9, color=INK)
        left.set_ylabel(own.rows, fontsize=9, color=INK)
        left.tick_params(labelsize=8, color="0.75", labelcolor=INK)
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True, nbins="auto"))
        legend = figure.colorbar(image, ax=left, fraction=0.05, pad=0.02)
        legend.set_label(own.legend, fontsize=9, color=INK)
        legend.ax.tick_params(labelsize=8, color="0.75", labelcolor=INK)
        for frame in (*left.spines.values(), legend.outline):
            frame.set(edgecolor="0.75", linewidth=0.6)
        _draw_distances(right, own)
        right.set_title(f"{own.measure}, by distance", loc="left", **style)
    if title:
        figure.suptitle(safe_label(title, longest=120), x=0.01, ha="left", **style)
    return figure


def _draw_distances(axes: "Axes", own: Panels) -> None:
    """Draw the mean by distance, and the range around it where there is one."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    tidy(axes)
    distances, mean, least, greatest = own.by_distance.T
    spread = float((greatest - least).max())
    if spread > 1e-4 * float(np.abs(own.by_distance[:, 1:]).max()):
        style: dict[str, Any] = {"color": RUN_COLOURS[5], "alpha": 0.45, "linewidth": 0}
        axes.fill_between(distances, least, greatest, label=f"range over {own.over}", **style)
    axes.plot(distances, mean, color=RUN_COLOURS[0], linewidth=1.6, label=f"mean over {own.over}")
    axes.set_xlabel("distance" if own.first_column == 0 else own.columns, fontsize=9, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if float(np.abs(own.by_distance[:, 1:]).max()) >= 1000:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
