"""The difference of two traces: tensors by tap, the logits of what was written before and after, where outputs diverge.

Made for a trace with and without an intervention, for two checkpoints of a run, for two models on one input. A trace differs
from itself by nothing.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.cell_text import shown_token
from regard.inspection.lens_arrays import IDS, NORM, OF_LENS, RANKS
from regard.inspection.logit_rows import LOG_SUM, TOP_IDS, TOP_VALUES, LogitRow, logit_rows
from regard.inspection.trace import Trace
from regard.runs.disk import without_non_finite

N_SHOWN = 12  # taps that the lines list
_NUMBERS = (TOP_IDS, IDS, RANKS)  # of outputs: their differences say nothing
_IN_FILES = (TOP_IDS, TOP_VALUES, LOG_SUM, NORM, *OF_LENS)


@dataclass(frozen=True, kw_only=True)
class TokenScore:
    """What a model gives to a token: its logit and log-probability, and its strongest rival with the same of it.

    None where a file kept the largest logits only, and the token is not among them
    """

    logit: float | None
    log_prob: float | None
    rival: str
    rival_logit: float
    rival_log_prob: float


@dataclass(frozen=True, kw_only=True)
class TokenChange:
    """A token that the first trace wrote at a position (or the output it finds likeliest there), in both traces."""

    position: int
    reads: str
    token: str
    before: TokenScore
    after: TokenScore

    @property
    def change(self) -> float:
        """By how much the log-probability rises; 0 where it is not known."""
        before, after = self.before.log_prob, self.after.log_prob
        return 0.0 if before is None or after is None else after - before


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two traces, the first against the second.

    taps:         by name, the largest absolute difference, where both have it in the same shape
    not_compared: taps that only one of them has, or in another shape
    tokens:       what was written, as far as both wrote the same before it
    diverges:     the position from which on they wrote something else; None where they wrote the same
    outputs:      what each wrote
    """

    taps: dict[str, float]
    not_compared: tuple[str, ...]
    tokens: tuple[TokenChange, ...]
    diverges: int | None
    outputs: tuple[str, str]

    @property
    def largest(self) -> float:
        """The largest difference of any number."""
        return max(self.taps.values(), default=0.0)

    def lines(self) -> list[str]:
        """What a person sees: outputs, tokens, and the taps that differ most."""
        first, second = (shown_token(output.replace("\t", ", "), longest=200) for output in self.outputs)
        lines = [f"output: {first}"] if first == second else [f"output: {first}", f"        {second}"]
        if self.diverges is not None:
            lines.append(f"what is written diverges at position {self.diverges}")
        lines += ["", *self._token_lines()] if self.tokens else []
        lines += ["", *self._tap_lines()]
        if self.not_compared:
            lines.append(f"not compared, as shapes differ or only one has them: {len(self.not_compared)} taps")
        return lines

    def _token_lines(self) -> list[str]:
        head = f"{'position':>8}  {'token':<20}{'log p':>9}{'after':>9}{'change':>9}  rival, before and after"
        return [head, *(_token_line(own) for own in self.tokens)]

    def _tap_lines(self) -> list[str]:
        if not self.taps:
            return ["no tap of one has the shape that it has in the other"]
        if not self.largest:
            return [f"no difference in {len(self.taps)} taps"]
        ranked = sorted(self.taps.items(), key=lambda item: -item[1])[:N_SHOWN]
        width = max(len(name) for name, _ in ranked)
        return ["largest differences", *(f"  {name:<{width}}  {own:.3g}" for name, own in ranked if own)]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """As data that `json.dumps` takes."""
        found: dict[str, Any] = without_non_finite({**asdict(self), "largest": self.largest})
        return found


def _token_line(own: TokenChange) -> str:
    before, after = (f"{one.log_prob:.3f}" if one.log_prob is not None else "?" for one in (own.before, own.after))
    rivals = f"{shown_token(own.before.rival)} {own.before.rival_log_prob:.2f}, {shown_token(own.after.rival)}"
    shown = f"{own.position:>8}  {shown_token(own.token, longest=18):<20}{before:>9}{after:>9}{own.change:>+9.3f}"
    return f"{shown}  {rivals} {own.after.rival_log_prob:.2f}"


def compare_traces(a: Trace, b: Trace) -> Difference:
    """What differs between two traces, of one input or of two, as far as it can be compared."""
    shared = [name for name in a if name in b]
    if not shared:
        raise UsageError(
            "The traces share no tap, and so nothing of them can be compared.",
            "Compare traces of models of one family: their taps have the same names.",
        )
    kept = set(a.kept) & set(b.kept)
    equal = [name for name in shared if name in kept and a[name].shape == b[name].shape]
    others = {name for name in (*a, *b) if name not in equal and not name.endswith(_IN_FILES)}
    diverges = _divergence(a, b)
    return Difference(
        taps={
            name: _largest_difference(a[name].values, b[name].values) for name in equal if not name.endswith(_NUMBERS)
        },
        not_compared=tuple(name for name in dict.fromkeys((*a, *b)) if name in others),
        tokens=_token_changes(a, b, diverges),
        diverges=diverges,
        outputs=(a.output, b.output),
    )


def _largest_difference(a: Any, b: Any) -> float:
    """The largest difference; where both are infinite or no number, there is none."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b)).max(initial=0.0))


def _divergence(a: Trace, b: Trace) -> int | None:
    """The first position at which they wrote something else, by the tokens' names, or one of them nothing more."""
    first, second = ([own.reading.outputs(id) for id in own.reading.writes] for own in (a, b))
    if first == second:
        return None
    differ = (place for place, (x, y) in enumerate(zip(first, second, strict=False)) if x != y)
    return next(differ, min(len(first), len(second)))


def _token_changes(a: Trace, b: Trace, diverges: int | None) -> tuple[TokenChange, ...]:
    rows, others = logit_rows(a), logit_rows(b)
    writes = a.reading.writes
    if writes:
        end = len(writes) if diverges is None else diverges + 1
        places = range(a.reading.n_given, min(end, len(writes), len(rows), len(others)))
    else:
        places = range(len(rows) if len(rows) == len(others) else 0)
    found = []
    for place in places:
        token = writes[place] if writes else rows[place].best
        if a.reading.outputs(token) != b.reading.outputs(token):
            continue  # of another vocabulary
        own = a.reading.own
        found.append(
            TokenChange(
                position=place,
                reads=own.labels[place] if place < len(own) and len(rows) == len(own) else "",
                token=a.reading.outputs(token),
                before=_score(rows[place], token, a),
                after=_score(others[place], token, b),
            )
        )
    return tuple(found)


def _score(row: LogitRow, token: int, trace: Trace) -> TokenScore:
    """What a token is given at a position, and the likeliest other."""
    others = np.where(row.ids == token, -np.inf, row.values)
    rival, logit = int(others.argmax()), row.logit(token)
    return TokenScore(
        logit=logit,
        log_prob=None if logit is None else logit - row.log_sum,
        rival=trace.reading.outputs(int(row.ids[rival])) if len(row.ids) > 1 else "",
        rival_logit=float(row.values[rival]),
        rival_log_prob=float(row.values[rival]) - row.log_sum,
    )
