"""Attention maps of a trace: by kind, layer and head, with masked cells told apart; as pictures, and over an image.

encoder   self-attention of what reads          decoder   masked self-attention of what writes
cross     what writes attends to what was read  self      the only self-attention there is
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import UsageError, did_you_mean
from regard.inspection.axes import OF_MEMORY
from regard.inspection.map_blocks import Part
from regard.inspection.named_array import NamedArray
from regard.inspection.render import attention_atlas, attention_picture
from regard.inspection.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVERY = Part()
# e to this is no longer told from 0 beside 1, in float32 and in float16: a weight of 0 needs no mask then.
UNDERFLOW, UNDERFLOW_IN_HALF = -80.0, -16.0


def kinds(trace: Trace) -> dict[str, list[str]]:
    """The attentions of a trace by their kind, in the order of their layers."""
    found: dict[str, list[str]] = {}
    for path in trace.attentions():
        found.setdefault(_kind(path), []).append(path)
    own = [kind for kind in found if kind != "cross"]
    return {"self": found[own[0]]} if len(found) == len(own) == 1 else found


def _kind(path: str) -> str:
    parts = path.split(".")
    if parts[-1] in OF_MEMORY:
        return "cross"
    return "encoder" if "encoder" in parts or "image" in parts else "decoder"


def find_attention(trace: Trace, kind: str = "", layer: int = -1) -> str:
    """The path of an attention by its kind (by default cross, else the last) and its layer (by default the last)."""
    found = kinds(trace)
    if not found:
        raise UsageError("This model has no attention to look at.", "Look at its taps: --tap NAME, or --json.")
    kind = kind or ("cross" if "cross" in found else list(found)[-1])
    if kind not in found:
        raise UsageError(f"This model has no {kind} attention.", did_you_mean(kind, found))
    layers = found[kind]
    if not -len(layers) <= layer < len(layers):
        raise UsageError(
            f"There are the layers 0 to {len(layers) - 1} of {kind} attention, and no {layer}.", "Layers count from 0."
        )
    return layers[layer]


def check_head(trace: Trace, path: str, head: int) -> None:
    """Refuse a head that an attention does not have."""
    n_heads = trace[f"{path}.weights"].shape[0]
    if not 0 <= head < n_heads:
        raise UsageError(f"{path} has the heads 0 to {n_heads - 1}, and no head {head}.", "Heads count from 0.")


def masked_weights(trace: Trace, path: str) -> NamedArray:
    """The weights (head, position, position) of an attention, with NaN for what a mask hides.

    Hidden is what has no weight although its score alone would give it some.
    """
    weights = trace[f"{path}.weights"]
    values = weights.values.astype(np.float32)
    if f"{path}.scores" in trace:
        scores = trace[f"{path}.scores"].values
        floor = UNDERFLOW if trace.full_precision else UNDERFLOW_IN_HALF
        seen = np.where(values > 0, scores, -np.inf).max(-1, keepdims=True)
        values = np.where((values == 0) & (scores - seen > floor), np.nan, values)
    return NamedArray(values, weights.axes, weights.labels)


def row_labels(trace: Trace, path: str) -> tuple[str, ...]:
    """What each row of a map is: of a decoder what it writes there, and beside it what it reads where it looks at itself."""
    reads = trace[f"{path}.weights"].labels.get(trace[f"{path}.weights"].axes[1], ())
    reading = trace.reading
    if reading.at(path) is not reading.own or not reading.writes:
        return tuple(reads)
    writes = [reading.written(position) for position in range(len(reads))]
    if _kind(path) == "cross":
        return tuple(writes)
    return tuple(f"{_visible(read)} → {_visible(write)}" for read, write in zip(reads, writes, strict=True))


def _visible(token: str) -> str:
    """A token without the blanks around it; where it is nothing else, those as signs."""
    return token.strip() or token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")


def column_labels(trace: Trace, path: str) -> tuple[str, ...]:
    """What each column of a map is: what is attended to."""
    weights = trace[f"{path}.weights"]
    return tuple(weights.labels.get(weights.axes[2], ()))


def map_picture(
    trace: Trace,
    path: str,
    head: int | None = None,
    *,
    gamma: float = 1.0,
    queries: Part = EVERY,
    keys: Part = EVERY,
) -> "Figure":
    """One head of an attention, or the mean over its heads; all of it, or some of its queries (rows) and keys (columns)."""
    weights = masked_weights(trace, path)
    if head is not None:
        check_head(trace, path, head)
    values = weights.values.mean(0) if head is None else weights.values[head]
    of = "mean over heads" if head is None else f"head {head}"
    own, others = queries.within(len(values), "queries"), keys.within(values.shape[1], "keys")
    values, rows, columns = values[own, others], row_labels(trace, path)[own], column_labels(trace, path)[others]
    if queries or keys:
        rows = tuple(f"{number} {label.strip()}" for number, label in enumerate(rows, own.start))
        columns = tuple(f"{number} {label.strip()}" for number, label in enumerate(columns, others.start))
        of += f", queries {own.start} to {own.stop - 1}, keys {others.start} to {others.stop - 1}"
    reads = "" if _kind(path) == "cross" else "reads → "
    names = f"{reads}writes" if trace.reading.writes and trace.reading.at(path) is trace.reading.own else "attends"
    return attention_picture(
        values, columns, rows, title=f"{path}, {of}: {trace.title}", rows=names, columns="attends to", gamma=gamma
    )


def atlas_picture(trace: Trace, kind: str = "", *, gamma: float = 1.0) -> "Figure":
    """All heads of all layers of one kind, or of the kind that tells most."""
    paths = kinds(trace)[_kind_of(trace, kind)]
    weights = np.stack([masked_weights(trace, path).values for path in paths])
    title = f"{_kind_of(trace, kind)} attention: {trace.title}"
    return attention_atlas(
        weights, column_labels(trace, paths[0]), row_labels(trace, paths[0]), title=title, gamma=gamma
    )


def _kind_of(trace: Trace, kind: str) -> str:
    path = find_attention(trace, kind)
    return next(name for name, paths in kinds(trace).items() if path in paths)


def image_picture(trace: Trace, path: str, head: int | None = None) -> "Figure":
    """What an attention over an image's patches lights up: a panel per head, or per written token."""
    from regard.inspection.attention_overlay import overlay_picture

    image, (panels, grids) = trace.reading.image, patch_maps(trace, path, head)
    if image is None:
        raise UsageError("The input is no image.", "Leave the image's options out.")
    return overlay_picture(image, panels, grids, title=f"{path}: {_one_line(trace.output)}")


