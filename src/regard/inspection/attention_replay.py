"""Attention replayed: scores, weights and heads once more, from the queries, keys and values that a trace recorded.

In float64, by each attention's own formula, far from the network: what `cell` shows for one weight, and `checks` for all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError, did_you_mean
from regard.inspection.axes import OF_MEMORY
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace, record_named
from regard.parts.score_formula import DotProductFormula, ScoreFormula

Numbers = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

# A weight below this is not told from 0 in float32, or in float16: its place needs no mask to be 0.
VANISHES, VANISHES_IN_HALF = 1e-35, 1e-7
MOST_SUMMANDS = 2**21  # that are held at once
MOST_NUMBERS = 2**27  # of attentions recorded together: half a gigabyte, 12 × 12 heads of 512 tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionReplay:
    """What was recorded of an attention: H heads of queries, G heads of keys and values, T queries, S keys.

    query: (H, T, K)   key: (G, S, K)   value: (G, S, V)   bias: (H, T, S), what is added to the scores, or None
    scores, weights: (H, T, S)          heads: (H, T, V), weights times values
    vanishing: below which a weight is not told from 0
    """

    formula: ScoreFormula
    query: Numbers
    key: Numbers
    value: Numbers
    bias: Numbers | None
    scores: Numbers
    weights: Numbers
    heads: Numbers
    vanishing: float = VANISHES

    def keys(self, head: int) -> Numbers:
        """The keys (S, K) that a head of queries reads."""
        keys: Numbers = self.key[self.formula.key_head(head)]
        return keys

    def values(self, head: int) -> Numbers:
        """The values (S, V) that it reads."""
        values: Numbers = self.value[self.formula.key_head(head)]
        return values

    def summands(self, head: int, query: int) -> Numbers:
        """(S, K): of each key, what adds up to its score before scale and bias."""
        return np.asarray(self.formula.summands(self.query[head, query], self.keys(head)), dtype=np.float64)

    def bias_row(self, head: int, query: int) -> Numbers | None:
        """(S,): what is added to the scores of a query."""
        return None if self.bias is None else self.bias[head, query]

    def replayed_scores(self, head: int) -> Numbers:
        """(T, S), from queries and keys."""
        queries, keys = self.query[head], self.keys(head)
        if isinstance(self.formula, DotProductFormula):  # all sums of products at once
            return self._with_bias(queries @ keys.T, head)
        n_at_once = max(1, MOST_SUMMANDS // max(1, keys.size))
        parts = [
            np.asarray(self.formula.summands(queries[begin : begin + n_at_once, None], keys[None])).sum(-1)
            for begin in range(0, len(queries), n_at_once)
        ]
        return self._with_bias(np.concatenate(parts), head)

    def _with_bias(self, sums: Numbers, head: int) -> Numbers:
        scores: Numbers = sums * self.formula.scale
        return scores if self.bias is None else scores + self.bias[head]

    def visible(self, head: int) -> Booleans:
        """(T, S): what no mask hides. Hidden is what has no weight, although its score alone would give it some."""
        weights, scores = self.weights[head], self.scores[head]
        given = weights != 0
        largest = np.where(given, scores, -np.inf).max(-1, keepdims=True, initial=-np.inf)
        above = np.minimum(scores - np.where(np.isfinite(largest), largest, 0.0), 50.0)  # e to more is not needed
        exponentials = np.exp(above)
        alone = exponentials / np.maximum(np.where(given, exponentials, 0.0).sum(-1, keepdims=True), 1.0)
        shown: Booleans = given | (given.any(-1, keepdims=True) & (alone < self.vanishing))
        return shown

    def replayed_weights(self, head: int) -> Numbers:
        """(T, S), from queries and keys, and from which places the recorded weights say are hidden."""
        return masked_softmax(self.replayed_scores(head), self.visible(head))

    def replayed_heads(self, head: int) -> Numbers:
        """(T, V): the recorded weights times the recorded values."""
        heads: Numbers = self.weights[head] @ self.values(head)
        return heads


def masked_softmax(scores: Numbers, visible: Booleans) -> Numbers:
    """Softmax over what is visible of (…, S), zeros elsewhere; the largest score is taken off first, against overflow."""
    seen = np.where(visible, scores, -np.inf)
    largest = seen.max(-1, keepdims=True, initial=-np.inf)
    exponentials = np.exp(seen - np.where(np.isfinite(largest), largest, 0.0))
    total = exponentials.sum(-1, keepdims=True)
    weights: Numbers = exponentials / np.where(total == 0, 1.0, total)
    return weights


def replay(trace: Trace, attention: str) -> AttentionReplay:
    """What was recorded of an attention, by its path; what was left out is recorded now, and not kept."""
    check_attention(trace, attention)
    return replays(trace, [attention])[0][attention]


def replays(
    trace: Trace, attentions: Sequence[str], also: Iterable[str] = ()
) -> tuple[dict[str, AttentionReplay], dict[str, NamedArray]]:
    """The same of several, and other arrays by name; what was left out of all of them is recorded in one pass."""
    names = [name for attention in attentions for name in _names(trace, attention)]
    found = recorded(trace, [*names, *also])
    return {attention: _replay_of(trace, attention, found) for attention in attentions}, found


def attention_groups(trace: Trace) -> list[list[str]]:
    """The attentions of a trace, as many together as may be in memory at once; what is kept stands alone."""
    groups: list[list[str]] = []
    room = 0
    for attention in trace.attentions():
        needed = sum(math.prod(trace.left_out.get(name, (0,))) for name in _names(trace, attention))
        if not needed or needed > room:
            groups.append([])
            room = MOST_NUMBERS if needed else 0
        groups[-1].append(attention)
        room -= needed
    return groups


def _names(trace: Trace, attention: str) -> list[str]:
    """The taps that a replay needs: query, key, value, scores, weights, output, and a bias where there is one."""
    own = [f"{attention}.{tap}" for tap in ("query", "key", "value", "scores", "weights")]
    bias = bias_name(trace, attention)
    return [*own, output_name(trace, attention), *([bias] if bias else [])]


def _replay_of(trace: Trace, attention: str, found: Mapping[str, NamedArray]) -> AttentionReplay:
    query, key, value, scores, weights, heads, *bias = (_by_head(found[name]) for name in _names(trace, attention))
    return AttentionReplay(
        formula=trace.formulas[attention],
        query=query,
        key=key,
        value=value,
        bias=bias[0] if bias else None,
        scores=scores,
        weights=weights,
        heads=heads,
        vanishing=VANISHES if trace.full_precision else VANISHES_IN_HALF,
    )


def check_attention(trace: Trace, attention: str) -> None:
    """Refuse what is not the path of an attention of this trace."""
    known = [path for path in trace.attentions() if path in trace.formulas]
    if attention in known:
        return
    if not known:
        raise UsageError("There is no attention in this trace.", "Look at its taps: trace.names()")
    raise UsageError(f"There is no attention '{attention}' in this trace.", did_you_mean(attention, known))


def output_name(trace: Trace, attention: str) -> str:
    """The tap that shows weights times values: the heads, or the context of a recurrent decoder."""
    heads = f"{attention}.heads"
    return heads if heads in trace else f"{attention}.context"


def bias_name(trace: Trace, attention: str) -> str:
    """The tap that shows what the distance of positions adds to the scores of self-attention (T5), or nothing."""
    stack, _, _ = attention.rpartition(".")  # encoder.0
    name = f"{stack.rpartition('.')[0]}_relative_bias.bias"
    return name if attention.rpartition(".")[2] not in OF_MEMORY and name in trace else ""


def recorded(trace: Trace, names: Iterable[str]) -> dict[str, NamedArray]:
    """Arrays by name; those that were left out come of one more pass, and are not kept."""
    names = list(names)
    kept = set(trace.kept)
    missing = [name for name in names if name not in kept and name in trace]
    if not missing:
        return {name: trace[name] for name in names}
    subject = trace.live(f"{missing[0]} was left out of the trace, as it is large, and")
    found = record_named(subject, trace.reading, missing)
    return {name: found[name] if name in found else trace[name] for name in names}


def _by_head(array: NamedArray) -> Numbers:
    """As float64, by head: recurrent decoders have one, and no axis for it."""
    values = np.asarray(array.values, dtype=np.float64)
    return values[None] if values.ndim == 2 else values
