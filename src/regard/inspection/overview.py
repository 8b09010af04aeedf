"""What a model did with one input, on one screen: what it wrote and how surely, and where it attended meanwhile."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.evaluation.table import Table
from regard.inspection.logit_rows import LogitRow, logit_rows, of_whole_input
from regard.inspection.maps import find_attention, kinds
from regard.inspection.trace import Trace
from regard.runs.disk import without_non_finite
from regard.tasks.offers import alignment_tap

N_RIVALS = 2  # of a position, beside what was written
N_ATTENDED = 3
N_CLASSES = 5


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A token, class or number that a model could say, and its probability."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """One position: what is read and written there, its probability and those of its rivals, where it attended most.

    is_given: whether what is written was given, as a prompt is
    """

    position: int
    reads: str
    writes: str
    probability: float | None
    rivals: tuple[Guess, ...]
    attended: tuple[tuple[str, float], ...]
    is_given: bool = False


def overview_attention(trace: Trace) -> str:
    """The attention that tells most of what was written: the one that aligns words, else the last layer's."""
    found = kinds(trace)
    if not found:
        return ""
    chosen = alignment_tap(trace.subject.model) if trace.subject is not None else None
    path = (chosen or "").removesuffix(".weights")
    return path if path in trace.attentions() else find_attention(trace)


def steps(trace: Trace) -> list[Step]:
    """Every position of the trace."""
    reading, path = trace.reading, overview_attention(trace)
    rows = logit_rows(trace)
    by_position = bool(rows) and not of_whole_input(trace) and len(rows) == len(reading.own)
    weights = trace[f"{path}.weights"] if path else None
    attends = weights is not None and weights.shape[1] == len(reading.own)
    found = []
    for position, label in enumerate(reading.own.labels):
        own = rows[position] if by_position else None
        written = reading.writes[position] if position < len(reading.writes) else None
        attended: tuple[tuple[str, float], ...] = ()
        if attends and weights is not None:
            mean = weights.values[:, position].mean(0)
            names = weights.labels[weights.axes[2]]
            attended = tuple((names[place], float(mean[place])) for place in np.argsort(-mean)[:N_ATTENDED])
        found.append(
            Step(
                position=position,
                reads=label,
                writes="" if written is None else reading.outputs(written),
                probability=None if own is None or written is None else own.probability(written),
                rivals=() if own is None else tuple(guesses(trace, own, N_RIVALS, but=written)),
                attended=attended,
                is_given=position < reading.n_given,
            )
        )
    return found


def guesses(trace: Trace, row: LogitRow, n: int, *, but: int | None = None) -> list[Guess]:
    """The likeliest outputs but one."""
    return [Guess(text=trace.reading.outputs(number), probability=share) for number, share in row.likeliest(n, but=but)]


def step_table(trace: Trace) -> Table:
    """All positions as a table."""
    found, decodes = steps(trace), bool(trace.reading.writes)
    rows = []
    for step in found:
        cells = [str(step.position), step.reads.strip() or "␣"]
        if decodes:
            probability = "given" if step.is_given else "" if step.probability is None else f"{step.probability:.3f}"
            cells += [step.writes.strip() or ("␣" if step.writes else ""), probability]
        cells += [_list((one.text, one.probability) for one in step.rivals), _list(step.attended)]
        rows.append(tuple(cells))
    written = ("writes", "probability") if decodes else ()
    headings = ("", "reads", *written, "or rather" if decodes else "likeliest", "attends to")
    used = [column for column in range(len(headings)) if column < 2 or any(row[column] for row in rows)]
    left = tuple(place for place, column in enumerate(used) if headings[column] not in ("", "probability"))
    return Table(
        headings=tuple(headings[column] for column in used),
        rows=tuple(tuple(row[column] for column in used) for row in rows),
        left=left,
    )


def _list(pairs: Any) -> str:
    return ", ".join(f"{text.strip() or '␣'} {share:.2f}" for text, share in pairs)


def class_guesses(trace: Trace) -> list[Guess]:
    """Where one thing is said of the whole input: the likeliest classes."""
    rows = logit_rows(trace)
    if not rows or not of_whole_input(trace) or len(rows[0].ids) < 2:
        return []
    return guesses(trace, rows[0], N_CLASSES)


def to_json(trace: Trace) -> dict[str, Any]:
    """The screen as data."""
    found = [
        {
            "position": step.position,
            "reads": step.reads,
            "writes": step.writes,
            "probability": step.probability,
            "given": step.is_given,
            "rivals": [vars(one) for one in step.rivals],
            "attends_to": [{"token": text, "weight": weight} for text, weight in step.attended],
        }
        for step in steps(trace)
    ]
    facts: dict[str, Any] = {
        "input": trace.title,
        "output": trace.output,
        "attention": overview_attention(trace),
        "steps": found,
        "classes": [vars(one) for one in class_guesses(trace)],
        "taps": {name: {"axes": list(trace[name].axes), "shape": list(trace[name].shape)} for name in trace.kept},
    }
    shown: dict[str, Any] = without_non_finite(facts)
    return shown
