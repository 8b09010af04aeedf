"""The confusion matrix as a picture: which class was taken for which, each row shaded by its shares."""

from typing import TYPE_CHECKING

import numpy as np

from regard.errors import UsageError
from regard.evaluation.confusion_matrix import ConfusionMatrix
from regard.inspection.render import INK, labelled_map, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST_CELL_INCHES = 0.55
_READABLE_CELL_INCHES = 0.13  # as high as the smallest label
_MAP_INCHES = 11.0  # or more, where cells would be too small to read
_LARGEST_MAP_INCHES = 24.0
_MOST_WITH_COUNTS = 25  # classes: the counts of more would not fit their cells
_GAMMA = 0.5  # mistakes are a few percent of a class: on an even scale they would all be white


def confusion_picture(matrix: ConfusionMatrix, *, title: str = "") -> "Figure":
    """Draw a row for each expected class and a column for each predicted one, the darker the more of the row it holds.

    Where classes are few, the counts stand in the cells. The row of a class that was never expected is hatched.
    """
    n_classes = len(matrix.labels)
    if not n_classes:
        raise UsageError("There are no classes to draw.", "Give a confusion matrix of at least one class.")
    readable = max(_READABLE_CELL_INCHES, _MAP_INCHES / n_classes)
    cell = min(_LARGEST_CELL_INCHES, readable, _LARGEST_MAP_INCHES / n_classes)
    figure, axes = labelled_map(
        matrix.shares(), matrix.labels, matrix.labels, cell=cell, legend="share of the expected class", gamma=_GAMMA
    )
    name_axes(axes, title=title, rows="expected", columns="predicted")
    if n_classes <= _MOST_WITH_COUNTS:
        _write_counts(axes, matrix, cell=cell)
    return figure


def _write_counts(axes: "Axes", matrix: ConfusionMatrix, *, cell: float) -> None:
    """Write the counts but the zeros into their cells, small enough to fit, dark on pale and pale on dark."""
    counts, shares = np.array(matrix.counts), matrix.shares()
    longest = len(f"{counts.max():,}")
    font_size = min(9.0, 72 * cell / (0.65 * max(longest, 2)))
    for row, column in zip(*np.nonzero(counts), strict=True):
        colour = "white" if shares[row, column] ** _GAMMA > 0.45 else INK
        text = f"{counts[row, column]:,}"
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=font_size)
