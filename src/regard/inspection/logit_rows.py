"""The logits of a trace, position by position: all of them, or the largest where a trace file kept only those.

logits.top_ids, logits.top_values   (position, rank): the largest, best first; the written token in the last place
logits.log_sum                      (position): log Σ exp of all logits, so that value - log_sum is a log-probability
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace

LOGITS = "logits"
TOP_IDS, TOP_VALUES, LOG_SUM = ".top_ids", ".top_values", ".log_sum"
Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LogitRow:
    """The logits of a position that there are, by the numbers of their outputs, and log Σ exp of all of them."""

    ids: Integers
    values: Numbers
    log_sum: float

    @property
    def best(self) -> int:
        """The likeliest output."""
        return int(self.ids[self.values.argmax()])

    def logit(self, token: int) -> float | None:
        """Of an output; None where it is not among those that were kept."""
        own = self.values[self.ids == token]
        return float(own[0]) if len(own) else None

    def probability(self, token: int) -> float | None:
        """Of an output, by the softmax; None where it is not among those that were kept."""
        logit = self.logit(token)
        return None if logit is None else float(np.exp(logit - self.log_sum))

    def likeliest(self, n: int, *, but: int | None = None) -> list[tuple[int, float]]:
        """The n likeliest outputs but one, with their probabilities."""
        order = [place for place in np.argsort(-self.values, kind="stable")[: n + 1] if self.ids[place] != but][:n]
        return [(int(self.ids[place]), float(np.exp(self.values[place] - self.log_sum))) for place in order]


def has_logits(trace: Trace) -> bool:
    """Whether there are any to read."""
    return LOGITS + TOP_IDS in trace or (LOGITS in trace and (trace.subject is not None or LOGITS in trace.kept))


def n_outputs(trace: Trace) -> int:
    """How many outputs the model chooses from; 0 where it has no logits."""
    if LOGITS not in trace:
        return 0
    return (trace.left_out[LOGITS] if LOGITS in trace.left_out else trace[LOGITS].shape)[-1]


def of_whole_input(trace: Trace) -> bool:
    """Whether the model says one thing of the whole input, and not one of each position."""
    if LOGITS + TOP_IDS in trace:
        return trace[LOGITS + TOP_IDS].values.ndim == 1
    return len(trace.left_out[LOGITS] if LOGITS in trace.left_out else trace[LOGITS].shape) == 1


def logit_rows(trace: Trace) -> list[LogitRow]:
    """The logits of each position, or of the one output; none where the model has none."""
    if not has_logits(trace):
        return []
    if LOGITS + TOP_IDS in trace and LOGITS not in trace.kept:
        ids = np.atleast_2d(trace[LOGITS + TOP_IDS].values.astype(np.int64))
        values = np.atleast_2d(trace[LOGITS + TOP_VALUES].values.astype(np.float64))
        log_sums = np.atleast_1d(trace[LOGITS + LOG_SUM].values.astype(np.float64))
    else:
        values = np.atleast_2d(trace[LOGITS].values.astype(np.float64))
        ids = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        log_sums = _log_sums(values)
    return [LogitRow(own, row, float(total)) for own, row, total in zip(ids, values, log_sums, strict=True)]


def _log_sums(logits: Numbers) -> Numbers:
    largest = logits.max(-1, keepdims=True)
    sums: Numbers = largest[..., 0] + np.log(np.exp(logits - largest).sum(-1))
    return sums


def largest_ids(logits: npt.NDArray[np.floating], n_top: int) -> Integers:
    """(…, V) to the numbers (…, top) of the largest, best first."""
    n_top = min(n_top, logits.shape[-1])
    ids = np.argpartition(-logits, n_top - 1, axis=-1)[..., :n_top]
    order = np.argsort(-np.take_along_axis(logits, ids, -1), axis=-1, kind="stable")
    return np.take_along_axis(ids, order, -1).astype(np.int64)


def top_logits(trace: Trace, n_top: int, name: str = LOGITS) -> dict[str, NamedArray]:
    """The largest logits of each position, best first; in the last place the written token's, if it is not among them."""
    array = trace[name]
    logits = array.values.astype(np.float64)
    ids: Any = largest_ids(logits, n_top)
    for position, token in enumerate(trace.reading.writes[: len(ids)] if logits.ndim == 2 else ()):
        if token not in ids[position]:
            ids[position, -1] = token
    own, labels = array.axes[:-1], {axis: texts for axis, texts in array.labels.items() if axis in array.axes[:-1]}
    values = np.take_along_axis(logits, ids, -1).astype(np.float32)
    return {
        f"{name}{TOP_IDS}": NamedArray(ids, (*own, "rank"), labels),
        f"{name}{TOP_VALUES}": NamedArray(values, (*own, "rank"), labels),
        f"{name}{LOG_SUM}": NamedArray(np.asarray(_log_sums(logits), np.float32), own, labels),
    }
