"""Labels of attention heads: what each attends to (previous token, itself, separators, …), with the numbers behind it.

A number is a mean over the positions that have a choice of what to attend to. The label is the kind with the largest
number, if that exceeds THRESHOLD; else the head is "mixed". It holds for this input: another one may say otherwise.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.evaluation.table import Table
from regard.inspection.axes import key_positions
from regard.inspection.trace import Trace
from regard.runs.disk import without_non_finite
from regard.tasks.reading import Positions

THRESHOLD = 0.5  # of a mean weight
MIXED = "mixed"
Weights = npt.NDArray[np.float64]
_SPECIAL = re.compile(r"\(\w+\)|<[^<>]+>|\[[A-Z]+\]")  # as labels of special tokens look


@dataclass(frozen=True, kw_only=True)
class HeadLabel:
    """What a head attends to.

    label:    the kind with the largest number above the threshold, or mixed
    numbers:  by kind, the mean weight: on the previous position, itself, the next, the first, on separators (special tokens
              and punctuation, but for the first position); of attention to a memory: alignment, the mean of the largest
              weight that a word has on a word
    near_diagonal: of attention to a text, the share of the weight that lies within a tenth of the text of the diagonal
    entropy:  mean, in nats
    entropy_share: the same as a share of the most possible: 1 for equal weights
    """

    attention: str
    head: int
    label: str
    numbers: Mapping[str, float]
    entropy: float
    entropy_share: float
    near_diagonal: float | None = None

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        found: dict[str, Any] = without_non_finite({**vars(self), "numbers": dict(self.numbers)})
        return found


def label_heads(trace: Trace) -> list[HeadLabel]:
    """The label of every head of every attention, in the model's order."""
    trace.record("*.weights")
    found = []
    for path in trace.attentions():
        weights = trace[f"{path}.weights"].values.astype(np.float64)  # (H, T, S)
        own, keys = trace.reading.at(path), key_positions(path, trace.reading)
        of_memory = keys is not own
        words = _words_written(trace, weights.shape[1]) if of_memory else []
        for head, rows in enumerate(weights):
            numbers = _to_memory(rows, keys, words) if of_memory else _to_itself(rows, keys)
            entropy, share = entropies(rows)
            largest = max(numbers, key=lambda kind: numbers[kind])
            found.append(
                HeadLabel(
                    attention=path,
                    head=head,
                    label=largest if numbers[largest] > THRESHOLD else MIXED,
                    numbers=numbers,
                    entropy=entropy,
                    entropy_share=share,
                    near_diagonal=_near_diagonal(rows) if of_memory and keys.ids else None,
                )
            )
    return found


def label_table(labels: Sequence[HeadLabel]) -> Table:
    """The labels as a table: a row for each head, its numbers beside it."""
    kinds = list(dict.fromkeys(kind for own in labels for kind in own.numbers))
    rows = (
        (
            own.attention,
            str(own.head),
            own.label,
            *(f"{own.numbers[kind]:.2f}" if kind in own.numbers else "" for kind in kinds),
            f"{own.entropy:.2f}",
            f"{own.entropy_share:.2f}",
        )
        for own in labels
    )
    headings = ("attention", "head", "label", *kinds, "entropy", "of the most")
    return Table(headings=headings, rows=tuple(rows), left=(0, 2))


def _to_itself(rows: Weights, keys: Positions) -> dict[str, float]:
    """The numbers of self-attention (T, T)."""
    places = np.arange(len(rows))
    numbers = {
        "previous": _mean(rows, places - 1),
        "itself": _mean(rows, places),
        "next": _mean(rows, places + 1),
        "first": _mean(rows, np.zeros_like(places)),
    }
    return numbers | _on_separators(rows, keys)


def _to_memory(rows: Weights, keys: Positions, words: Sequence[bool]) -> dict[str, float]:
    """The numbers of attention to a memory (T, S); `words`: at which positions a word is written."""
    separators = separator_mask(keys)
    largest = rows[:, ~separators].max(1, initial=0.0)[np.asarray(words, np.bool_)]
    numbers = {"alignment": float(largest.mean()) if len(largest) else 0.0}
    if keys.ids:
        numbers["first"] = _mean(rows, np.zeros(len(rows), np.int64))
    return numbers | _on_separators(rows, keys)


def _on_separators(rows: Weights, keys: Positions) -> dict[str, float]:
    separators = separator_mask(keys)
    separators[:1] = False  # which has a number of its own
    chosen = rows[_chooses(rows)]
    return {"separators": float(chosen[:, separators].sum(1).mean()) if len(chosen) else 0.0} if keys.ids else {}


def _mean(rows: Weights, keys: npt.NDArray[np.int64]) -> float:
    """The mean weight of each row on its key, over the rows that have that key and a choice."""
    counted = _chooses(rows) & (keys >= 0) & (keys < rows.shape[1])
    return float(rows[counted, keys[counted]].mean()) if counted.any() else 0.0


def _chooses(rows: Weights) -> npt.NDArray[np.bool_]:
    """Which rows have more than one key: the first one of a decoder has none but itself."""
    several: npt.NDArray[np.bool_] = (rows > 0).sum(1) > 1
    return several


def _near_diagonal(rows: Weights) -> float:
    """The share of the weight whose key is as far in its text as the query in its own, give or take a tenth or one place."""
    queries, keys = (np.arange(size) / max(1, size - 1) for size in rows.shape)
    near = np.abs(queries[:, None] - keys) <= max(0.1, 1 / max(1, rows.shape[1] - 1)) + 1e-9
    return float((rows * near).sum() / max(float(rows.sum()), 1e-12))


def entropies(rows: Weights) -> tuple[float, float]:
    """The mean entropy of rows of weights (T, S) in nats, and as a share of the most possible, over rows with a choice."""
    chosen = rows[_chooses(rows)]
    if not len(chosen):
        return 0.0, 0.0
    entropy = -(chosen * np.log(np.where(chosen > 0, chosen, 1.0))).sum(1)
    return float(entropy.mean()), float((entropy / np.log((chosen > 0).sum(1))).mean())


def separator_mask(positions: Positions) -> npt.NDArray[np.bool_]:
    """Which positions are special tokens or punctuation."""
    special = [word is None for word in positions.words] or [bool(_SPECIAL.fullmatch(one)) for one in positions.labels]
    if not positions.ids:
        special = [False] * len(positions)  # patches and vectors
    return np.array([own or is_punctuation(one) for own, one in zip(special, positions.labels, strict=True)], np.bool_)


def is_punctuation(token: str) -> bool:
    """Whether a token is made of punctuation alone."""
    text = token.strip()
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def _words_written(trace: Trace, length: int) -> list[bool]:
    """At which positions a decoder writes a word, neither a special token nor punctuation."""
    written = [trace.reading.written(position) for position in range(length)]
    return [bool(one) and not _SPECIAL.fullmatch(one) and not is_punctuation(one) for one in written]
