"""Attention maps as pictures: one map, or all heads side by side; and how any picture is made and saved.

Figures are made without pyplot, so that no state is shared and no window opens. matplotlib is imported where it is
used, since it takes a second to load. Text on pictures goes through `inspection.axis_labels`.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.map_blocks import in_blocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Numbers = NDArray[np.float64]

# From 0 to 1: steps of equal size in OKLab from near white, since a map is mostly zeros and stands on white paper.
SCALE = (
    *("#f7fbfc", "#cde7f1", "#a5d2e8", "#81bce0", "#61a4d7", "#488acb"),
    *("#3a70bb", "#3356a6", "#2e3d8b", "#29286c", "#1f174a"),
)
# Okabe and Ito's palette, told apart by colour-blind readers too.
RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
RUN_LINES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))  # dashes and markers, for seven runs each
INK = "#333333"
ENDINGS = (".pdf", ".png", ".svg")

_CELL_INCHES = 0.4
_LARGEST_MAP_INCHES = 16.0
_MOST_LABELS = 100  # of an axis
# Maps of so few cells have room for the number in each.
_CELLS_WITH_NUMBERS = 400


def attention_picture(
    weights: NDArray[Any],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    title: str = "",
    rows: str = "writes",
    columns: str = "looks at",
    gamma: float = 1.0,
) -> "Figure":
    """Draw weights (T, S), 0 to 1: a row for each target token (what that step writes), a column for each source token.

    NaN stands for masked cells, which are hatched. `rows` and `columns` name the axes; `gamma` as for `labelled_map`.
    Of long sequences a cell stands for a block of positions, and the legend says so.
    """
    _check_shape(weights, len(target_tokens), len(source_tokens))
    shown = in_blocks(weights, target_tokens, source_tokens)
    cell = min(_CELL_INCHES, _LARGEST_MAP_INCHES / max(shown.values.shape))
    figure, axes = labelled_map(
        shown.values, shown.row_labels, shown.column_labels, cell=cell, legend=shown.legend, gamma=gamma
    )
    name_axes(axes, title=title, rows=rows, columns=columns)
    if weights.size <= _CELLS_WITH_NUMBERS:
        _write_numbers(axes, weights, gamma=gamma)
    return figure


def labelled_map(
    values: NDArray[Any],
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    *,
    cell: float,
    legend: str,
    gamma: float = 1.0,
) -> tuple["Figure", "Axes"]:
    """Draw values (rows, columns), 0 to 1, as cells so many inches wide, with their labels and the scale beside them.

    A cell is coloured by its value to the power of `gamma`: below 1 small values are told apart.
    """
    n_rows, n_columns = values.shape
    font_size = max(5.0, min(11.0, 28 * cell * _every(max(values.shape))))
    # A letter is about 0.6 of the font's size wide; labels of columns lean by 45 degrees.
    letter = 0.6 * font_size / 72
    left = 0.5 + letter * _longest(row_labels)
    top = 0.9 + 0.71 * letter * _longest(column_labels)
    width, height = n_columns * cell, n_rows * cell
    scale_height = max(height, 1.5)
    figure = make_figure(left + width + 1.2, scale_height + top + 0.2)
    axes = _axes_in_inches(figure, left, top, width, height)
    image = draw_map(axes, values, gamma=gamma)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_tokens(axes, column_labels, row_labels, font_size=font_size)
    beside = _axes_in_inches(figure, left + width + 0.15, top, 0.14, scale_height)
    draw_legend(figure.colorbar(image, cax=beside), legend, gamma=gamma)
    return figure, axes


def name_axes(axes: "Axes", *, title: str, rows: str, columns: str) -> None:
    """Write what the rows and the columns of a map are, and its title above."""
    axes.set_xlabel(columns, color=INK, fontsize=10)
    axes.set_ylabel(rows, color=INK, fontsize=10)
    axes.set_title(safe_label(title, longest=200), color=INK, fontsize=12, loc="left", pad=10, **text_style())


def attention_atlas(
    weights: NDArray[Any],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    title: str = "",
    gamma: float = 1.0,
) -> "Figure":
    """Draw weights (L, H, T, S) as small maps: a row for each layer, a column for each head, both counted from 0.

    Rows and columns of each map are as in `attention_picture`; short sequences are labelled at the outer maps, long ones are
    shown in blocks.
    """
    _check_shape(weights, len(target_tokens), len(source_tokens), leading=("layers", "heads"))
    blocks = in_blocks(weights, target_tokens, source_tokens)
    weights = blocks.values
    n_layers, n_heads, n_rows, n_columns = weights.shape
    labelled = max(n_rows, n_columns) <= 24
    width, height = (max(1.0, 0.13 * n) if labelled else 1.6 for n in (n_columns, n_rows))
    # Around the maps: labels of six points, a letter of which is about a twentieth of an inch.
    left = 0.4 + (0.05 * _longest(target_tokens) if labelled else 0)
    bottom = 0.1 + (0.05 * _longest(source_tokens) if labelled else 0)
    gap, top = 0.08, 0.6
    across, down = n_heads * (width + gap), n_layers * (height + gap)
    figure = make_figure(left + across + 1.0, top + down + bottom)
    for layer in range(n_layers):
        for head in range(n_heads):
            axes = _axes_in_inches(figure, left + head * (width + gap), top + layer * (height + gap), width, height)
            image = draw_map(axes, weights[layer, head], gamma=gamma)
            axes.set_aspect("auto")
            columns = source_tokens if labelled and layer == n_layers - 1 else ()
            rows = target_tokens if labelled and head == 0 else ()
            label_tokens(axes, columns, rows, font_size=6, rotation=90)
            if layer == 0:
                axes.set_title(f"head {head}", fontsize=9, color=INK)
            if head == 0:
                axes.set_ylabel(f"layer {layer}", fontsize=9, color=INK)
    style = {"color": INK, "fontsize": 12, "va": "top", **text_style([title])}
    figure.text(left / figure.get_figwidth(), 1, safe_label(title, longest=200), **style)
    beside = _axes_in_inches(figure, left + across + 0.1, top, 0.14, min(4.0, max(1.5, down - gap)))
    draw_legend(figure.colorbar(image, cax=beside), blocks.legend, gamma=gamma)
    return figure


def check_ending(path: Path | str) -> str:
    """Return the ending of a picture's name; refuse one of another format."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"A picture is written as {', '.join(ENDINGS)}, not as '{path.suffix or path.name}'.",
            f"Name it, for example, {path.stem or 'picture'}.png.",
        )
    return path.suffix.lower()


