"""What decoding returns: hypotheses, best first, each with its log-probabilities and score."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from regard.errors import UsageError

Result = TypeVar("Result")
Attention = np.ndarray[Any, Any]  # (T, S)


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One output.

    ids:        the tokens written, without the start token and without the end token
    log_probs:  one per token written, the end token's among them. They are the model's own, except under a rule that
                changes the probability of tokens that stay allowed (RepetitionPenalty): then they are those after it.
    score:      their sum over the length penalty of their number
    finished:   whether it ends with the end token; else the limit cut it off
    attention:  weights (T, S) of each token written, the end token's among them, over the source, for alignments; where an
                engine was asked for them
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    score: float
    finished: bool
    attention: Attention | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Decoded:
    """The hypotheses of one sentence, best first; at least one."""

    hypotheses: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        return self.hypotheses[0]


def hypothesis(
    tokens: Sequence[int],
    log_probs: Sequence[float],
    *,
    score: float,
    end_id: int,
    attention: Attention | None = None,
) -> Hypothesis:
    """Make a hypothesis from all its tokens, the end token among them."""
    finished = tokens[-1] == end_id
    ids = tuple(tokens[:-1]) if finished else tuple(tokens)
    return Hypothesis(ids=ids, log_probs=tuple(log_probs), score=score, finished=finished, attention=attention)


class DeadEndError(UsageError):
    """A sentence has no token to write. Searches know it by its number in the batch; their caller may name it better."""

    def __init__(self, *, sentence: int, position: int, name: str = "") -> None:
        super().__init__(
            f"{name or f'Sentence {sentence}'} has no token to write at position {position}: "
            "the rules ban every one, or the model's logits are not numbers.",
            "Relax the rules (banned tokens, minimum length, repeated n-grams), or check the model.",
        )
        self.sentence = sentence
        self.position = position


def check_possible(log_prob: float, *, sentence: int, position: int) -> None:
    """The best choice that a sentence has must be possible; a NaN is not."""
    if not log_prob > -math.inf:
        raise DeadEndError(sentence=sentence, position=position)


def run_to_end(steps: Generator[object, None, Result]) -> Result:
    """Let a search that can be watched go to its end, and return its results."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(Result, end.value)
