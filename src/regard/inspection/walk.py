"""A walk through the model with numbers: text → ids → embedding and position → residual stream → logits → what is said.

It follows one position. What is shown of a vector are its first numbers and its length (the Euclidean norm).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import UsageError
from regard.inspection.axes import key_positions
from regard.inspection.logit_rows import logit_rows, of_whole_input
from regard.inspection.overview import guesses
from regard.inspection.tap_names import tap_phrase
from regard.inspection.trace import Trace
from regard.tasks.reading import Positions

N_SHOWN = 4  # numbers of a vector
N_LIKELIEST = 5


@dataclass(frozen=True, kw_only=True)
class WalkStep:
    """One station: what happens there, in words, and the numbers."""

    name: str
    about: str
    numbers: str

    def line(self, width: int) -> str:
        return f"{self.name:<{width}}  {self.about:<34}  {self.numbers}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The stations of one position, in the order in which the model computes them."""

    position: int
    reads: str
    steps: tuple[WalkStep, ...]

    def lines(self) -> list[str]:
        width = max(len(step.name) for step in self.steps)
        return [step.line(width) for step in self.steps]

    def to_json(self) -> dict[str, Any]:
        return {"position": self.position, "reads": self.reads, "steps": [vars(step) for step in self.steps]}


def walk(trace: Trace, position: int | None = None) -> Walk:
    """Follow a position through the model: by default where a prompt is gone on from, or the last token is written; of what
    is said of a whole input, the first, from which most models read it."""
    own = trace.reading.own
    if not len(own):
        raise UsageError("This model has no positions that could be followed.", "Look at its taps: --tap NAME.")
    place = _default_place(trace) if position is None else position
    if not 0 <= place < len(own):
        raise UsageError(f"There are the positions 0 to {len(own) - 1}, and no {place}.", "Positions count from 0.")
    ids = f"id {own.ids[place]}" if own.ids else ""
    steps = [
        *_texts(trace),
        WalkStep(name="token", about=f"position {place} reads '{own.labels[place].strip()}'", numbers=ids),
    ]
    steps += [_station(trace, name, place) for name in _stations(trace)]
    return Walk(position=place, reads=own.labels[place], steps=(*steps, *_said(trace, place)))


def _default_place(trace: Trace) -> int:
    reading = trace.reading
    if logit_rows(trace) and of_whole_input(trace):
        return 0
    if reading.causal and reading.memory is None:  # a language model, and its prompt
        return min(reading.n_given, len(reading.own) - 1)
    return (len(reading.writes) or len(reading.own)) - 1


def _texts(trace: Trace) -> list[WalkStep]:
    """Each text that was read, as tokens and their ids."""
    reading = trace.reading
    read = {positions.name: positions for _, positions in reading.places if positions.ids}
    return [
        WalkStep(name=name, about=f"{len(positions)} tokens", numbers=" ".join(_with_ids(positions)))
        for name, positions in read.items()
    ]


def _with_ids(positions: Positions) -> list[str]:
    pairs = zip(positions.labels, positions.ids, strict=True)
    return [f"{label.strip() or '␣'}/{id}" for label, id in pairs]


def _stations(trace: Trace) -> list[str]:
    """The taps that a walk passes: of what the position itself goes through, in order."""
    endings = ("tokens", "patches", "positions", "segments", "sum", "weights", "output", "context", "states")
    return [
        name
        for name in trace.kept
        if name.rpartition(".")[2] in endings
        and trace.reading.at(name) is trace.reading.own
        and len(trace[name].axes) in (2, 3)
        and trace[name].axes[-1] != "column"
    ]


def _station(trace: Trace, name: str, place: int) -> WalkStep:
    array, (module, _, tap) = trace[name], name.rpartition(".")
    if tap == "weights":
        keys = key_positions(name, trace.reading).labels
        rows = array.values[:, place]
        most = [f"{keys[int(row.argmax())].strip()} {row.max():.2f}" for row in rows[:N_SHOWN]]
        more = f", … ({len(rows)} heads)" if len(rows) > N_SHOWN else ""
        return WalkStep(name=module, about="each head attends most to", numbers=", ".join(most) + more)
    if trace.reading.own.grid is not None and tap == "patches":
        place -= len(trace.reading.own) - len(array.values)  # a class token stands in front of the patches
    if not 0 <= place < len(array.values):
        return WalkStep(name=name, about="not at this position", numbers="")
    return WalkStep(name=name, about=tap_phrase(name), numbers=_vector(array.values[place]))


def _vector(values: Any) -> str:
    shown = " ".join(f"{value:+.2f}" for value in values[:N_SHOWN])
    return f"[{shown} …]  length {float(np.linalg.norm(values)):.2f}"


def _said(trace: Trace, place: int) -> list[WalkStep]:
    """The logits, and what becomes of them."""
    rows = logit_rows(trace)
    if not rows:
        return []
    of_all = of_whole_input(trace)
    own = rows[0] if of_all else rows[place]
    steps = [WalkStep(name="logits", about="a number for each output", numbers=_vector(own.values))]
    if len(own.ids) > 1:
        likeliest = ", ".join(f"{one.text.strip()} {one.probability:.3f}" for one in guesses(trace, own, N_LIKELIEST))
        steps.append(WalkStep(name="softmax", about="the likeliest", numbers=likeliest))
    written = trace.reading.written(place)
    if written and not of_all:
        given = " (given)" if place < trace.reading.n_given else ""
        share = own.probability(trace.reading.writes[place])
        chosen = f"'{written.strip()}', probability {'?' if share is None else f'{share:.3f}'}{given}"
        steps.append(WalkStep(name="output", about="what is written there", numbers=chosen))
    return steps
