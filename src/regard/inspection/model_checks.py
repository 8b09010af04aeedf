"""Checks of a trace against its model: the fused kernel, cached decoding, the beam search; each runs the model once more."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

import numpy as np
import torch

from regard.config import DecodingConfig
from regard.decoding.penalties import LengthPower
from regard.decoding.result import DeadEndError, Hypothesis
from regard.inspection.attention_replay import Numbers, recorded
from regard.inspection.cell import difference
from regard.inspection.checks import Check
from regard.inspection.interventions import Patch, intervening
from regard.inspection.rounding import Doubled
from regard.inspection.trace import Subject, Trace, record_pass
from regard.tasks.options import GenerationOptions
from regard.tasks.reading import END, Reading

FUSED, CACHED = "fused kernels give the same as the formula", "cached decoding gives the same logits"
LEAF, SUM = "the beam's best leaf is the output", "log-probabilities add up to the score"
MOST_PIECES = 32  # of cached decoding
TOLERANCE = 1e-4  # of logits, which every layer's rounding reaches
Found = TypeVar("Found")

SHORT = ("*.heads", "*.context", "*logits")  # nobody listens to scores and weights, nor inside a cell


def check_model(trace: Trace) -> Iterator[Check]:
    """What can be checked with the model at hand."""
    subject = trace.subject
    if subject is None:
        yield from (Check(name=name, note="needs the model") for name in (FUSED, CACHED, LEAF, SUM))
        return
    doubled = Doubled(trace, subject)
    yield _fused(trace, subject, doubled)
    decoding = _cannot_decode(trace, subject)
    cached = Check(name=CACHED, note=decoding) if decoding else _cached(trace, subject, doubled)
    yield cached
    searching = decoding or _cannot_search(subject)
    if searching:
        yield from (Check(name=name, note=searching) for name in (LEAF, SUM))
        return
    # The search saw logits of cached decoding: as far as those are from the recorded ones, so far may their sums be.
    rounding = (cached.error or 0.0) if cached.passed else 0.0
    try:
        yield from list(_searched(trace, subject, rounding))
    except DeadEndError as error:  # logits that are not numbers
        yield from (Check(name=name, passed=False, note=error.problem) for name in (LEAF, SUM))


def _fused(trace: Trace, subject: Subject, doubled: Doubled) -> Check:
    """One pass to whose scores and weights nobody listens, against what was recorded."""
    error, where, pair = _fused_error(trace, subject)
    row = Check.of(FUSED, error, tolerance=TOLERANCE, note=f"largest in {where}" if where else "")
    if row.passed or not np.isfinite(error):
        return row
    return _settled(row, doubled.explains(where, *pair, lambda own: _fused_error(own, own.live(""))[0]))


def _fused_error(trace: Trace, subject: Subject) -> tuple[float, str, tuple[Numbers, Numbers]]:
    """The largest error, in which tap it is, and what that was in both passes."""
    found, _ = record_pass(subject, trace.reading, SHORT, most_bytes=None)
    before = recorded(trace, found)
    error, where = 0.0, ""
    for name, array in found.items():
        own = difference(_numbers(array.values), _numbers(before[name].values))
        if not own <= error:
            error, where = own, name
    none = np.zeros(0)
    return error, where, (_numbers(found[where].values), _numbers(before[where].values)) if where else (none, none)


def _settled(row: Check, why: str) -> Check:
    """A check that failed, but by nothing else than rounding, if there is a reason to say so."""
    return replace(row, passed=True, note=why) if why else row


def _cannot_decode(trace: Trace, subject: Subject) -> str:
    if trace.reading.cached is None:
        return "nothing is decoded"
    if any(isinstance(one, Patch) for one in subject.interventions):
        return "a patch fits a pass over whole sequences only"
    return ""


def _cached(trace: Trace, subject: Subject, doubled: Doubled) -> Check:
    error, ends, logits = _cached_error(trace, subject)
    expected = _logits(trace)
    note = "" if len(ends) == len(expected) else f"at {len(ends)} of {len(expected)} positions, the others in pieces"
    row = Check.of(CACHED, error, tolerance=TOLERANCE, note=note)
    if row.passed or not np.isfinite(error):
        return row
    other = expected.copy()
    other[ends] = logits
    return _settled(row, doubled.explains("logits", expected, other, lambda own: _cached_error(own, own.live(""))[0]))


def _cached_error(trace: Trace, subject: Subject) -> tuple[float, list[int], Numbers]:
    """The largest error, and the logits of cached decoding at those positions at which it was compared."""
    cached = trace.reading.cached
    assert cached is not None
    expected = _logits(trace)
    ends = piece_ends(len(expected))
    logits = _numbers(_in_place(subject, lambda: cached(ends)).float().cpu().numpy())
    return difference(logits, expected[ends]), ends, logits


def piece_ends(n_positions: int) -> list[int]:
    """Where the pieces end that cached decoding reads one after the other: every position; of many, equal distances apart,
    and then each of the last ones, as a long prompt is read and a text written."""
    if n_positions <= MOST_PIECES:
        return list(range(n_positions))
    n_alone = MOST_PIECES // 2
    first, n_pieces = n_positions - n_alone, MOST_PIECES - n_alone
    return [(piece + 1) * first // n_pieces - 1 for piece in range(n_pieces)] + list(range(first, n_positions))


def _cannot_search(subject: Subject) -> str:
    return "sampling has no tree" if _decoding(subject).sample else ""


def _searched(trace: Trace, subject: Subject, rounding: float) -> Iterator[Check]:
    """The search once more, watched. Under interventions, what it finds is held against what is written under them."""
    reading, note = trace.reading, ""
    if subject.interventions:
        reading = subject.reading(subject.predict())
        note = "of what is written under the interventions"
    watch = reading.watch
    if watch is None:
        yield from (Check(name=name, note="nothing is searched for") for name in (LEAF, SUM))
        return
    best = _in_place(subject, lambda: watch([])).found[0].best
    written = reading.writes[reading.n_given :]
    ended = bool(written) and reading.outputs(written[-1]) == END
    tokens = written[:-1] if ended else written
    found = best.ids[-len(tokens) :] if tokens else ()  # of a long text, the beginning may be out of the context
    wrong = sum(a != b for a, b in zip_longest(found, tokens)) + (best.finished != ended)
    yield Check.of(LEAF, float(wrong), tolerance=0.0, note=note or ("" if not wrong else f"{wrong} tokens differ"))
    yield _sum_of(trace, subject, best, reading, note, rounding)


def _sum_of(trace: Trace, subject: Subject, best: Hypothesis, reading: Reading, note: str, rounding: float) -> Check:
    """The score of the best leaf from its log-probabilities; where the logits are those of the search, from the logits."""
    penalty = LengthPower(_decoding(subject).length_penalty)
    sums = [sum(best.log_probs)]
    whole = len(best.log_probs) == len(reading.writes) - reading.n_given
    own = not subject.interventions and not getattr(subject.options, "ensemble", ())
    if own and whole and _decoding(subject).repetition_penalty == 1:
        sums.append(_log_prob(_logits(trace), reading))
    n_tokens, unit = len(best.log_probs), max(1.0, abs(best.score))
    error = max(abs(penalty.score(one, length=n_tokens) - best.score) for one in sums) / unit
    tolerance = TOLERANCE
    if rounding > TOLERANCE:  # by two logits a log-probability moves; and the search, many in a batch, rounds once more
        most = 4 * rounding * max(1.0, float(np.abs(_logits(trace)).max())) * n_tokens
        tolerance = max(TOLERANCE, abs(penalty.score(most, length=n_tokens)) / unit)
    return Check.of(SUM, error, tolerance=tolerance, note=note)


def _log_prob(logits: Numbers, reading: Reading) -> float:
    """The sum of the log-probabilities of what was written, by the recorded logits (T, V)."""
    places = np.arange(reading.n_given, len(reading.writes))
    rows = logits[places]
    largest = rows.max(-1)
    log_sums = largest + np.log(np.exp(rows - largest[:, None]).sum(-1))
    return float((rows[np.arange(len(places)), list(reading.writes[reading.n_given :])] - log_sums).sum())


def _decoding(subject: Subject) -> DecodingConfig:
    """How output is searched for."""
    options = subject.options
    chosen = options.decoding if isinstance(options, GenerationOptions) else None
    return chosen or subject.task.config.decoding


def _logits(trace: Trace) -> Numbers:
    return _numbers(recorded(trace, ["logits"])["logits"].values)


def _numbers(values: object) -> Numbers:
    return np.asarray(values, dtype=np.float64)


def _in_place(subject: Subject, run: Callable[[], Found]) -> Found:
    """Run the model under the interventions."""
    with torch.inference_mode(), intervening(subject.model, subject.interventions):
        return run()