def save(figure: "Figure", path: Path | str) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending; the same figure gives the same bytes."""
    import matplotlib as mpl

    path = Path(path)
    ending = check_ending(path)
    # The date would make two equal pictures different files.
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"svg.hashsalt": "regard"}):
            figure.savefig(path, dpi=160, metadata=undated[ending], bbox_inches="tight", facecolor="white")
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.", "Choose a place that can be written to.") from error
    return path


def make_figure(width: float, height: float, *, layout: Literal["constrained"] | None = None) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def run_style(number: int) -> dict[str, Any]:
    """How the curve of a run is drawn, by its number from 0: no two of the first 28 alike."""
    dashes, marker = RUN_LINES[number // len(RUN_COLOURS) % len(RUN_LINES)]
    return {"color": RUN_COLOURS[number % len(RUN_COLOURS)], "linestyle": dashes, "marker": marker}


def _axes_in_inches(figure: "Figure", left: float, top: float, width: float, height: float) -> "Axes":
    """Place axes by their distance from the figure's upper left corner, so that cells have the same size everywhere."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def _check_shape(weights: NDArray[Any], n_rows: int, n_columns: int, *, leading: tuple[str, ...] = ()) -> None:
    fits = weights.ndim == len(leading) + 2 and weights.shape[-2:] == (n_rows, n_columns)
    if not fits or weights.size == 0:
        expected = ", ".join([*leading, f"{n_rows} target tokens", f"{n_columns} source tokens"])
        raise UsageError(
            f"The weights must have the axes ({expected}), but their shape is {weights.shape}.",
            "Give one token for each row and each column, and at least one of each.",
        )


def draw_map(axes: "Axes", weights: NDArray[Any], *, gamma: float = 1.0) -> "AxesImage":
    """Colour cells by their weights, 0 to 1, on the one scale of all maps; NaN is hatched."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    masked = np.ma.masked_invalid(np.asarray(weights, dtype=np.float64))
    # Masked cells stay transparent and show the hatched ground.
    axes.patch.set(hatch="/////", facecolor="white", edgecolor="0.8")
    for spine in axes.spines.values():
        spine.set(color="0.75", linewidth=0.6)
    colours = LinearSegmentedColormap.from_list("weights", SCALE)
    return axes.imshow(masked, cmap=colours, norm=PowerNorm(gamma, vmin=0, vmax=1), aspect="equal")


def label_tokens(
    axes: "Axes",
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    font_size: float,
    rotation: int = 45,
) -> None:
    """Write tokens at the columns and rows of a map, as many as have room."""
    style = {"fontsize": font_size, "color": INK, **text_style([*source_tokens, *target_tokens])}
    every_row, every_column = _every(len(target_tokens)), _every(len(source_tokens))
    column_style = style if rotation == 90 else {**style, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(
        range(0, len(source_tokens), every_column),
        [safe_label(token) for token in source_tokens[::every_column]],
        rotation=rotation,
        **column_style,
    )
    axes.set_yticks(
        range(0, len(target_tokens), every_row), [safe_label(token) for token in target_tokens[::every_row]], **style
    )
    axes.tick_params(length=0, pad=3)


def _every(n_labels: int) -> int:
    """Which labels have room: past some dozens every second, and so on."""
    return math.ceil(n_labels / _MOST_LABELS) or 1


def _longest(tokens: Sequence[str]) -> int:
    return max(len(safe_label(token)) for token in tokens)


def _write_numbers(axes: "Axes", weights: NDArray[Any], *, gamma: float = 1.0) -> None:
    """Write the weights that a reader can tell from nothing into their cells, dark on pale and pale on dark."""
    for row, column in zip(*np.nonzero(weights >= 0.05), strict=True):
        value = float(weights[row, column])
        colour = "white" if value**gamma > 0.45 else INK
        axes.text(column, row, f"{value:.2f}".lstrip("0"), ha="center", va="center", color=colour, fontsize=7)


def draw_legend(legend: "Colorbar", label: str, *, gamma: float = 1.0) -> None:
    """Say what the colours of a map are."""
    even = (0, 0.2, 0.4, 0.6, 0.8, 1)  # steps of colour
    legend.set_ticks([round(step ** (1 / gamma), 2) for step in even])
    legend.set_label(label, fontsize=9, color=INK)
    legend.ax.tick_params(labelsize=8, color="0.75", labelcolor=INK)
    legend.outline.set(edgecolor="0.75", linewidth=0.6)


def tidy(axes: "Axes") -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set(color="0.75")
    axes.tick_params(labelsize=8, color="0.75", labelcolor=INK)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