def _one_line(output: str) -> str:
    """An output whose columns are separated by tabs, as a title has it."""
    return ", ".join(output.split("\t"))


def patch_maps(trace: Trace, path: str, head: int | None = None) -> tuple[list[str], np.ndarray]:
    """The weights over patches (panels, rows, columns): of each written token, or of the class token in each head."""
    weights = trace[f"{path}.weights"].values
    keys = trace.reading.memory if _kind(path) == "cross" else trace.reading.at(path)
    if keys is None or keys.grid is None:
        raise UsageError(f"{path} does not attend to patches of an image.", "Choose another --kind.")
    if head is not None:
        check_head(trace, path, head)
    n_patches = keys.grid[0] * keys.grid[1]
    if _kind(path) == "cross":
        chosen = weights.mean(0) if head is None else weights[head]
        panels = [label.strip() or "␣" for label in row_labels(trace, path)]
    else:
        chosen = weights[:, 0] if head is None else weights[head : head + 1, 0]
        panels = [f"head {number}" for number in (range(len(weights)) if head is None else [head])]
    grids = np.asarray(chosen[:, -n_patches:], np.float32)
    return panels, grids.reshape(-1, *keys.grid)


def as_records(
    trace: Trace, path: str, head: int, *, queries: Part = EVERY, keys: Part = EVERY
) -> list[Mapping[str, object]]:
    """One map as a table: a record per query, with a column per key; of all of them, or of some."""
    check_head(trace, path, head)
    values = trace[f"{path}.weights"].values[head]
    own, others = queries.within(len(values), "queries"), keys.within(values.shape[1], "keys")
    columns = [f"{number} {label}" for number, label in enumerate(column_labels(trace, path))][others]
    labelled = list(enumerate(zip(row_labels(trace, path), values, strict=True)))[own]
    return [
        {"position": number, "token": label, **dict(zip(columns, map(float, row[others]), strict=True))}
        for number, (label, row) in labelled
    ]
