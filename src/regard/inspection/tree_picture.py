"""The beam tree as a picture: steps from left to right, in each the candidates by their totals, the best at the top.

Kept hypotheses are boxes with a solid line, finished ones have a double line around them, pruned ones are words on a dotted
or dashed line; so nothing is told by colour alone. The output is bold. A search of many steps goes on in a further band.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.beam_tree import BeamTree, TreeNode
from regard.inspection.render import INK, RUN_COLOURS, make_figure
from regard.inspection.tree_lines import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's blue, vermilion and green.
KEPT, HOPELESS, FINISHED = RUN_COLOURS[0], RUN_COLOURS[1], RUN_COLOURS[2]
PRUNED = "#7a7a7a"
MOST_INCHES = 15.0  # of a band
_ROW = 0.52  # inches from a candidate to the next
_GAP = 0.5  # between the boxes of two steps
_LETTER = 0.082  # a letter of nine points, about
_HALF = 0.17  # of a box's height
_KINDS = ("the output", "kept", "kept, and lost later", "finished", "pruned: below the beam", "pruned: hopeless")

Place = tuple[float, float]


def tree_picture(tree: BeamTree, *, title: str = "", pruned: bool = True) -> "Figure":
    """Draw a search; `pruned`: with the candidates that were given up at once."""
    drawn = [node for node in tree.nodes if pruned or node.fate != "pruned"]
    columns = [[node for node in drawn if node.step == step] for step in range(tree.n_steps)]
    widths = [max(_width(node) for node in column) for column in columns]
    bands = _bands(widths)
    rows = max(map(len, columns))
    across = max(sum(widths[step] + _GAP for step in band) for band in bands) + 0.5
    down, top = rows * _ROW + 0.45, 0.75
    across = max(across, 7.0)
    figure = make_figure(across, top + down * len(bands))
    height = figure.get_figheight()
    for place, band in enumerate(bands):
        bottom = height - top - down * (place + 1)
        axes = figure.add_axes((0, bottom / height, 1, down / height))
        begin = sum(widths[step] + _GAP for step in range(band[0]))
        axes.set(xlim=(begin - 0.4, begin - 0.4 + across), ylim=(-(rows - 0.35) * _ROW, 0.55))
        axes.axis("off")
        _draw_band(axes, tree, columns, widths, band)
    style: dict[str, Any] = {"color": INK, "fontsize": 12, "va": "top", **text_style([title])}
    figure.text(0.25 / across, 1 - 0.1 / height, safe_label(title or _about(tree), longest=120), **style)
    _draw_legend(figure, tree, drawn)
    return figure


def _about(tree: BeamTree) -> str:
    return f"beam search, width {tree.width}: {len(tree.finished)} finished, the best {number(tree[tree.best].score)}"


def _bands(widths: Sequence[float]) -> list[range]:
    """Steps that stand side by side, in as few bands as possible, about equally wide."""
    spaced = [width + _GAP for width in widths]
    even = sum(spaced) / len(_cut(spaced, MOST_INCHES))
    return _cut(spaced, min(MOST_INCHES, even + max(spaced)))


def _cut(widths: Sequence[float], most: float) -> list[range]:
    starts, used = [0], 0.0
    for step, width in enumerate(widths):
        if used + width > most and step > starts[-1]:
            starts.append(step)
            used = 0.0
        used += width
    return [range(first, last) for first, last in zip(starts, [*starts[1:], len(widths)], strict=True)]


def _width(node: TreeNode) -> float:
    return max(0.68 if node.score is not None else 0.55, 0.2 + _LETTER * len(_label(node)))


def _label(node: TreeNode) -> str:
    return safe_label(node.label, longest=16)


def _kind(tree: BeamTree, node: TreeNode, output: set[int], leading: set[int]) -> str:
    """How a node is drawn: one of the kinds of the legend."""
    if node.number in output:
        return "the output"
    if node.fate == "pruned":
        return "pruned: hopeless" if node.reason == "hopeless" else "pruned: below the beam"
    if node.score is not None:
        return "finished"
    return "kept" if node.number in leading else "kept, and lost later"


def _draw_band(
    axes: "Axes", tree: BeamTree, columns: Sequence[list[TreeNode]], widths: Sequence[float], band: range
) -> None:
    """Draw the nodes of some steps, and the lines that lead to them and away from them."""
    places: dict[int, Place] = {}
    middle = -_GAP / 2
    for step, column in enumerate(columns):
        middle += _GAP / 2 + widths[step] / 2
        for row, node in enumerate(sorted(column, key=lambda one: (one.fate == "pruned", -one.total))):
            places[node.number] = (middle, -row * _ROW)
        if step in band:
            axes.text(middle, 0.42, str(step), ha="center", va="center", fontsize=8, color="0.45")
        middle += widths[step] / 2 + _GAP / 2
    axes.text(axes.get_xlim()[0] + 0.1, 0.42, "step", fontsize=8, color="0.45", va="center")
    output = {node.number for node in tree.path(tree.best)}
    leading = {node.number for one in tree.finished for node in tree.path(one.number)}
    for step in range(band.start, min(band.stop + 1, len(columns))):
        for node in columns[step]:
            kind = _kind(tree, node, output, leading)
            if node.parent is not None:
                width = _width(node) - 0.1 if kind.startswith("pruned") else widths[step]
                _draw_line(axes, places[node.parent], places[node.number], widths[step - 1], width, kind)
            if step in band:
                _draw_node(axes, places[node.number], widths[step], node, kind)


_LINES: Mapping[str, dict[str, Any]] = {
    "the output": {"color": KEPT, "linewidth": 2.6},
    "kept": {"color": KEPT, "linewidth": 1.2},
    "kept, and lost later": {"color": KEPT, "linewidth": 1.0, "alpha": 0.45},
    "finished": {"color": FINISHED, "linewidth": 1.4},
    "pruned: below the beam": {"color": PRUNED, "linewidth": 0.8, "linestyle": (0, (1, 2))},
    "pruned: hopeless": {"color": HOPELESS, "linewidth": 0.9, "linestyle": (0, (4, 2))},
}


def _draw_line(axes: "Axes", begin: Place, end: Place, width: float, next_width: float, kind: str) -> None:
    """A curve from the right of one box to the left of another."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = (begin[0] + width / 2, begin[1]), (end[0] - next_width / 2, end[1])
    half = (x1 - x0) / 2
    curve = Path([(x0, y0), (x0 + half, y0), (x1 - half, y1), (x1, y1)], [Path.MOVETO, *[Path.CURVE4] * 3])
    style = dict(_LINES[kind])
    depth = {"the output": 3, "pruned: below the beam": 1, "pruned: hopeless": 1}.get(kind, 2)
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=style.pop("color"), zorder=depth, capstyle="butt", **style))


