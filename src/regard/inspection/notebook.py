"""Arrays in a notebook: attention maps as SVG, one map or the heads side by side.

Drawn are numbers from 0 to 1 between labelled positions, which is what attention weights, rollout and flow are. Tokens are
anybody's text: they are drawn as shapes, and never become markup.
"""

from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from regard.inspection.render import attention_atlas, attention_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.inspection.named_array import NamedArray

MOST_MAPS = 64  # side by side


def svg_of(array: "NamedArray") -> str | None:
    """A map (rows, columns), or one for each head (head, rows, columns), as SVG; None where there is no map to draw."""
    if array.values.ndim not in (2, 3) or 0 in array.shape:
        return None
    rows, columns = array.axes[-2:]
    if rows not in array.labels or columns not in array.labels or not _between_0_and_1(array):
        return None
    names = array.labels[columns], array.labels[rows]
    if array.values.ndim == 2:
        return _svg(attention_picture(array.values, *names, rows=rows, columns=columns))
    if array.axes[0] != "head" or len(array) > MOST_MAPS:
        return None
    return _svg(attention_atlas(array.values[None], *names))


def _between_0_and_1(array: "NamedArray") -> bool:
    """Whether all that is not masked is a weight; a rounding error is allowed."""
    known = array.values[~np.isnan(array.values)]
    return bool(known.size and known.min() >= -1e-6 and known.max() <= 1 + 1e-3)


def _svg(figure: "Figure") -> str:
    import matplotlib as mpl

    drawn = StringIO()
    with mpl.rc_context({"svg.hashsalt": "regard", "svg.fonttype": "path"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches="tight", facecolor="white")
    text = drawn.getvalue()
    return text[text.index("<svg") :]  # a notebook takes no XML declaration
