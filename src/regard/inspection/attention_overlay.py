"""Attention overlay: an image once for each word of its caption, bright where the captioner attended."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError
from regard.inspection.axis_labels import safe_label, text_style
from regard.inspection.render import INK, make_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 6
_PANEL_INCHES = 1.5
_DARKEST = 0.25  # what is left of a pixel without attention


def overlay_picture(
    image: NDArray[np.uint8], words: Sequence[str], weights: NDArray[Any], *, title: str = ""
) -> "Figure":
    """Draw an image (H, W, C), then once more for each word, lit by its weights (words, rows, columns).

    The patch with the largest weight of a word is as bright as the image itself, one with none a quarter as bright.
    """
    if weights.ndim != 3 or len(weights) != len(words) or not len(words):
        raise UsageError(
            f"The weights must have the axes ({len(words)} words, rows, columns), but their shape is {weights.shape}.",
            "Give a map for each word, and one word at least.",
        )
    n_panels = len(words) + 1
    columns = min(_COLUMNS, n_panels)
    rows = math.ceil(n_panels / columns)
    figure = make_figure(columns * _PANEL_INCHES, rows * (_PANEL_INCHES + 0.25) + 0.4, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    style = {"color": INK, "fontsize": 10, **text_style([title, *words])}
    plain = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(plain)
    for axes, word, own in zip(grid[1:], words, weights, strict=False):
        axes.imshow(dimmed(plain, own))
        axes.set_title(safe_label(word), **style)
    figure.suptitle(safe_label(title, longest=120), x=0.01, ha="left", **{**style, "fontsize": 12})
    return figure


def dimmed(image: NDArray[np.uint8], weights: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an image (H, W, 3), dimmed where the attention weights (rows, columns) of its patches are low."""
    rows, columns = (
        np.minimum(np.arange(size) * n // size, n - 1) for size, n in zip(image.shape[:2], weights.shape, strict=True)
    )
    shares = np.asarray(weights, np.float64) / max(float(weights.max()), 1e-9)
    light = _DARKEST + (1 - _DARKEST) * shares[rows][:, columns]
    shown: NDArray[np.uint8] = np.rint(image * light[:, :, None]).astype(np.uint8)
    return shown
