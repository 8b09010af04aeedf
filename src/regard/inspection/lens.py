"""The logit lens: what the model's last norm and output layer make of the residual stream after each sublayer.

nostalgebraist 2020, "interpreting GPT: the logit lens". What a layer "would write" is what it holds in the terms of the
output, as if all sublayers behind it were skipped. The last row is the model's output.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import UsageError
from regard.evaluation.table import Table, text_width
from regard.inspection.residual_stream import one_line, recorded_logits, stream_taps, sublayer_name, tensor_of
from regard.inspection.trace import Trace
from regard.runs.disk import without_non_finite
from regard.tasks.offers import can_read_out

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_LONGEST = 12  # columns of a terminal that a token takes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Lens:
    """The likeliest tokens of each state of the residual stream (L) at each position (T).

    taps:           of the states
    reads, writes:  what stands at each position, and what is followed there: the written token, or else the likeliest
    ids, probabilities:  (L, T, top) the likeliest outputs
    tokens:         what these ids stand for
    ranks:          (L, T) of what is followed, 1 for the likeliest, and
    followed:       (L, T) its probability
    """

    taps: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    ids: Integers
    probabilities: Floats
    tokens: dict[int, str]
    ranks: Integers
    followed: Floats

    @property
    def sublayers(self) -> tuple[str, ...]:
        """The names of the rows: the sublayer behind which each state stands."""
        return tuple(map(sublayer_name, self.taps))

    def lines(self, width: int = 100, shown: int = 1) -> list[str]:
        """The likeliest at each layer for each position, with their probabilities; in blocks of positions that fit the
        width. `shown`: how many; where there is one position, all.
        """
        columns = [self._column(position, shown) for position in range(len(self.reads))]
        return in_blocks(("", "reads", *self.sublayers, "output"), columns, width)

    def _column(self, position: int, shown: int) -> tuple[str, ...]:
        """The cells of one position, the heading first."""
        shown = self.ids.shape[2] if len(self.reads) == 1 else shown
        cells = self.cells(position, shown)
        return str(position), _cut(self.reads[position]), *cells, _cut(self.writes[position])

    def cells(self, position: int, shown: int = 1) -> list[str]:
        """The likeliest of each state at a position, with their probabilities, each state in a few words."""
        return [
            ", ".join(
                f"{_cut(self.tokens[int(id)])} {share:.2f}"
                for id, share in zip(ids[position, :shown], shares[position, :shown], strict=True)
            )
            for ids, shares in zip(self.ids, self.probabilities, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """All numbers, as data that `json.dumps` takes."""
        places = range(len(self.reads))
        facts = {
            "positions": [{"reads": self.reads[place], "writes": self.writes[place]} for place in places],
            "states": [
                {
                    "sublayer": sublayer_name(tap),
                    "tap": tap,
                    "positions": [
                        {
                            "likeliest": self._likeliest(state, place),
                            "rank": int(self.ranks[state, place]),
                            "probability": float(self.followed[state, place]),
                        }
                        for place in places
                    ],
                }
                for state, tap in enumerate(self.taps)
            ],
        }
        found: dict[str, Any] = without_non_finite(facts)
        return found

    def _likeliest(self, state: int, place: int) -> list[dict[str, Any]]:
        found = zip(self.ids[state, place].tolist(), self.probabilities[state, place].tolist(), strict=True)
        return [{"token": self.tokens[id], "id": id, "probability": share} for id, share in found]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def read_lens(trace: Trace, top: int = 5) -> Lens:
    """Read every state of the residual stream as if it were the last; `top` likeliest of each."""
    if top < 1:
        raise UsageError(f"The lens shows 1 or more of the likeliest, not {top}.", "Ask for some: --top 3, or top=3.")
    taps = stream_taps(trace)
    trace.live("The logit lens needs the output layer, and")
    says = recorded_logits(trace)
    if says.shape[-1] < 2:
        raise UsageError("This model says one number, and the lens shows the likeliest of several.")
    likeliest = np.atleast_2d(says).argmax(-1)
    writes = trace.reading.writes if says.ndim == 2 else ()
    follows = torch.from_numpy(likeliest)
    follows[: len(writes)] = torch.tensor(writes[: len(follows)], dtype=torch.long)
    found = [_read(logits, follows, top) for logits in stream_logits(trace)]
    ids, probabilities, ranks, followed = (torch.stack(own).cpu().numpy() for own in zip(*found, strict=True))
    whole = ("image" if trace.reading.image is not None else "sequence",)
    return Lens(
        taps=tuple(taps),
        reads=trace.reading.own.labels if says.ndim == 2 else whole,
        writes=tuple(map(trace.reading.outputs, follows.tolist())),
        ids=ids,
        probabilities=probabilities,
        tokens={int(id): trace.reading.outputs(int(id)) for id in np.unique(ids)},
        ranks=ranks,
        followed=followed,
    )


@torch.inference_mode()
def stream_logits(trace: Trace) -> Iterator[Tensor]:
    """The logits (T, V) of each state of the residual stream; (1, N) where one thing is said of the whole input."""
    taps = stream_taps(trace)
    model = trace.live("The logit lens needs the output layer, and").model
    like = next(model.parameters())
    if not can_read_out(model):
        raise UsageError(
            "This model does not say how its residual stream becomes logits.", "Give it a method read_out(x)."
        )
    trace.record("*_residual.output")
    for tap in taps:
        logits = model.read_out(tensor_of(trace, tap, like)).float()
        yield logits[0] if logits.dim() == 3 else logits


def _read(logits: Tensor, follows: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest outputs of one state with their probabilities, and rank and probability of what is followed."""
    shares = logits.softmax(-1)
    probabilities, ids = shares.topk(min(top, logits.shape[-1]), dim=-1)
    own = logits.gather(1, follows.to(logits.device)[:, None])
    ranks = (logits > own).sum(1) + 1
    return ids, probabilities, ranks, shares.gather(1, follows.to(logits.device)[:, None])[:, 0]


def _cut(token: str) -> str:
    """A token as one short line."""
    text = one_line(token)
    while text_width(text) > _LONGEST:
        text = text.removesuffix("…")[:-1] + "…"
    return text


def in_blocks(names: tuple[str, ...], columns: list[tuple[str, ...]], width: int) -> list[str]:
    """Columns of cells, the heading first, as tables below each other that fit the width, each with the rows' names."""
    lines: list[str] = []
    while columns:
        fitting = _n_fitting(names, columns, width)
        block, columns = columns[:fitting], columns[fitting:]
        heading, *rows = zip(names, *block, strict=True)
        table = Table(headings=heading, rows=tuple(rows), left=tuple(range(len(heading))))
        lines += [*([""] if lines else []), *table.lines()]
    return lines


def _n_fitting(names: tuple[str, ...], columns: list[tuple[str, ...]], width: int) -> int:
    """How many of the columns, at least one, stand beside the names."""
    left = width - max(map(text_width, names))
    for count, column in enumerate(columns):
        left -= 2 + max(map(text_width, column))
        if left < 0:
            return max(1, count)
    return len(columns)
