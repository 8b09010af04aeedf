"""What a model did with one input, on one screen: what it wrote and how surely, and where it attended meanwhile."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.evaluation.table import Table
from regard.inspection.maps import find_attention, kinds
from regard.inspection.trace import Trace
from regard.inspection.trace_file import LOG_SUM, TOP_IDS, TOP_VALUES
from regard.tasks.offers import alignment_tap

LOGITS = "logits"
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


def probabilities(trace: Trace) -> npt.NDArray[np.floating]:
    """The softmax of the logits: (positions, outputs), or (outputs,).

    Of a trace from a file that kept the largest logits only, zeros in the places of all others.
    """
    if trace.subject is None and LOGITS in trace.left_out and LOGITS + TOP_IDS in trace:
        ids, values, log_sums = (trace[LOGITS + part].values for part in (TOP_IDS, TOP_VALUES, LOG_SUM))
        found: npt.NDArray[np.floating] = np.zeros(trace.left_out[LOGITS], np.float32)
        np.put_along_axis(found, ids.astype(np.int64), np.exp(values - log_sums[..., None]), axis=-1)
        return found
    logits = trace["logits"].values.astype(np.float64)
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    shares: npt.NDArray[np.floating] = exponentials / exponentials.sum(-1, keepdims=True)
    return shares


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
    says = probabilities(trace) if "logits" in trace else None
    by_position = says is not None and says.ndim == 2 and len(says) == len(reading.own)
    weights = trace[f"{path}.weights"] if path else None
    attends = weights is not None and weights.shape[1] == len(reading.own)
    found = []
    for position, label in enumerate(reading.own.labels):
        own = says[position] if by_position and says is not None else None
        written = reading.writes[position] if position < len(reading.writes) else None
        attended: tuple[tuple[str, float], ...] = ()
        if attends and weights is not None:
            mean = weights.values[:, position].mean(0)
            names = weights.labels[weights.axes[2]]
            attended = tuple((names[place].strip(), float(mean[place])) for place in np.argsort(-mean)[:N_ATTENDED])
        found.append(
            Step(
                position=position,
                reads=label,
                writes="" if written is None else reading.outputs(written),
                probability=None if own is None or written is None else float(own[written]),
                rivals=() if own is None else tuple(guesses(trace, own, N_RIVALS, but=written)),
                attended=attended,
                is_given=position < reading.n_given,
            )
        )
    return found


def guesses(trace: Trace, shares: npt.NDArray[np.floating], n: int, *, but: int | None = None) -> list[Guess]:
    """The likeliest outputs but one."""
    order = [int(number) for number in np.argsort(-shares)[: n + 1] if number != but][:n]
    return [Guess(text=trace.reading.outputs(number), probability=float(shares[number])) for number in order]


def step_table(trace: Trace) -> Table:
    """All positions as a table."""
    found, decodes = steps(trace), bool(trace.reading.writes)
    rows = []
    for step in found:
        cells = [str(step.position), step.reads.strip() or "␣"]
        if decodes:
            probability = "given" if step.is_given else "" if step.probability is None else f"{step.probability:.3f}"
            cells += [step.writes.strip() or ("␣" if step.writes else ""), probability]
        cells += [_list((one.text.strip() or "␣", one.probability) for one in step.rivals), _list(step.attended)]
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
    return ", ".join(f"{text} {share:.2f}" for text, share in pairs)


def class_guesses(trace: Trace) -> list[Guess]:
    """Where one thing is said of the whole input: the likeliest classes."""
    if "logits" not in trace:
        return []
    shares = probabilities(trace)
    return guesses(trace, shares, N_CLASSES) if shares.ndim == 1 and len(shares) > 1 else []


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
    return {
        "input": trace.title,
        "output": trace.output,
        "attention": overview_attention(trace),
        "steps": found,
        "classes": [vars(one) for one in class_guesses(trace)],
        "taps": {name: {"axes": list(trace[name].axes), "shape": list(trace[name].shape)} for name in trace.kept},
    }
