"""Positional encodings as the page's explorer has them: the table of numbers, and what it says of distance."""

from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.position_picture import LEARNED, encoding_panels, model_panels
from regard.web.trace_bundle import Bundle

ABOUT = {
    "sinusoidal": "Sines and cosines of falling frequency are added to the tokens (Vaswani et al. 2017, 3.5).",
    "learned": "A vector for each position is learned, and added to the token's.",
    "rotary": "Pairs of features of queries and keys are turned by an angle that grows with the position (Su et al. 2021).",
    "index": "The number of the position itself is added: it grows without bound.",
    "fraction": "The position's share of the length is added: the same step means more in a short text.",
    "relative": "A learned number for each distance is added to the scores of each head (Raffel et al. 2020).",
}


def position_bundle(run: Any, kind: str, *, length: int, width: int, base: float) -> Bundle:
    """The encoding of a kind; without one, that of a run's own model. What is learned is there with a run only."""
    kind = kind or own_kind(run)
    if kind in LEARNED:
        if run is None:
            raise UsageError(
                f"{kind} positions are learned: there are none without a run.", "Name a run that has them."
            )
        panels = model_panels(run.model, kind, 0 if kind == "relative" else length)[0]
    else:
        panels = encoding_panels(kind, length, width, base=base)
    facts = {
        "kind": kind,
        "about": ABOUT.get(kind, ""),
        "name": panels.name,
        "rows": panels.rows,
        "columns": panels.columns,
        "first_column": panels.first_column,
        "legend": panels.legend,
        "measure": panels.measure,
        "over": panels.over,
    }
    arrays = {"table": np.asarray(panels.values, np.float32), "distances": np.asarray(panels.by_distance, np.float32)}
    if kind != "relative":
        arrays["dot"] = np.asarray(panels.values @ panels.values.T, np.float32)
    return facts, arrays


def own_kind(run: Any) -> str:
    """The kind of positions that a run's model has; refuse one without any."""
    if run is None:
        raise UsageError("No kind of positions is named, and no run.", f"Choose one: {', '.join(ABOUT)}.")
    named = getattr(getattr(run.model, "config", None), "positions", "none")
    if named != "none":
        return str(named)
    for kind, module in LEARNED.items():
        if any(isinstance(own, module) for own in run.model.modules()):
            return kind
    if hasattr(run.model.config, "position_base"):
        return "rotary"
    raise UsageError(f"The model of {run.reference} has no positions.", f"Choose a kind: {', '.join(ABOUT)}.")