def _draw_node(axes: "Axes", place: Place, width: float, node: TreeNode, kind: str) -> None:
    """A token in its box, and under it its total, or the score of what is finished."""
    from matplotlib.patches import FancyBboxPatch

    (x, y), is_output = place, kind == "the output"
    colour = FINISHED if node.score is not None else str(_LINES[kind]["color"])
    faint = 0.6 if kind == "kept, and lost later" else 1.0
    if not kind.startswith("pruned"):
        face = colour if is_output else "white"
        edge = (colour, 0.45) if faint < 1 else colour
        style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "zorder": 4}
        style["boxstyle"] = "round,pad=0,rounding_size=0.06"
        for grown in (0.035, 0.0) if node.score is not None else (0.0,):
            corner, size = (x - width / 2 - grown, y - _HALF - grown), (width + 2 * grown, 2 * (_HALF + grown))
            own = {**style, "facecolor": "white"} if grown else style
            axes.add_patch(FancyBboxPatch(corner, *size, linewidth=0.9, **own))
    ink = "white" if is_output else colour if kind.startswith("pruned") else INK
    words: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 5, "color": ink, "alpha": faint}
    weight = "bold" if is_output else "normal"
    axes.text(x, y + 0.055, _label(node), fontsize=9, fontweight=weight, **words, **text_style())
    shown = number(node.total) if node.score is None else f"score {number(node.score)}"
    axes.text(x, y - 0.095, shown, fontsize=6, **words)


def _draw_legend(figure: "Figure", tree: BeamTree, drawn: Sequence[TreeNode]) -> None:
    from matplotlib.lines import Line2D

    output = {node.number for node in tree.path(tree.best)}
    leading = {node.number for one in tree.finished for node in tree.path(one.number)}
    found = {_kind(tree, node, output, leading) for node in drawn}
    kinds = [kind for kind in _KINDS if kind in found]
    lines = [Line2D([], [], **_LINES[kind]) for kind in kinds]
    across, height = figure.get_size_inches()
    figure.legend(
        lines,
        kinds,
        loc="upper left",
        bbox_to_anchor=(0.1 / across, 1 - 0.32 / height),
        ncols=len(kinds),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        handlelength=3,
        columnspacing=1.4,
    )
