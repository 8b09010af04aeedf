"""Checks of a trace against its model: the fused kernel, cached decoding, the beam search; each runs the model once more."""

from collections.abc import Callable, Iterator
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
    yield _fused(trace, subject)
    decoding = _cannot_decode(trace, subject)
    yield Check(name=CACHED, note=decoding) if decoding else _cached(trace, subject)
    searching = decoding or _cannot_search(subject)
    if searching:
        yield from (Check(name=name, note=searching) for name in (LEAF, SUM))
        return
    try:
        yield from list(_searched(trace, subject))
    except DeadEndError as error:  # logits that are not numbers
        yield from (Check(name=name, passed=False, note=error.problem) for name in (LEAF, SUM))


def _fused(trace: Trace, subject: Subject) -> Check:
    """One pass to whose scores and weights nobody listens, against what was recorded."""
    found, _ = record_pass(subject, trace.reading, SHORT, most_bytes=None)
    before = recorded(trace, found)
    error, where = 0.0, ""
    for name, array in found.items():
        own = difference(_numbers(array.values), _numbers(before[name].values))
        if not own <= error:
            error, where = own, name
    return Check.of(FUSED, error, tolerance=TOLERANCE, note=f"largest in {where}" if where else "")


def _cannot_decode(trace: Trace, subject: Subject) -> str:
    if trace.reading.cached is None:
        return "nothing is decoded"
    if any(isinstance(one, Patch) for one in subject.interventions):
        return "a patch fits a pass over whole sequences only"
    return ""


def _cached(trace: Trace, subject: Subject) -> Check:
    cached = trace.reading.cached
    assert cached is not None
    expected = _logits(trace)
    ends = piece_ends(len(expected))
    logits = _in_place(subject, lambda: cached(ends)).float().cpu().numpy()
    note = "" if len(ends) == len(expected) else f"at {len(ends)} of {len(expected)} positions, the others in pieces"
    return Check.of(CACHED, difference(_numbers(logits), expected[ends]), tolerance=TOLERANCE, note=note)


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


def _searched(trace: Trace, subject: Subject) -> Iterator[Check]:
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
    yield _sum_of(trace, subject, best, reading, note)


def _sum_of(trace: Trace, subject: Subject, best: Hypothesis, reading: Reading, note: str) -> Check:
    """The score of the best leaf from its log-probabilities; where the logits are those of the search, from the logits."""
    penalty = LengthPower(_decoding(subject).length_penalty)
    sums = [sum(best.log_probs)]
    whole = len(best.log_probs) == len(reading.writes) - reading.n_given
    own = not subject.interventions and not getattr(subject.options, "ensemble", ())
    if own and whole and _decoding(subject).repetition_penalty == 1:
        sums.append(_log_prob(_logits(trace), reading))
    error = max(abs(penalty.score(one, length=len(best.log_probs)) - best.score) for one in sums)
    return Check.of(SUM, error / max(1.0, abs(best.score)), tolerance=TOLERANCE, note=note)


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
