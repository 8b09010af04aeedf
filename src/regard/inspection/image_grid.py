"""Image grid: images with their predictions below them."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.render import INK, make_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_IMAGES = 60  # more would be too small to be seen
_COLUMNS = 5
_PANEL_INCHES = 2.0
_LINE_INCHES = 0.17
_LETTERS = 28  # of a line below an image
_LINES = 5


def grid_picture(images: Sequence[NDArray[np.uint8]], predictions: Sequence[str]) -> "Figure":
    """Draw images (H, W, C), each with its prediction below it."""
    if not 0 < len(images) <= MAX_IMAGES:
        raise UsageError(f"A picture shows 1 to {MAX_IMAGES} images, not {len(images):,}.", "Name that many.")
    labels = [
        "\n".join(textwrap.wrap(safe_label(prediction, longest=_LETTERS * _LINES), _LETTERS, max_lines=_LINES))
        for prediction in predictions
    ]
    columns = min(_COLUMNS, len(images))
    rows = math.ceil(len(images) / columns)
    n_lines = max(label.count("\n") + 1 for label in labels)
    height = _PANEL_INCHES + n_lines * _LINE_INCHES
    figure = make_figure(columns * _PANEL_INCHES, rows * height, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, image, label in zip(grid, images, labels, strict=False):
        axes.imshow(np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image)
        axes.text(
            0.5, -0.04, label, transform=axes.transAxes, ha="center", va="top", fontsize=9, color=INK, **text_style()
        )
    return figure
