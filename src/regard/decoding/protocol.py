"""The decoder protocol, what a model offers to be decoded: a state that can be rearranged, and a step.

Rows are R = N sentences × W hypotheses, sentence-major: the rows of sentence n are n·W to n·W + W - 1, and W is R / N.
"""

from typing import Any, Protocol, Self, TypeVar

from torch import Tensor


class State(Protocol):
    """What a model remembers between two steps (keys and values, a recurrent state). Never changed in place by a search."""

    def reorder(self, parents: Tensor) -> Self:
        """Row i of the new state continues row `parents[i]` of this one; `parents` is (R',).

        Parents stay within their sentence, and every sentence gets equally many rows, so that what belongs to the
        sentence (the keys of cross-attention) is untouched. W may grow or shrink at any step: a search starts at W = 1.
        """
        ...

    def keep(self, sentences: Tensor) -> Self:
        """Only these sentences go on, in this order, each with all its rows; `sentences` is (N',)."""
        ...

    def join(self, other: Self) -> Self:
        """The sentences of `other`, of equal W, are appended."""
        ...


StateType = TypeVar("StateType", bound=State)


class Decoder(Protocol[StateType]):
    """A model, as a search sees it."""

    def start(self, inputs: Any) -> StateType:
        """Encode the inputs of N sentences; one row per sentence."""
        ...

    def step(self, state: StateType, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, StateType]:
        """Read `ids` (R, T), of which row i has `counts[i]` real ones (all, without `counts`).

        Returns the logits (R, V) at each row's last real position, and the state after it.
        """
        ...
