"""The logit lens and the residual stream's lengths as arrays, for traces that will be read without their model.

Reading the lens takes the output layer. So a trace file keeps what it says, beside each tap TAP of the residual stream:

    TAP.norm                       (position): the length of the vectors there; where the vectors are not kept
    TAP.lens, TAP.lens_ranks       (position): the probability of what is written, and its rank
    TAP.lens_ids, TAP.lens_shares  (position, rank): the likeliest outputs, best first, and their probabilities
"""

import math
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.lens import Lens, read_lens
from regard.inspection.logit_rows import logit_rows, n_outputs
from regard.inspection.named_array import NamedArray, Values
from regard.inspection.residual_stream import stream_or_map_taps, vector_lengths
from regard.inspection.trace import Trace

NORM, LENS, RANKS, IDS, SHARES = ".norm", ".lens", ".lens_ranks", ".lens_ids", ".lens_shares"
OF_LENS = (LENS, RANKS, IDS, SHARES)
TOP = 5  # of the likeliest outputs of each state
MOST_PRODUCTS = 2**34  # of a lens that is kept unasked: about a second's


def norm_arrays(trace: Trace) -> dict[str, NamedArray]:
    """The lengths of the residual stream's vectors at each position; of a feature map, one number."""
    return {
        f"{tap}{NORM}": _at_positions(vector_lengths(trace[tap].values), trace[tap])
        for tap in stream_or_map_taps(trace)
    }


def lens_arrays(trace: Trace, top: int = TOP) -> dict[str, NamedArray]:
    """What the lens says; UsageError where a model has none."""
    lens, found = read_lens(trace, top=top), {}
    for state, tap in enumerate(lens.taps):
        values: tuple[Any, ...] = (lens.followed, lens.ranks, lens.ids, lens.probabilities)
        for ending, own in zip(OF_LENS, values, strict=True):
            found[f"{tap}{ending}"] = _at_positions(own[state], trace[tap])
    return found


def lens_costs_little(trace: Trace) -> bool:
    """Whether reading the lens takes about a second at most: states × positions × width × outputs."""
    taps = stream_or_map_taps(trace)
    shapes = {**trace.left_out, **{name: trace[name].shape for name in trace.kept}}
    return len(taps) * math.prod(shapes[taps[-1]]) * n_outputs(trace) <= MOST_PRODUCTS


def _at_positions(values: Values, state: NamedArray) -> NamedArray:
    """Numbers (T, …) with the labels of the state (T, D) that they are of; or of the whole input, (1, …) or ()."""
    own = values.shape[:1] == state.shape[:1] and state.values.ndim == 2
    first = state.axes[:1] if own else ("whole",) * min(1, values.ndim)
    axes = (*first, *("rank",) * (values.ndim - 1))
    return NamedArray(values, axes, {axis: texts for axis, texts in state.labels.items() if axis in axes})


def stored_lens(trace: Trace, top: int = TOP) -> Lens:
    """The lens that a trace file kept; refuse one without, and more of the likeliest than it has."""
    taps = [name.removesuffix(IDS) for name in trace.names(f"*{IDS}")]
    if not taps:
        trace.live("The logit lens needs the output layer, and its tokens were not kept;")
    arrays = {ending: [trace[f"{tap}{ending}"].values for tap in taps] for ending in OF_LENS}
    if len({own.shape for own in arrays[IDS]}) != 1:
        raise UsageError("The lens in this trace does not have the same positions after each sublayer.")
    n_kept = arrays[IDS][0].shape[-1]
    if top < 1 or (n_kept < top and n_kept >= TOP):
        raise UsageError(
            f"The trace was read from a file, which keeps the {n_kept} likeliest of each state, not {top}.",
            f"Ask for 1 to {n_kept}, or keep more of them: trace.save(FILE, lens={max(top, 1)})",
        )
    ids, reading = np.stack(arrays[IDS])[..., :top].astype(np.int64), trace.reading
    n_positions = ids.shape[1]
    by_position = n_positions == len(reading.own) and trace[f"{taps[0]}{IDS}"].axes[0] != "whole"
    likeliest = [row.best for row in logit_rows(trace)] or ids[-1, :, 0].tolist()
    writes = reading.writes[:n_positions] if by_position else ()
    follows = [*writes, *likeliest[len(writes) :]]
    return Lens(
        taps=tuple(taps),
        reads=reading.own.labels if by_position else ("image" if reading.image is not None else "sequence",),
        writes=tuple(map(reading.outputs, follows)),
        ids=ids,
        probabilities=np.stack(arrays[SHARES])[..., :top].astype(np.float32),
        tokens={int(id): reading.outputs(int(id)) for id in np.unique(ids)},
        ranks=np.stack(arrays[RANKS]).astype(np.int64),
        followed=np.stack(arrays[LENS]).astype(np.float32),
    )
