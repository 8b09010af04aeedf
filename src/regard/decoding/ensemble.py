"""Ensemble decoding: several models over one vocabulary that decode as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from regard.decoding.protocol import Decoder, State
from regard.errors import UsageError


@dataclass(frozen=True)
class EnsembleState:
    """One state per model."""

    states: tuple[State, ...]

    @property
    def bytes_per_token(self) -> int:
        """How much larger each token that a row reads makes the states."""
        return sum(getattr(state, "bytes_per_token", 0) for state in self.states)

    def reorder(self, parents: Tensor) -> Self:
        return type(self)(tuple(state.reorder(parents) for state in self.states))

    def keep(self, sentences: Tensor) -> Self:
        return type(self)(tuple(state.keep(sentences) for state in self.states))

    def join(self, other: Self) -> Self:
        return type(self)(tuple(mine.join(theirs) for mine, theirs in zip(self.states, other.states, strict=True)))


class Ensemble:
    """A decoder whose probabilities are the arithmetic mean of its members' (not the geometric one, of the logits).

    A member that is sure of a token can so outvote an unsure one, and none can forbid what another wants.
    """

    def __init__(self, members: Sequence[Decoder[Any]]) -> None:
        if not members:
            raise UsageError("An ensemble needs at least one model, but none was given.", "Name one or more runs.")
        self.members = tuple(members)

    def start(self, inputs: Sequence[Any]) -> EnsembleState:
        """Start every member on inputs of its own: the members' tokenizers for the source may differ."""
        return EnsembleState(tuple(member.start(own) for member, own in zip(self.members, inputs, strict=True)))

    def step(self, state: EnsembleState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, EnsembleState]:
        """Return the logits (R, V) of the mean probabilities, and the new state.

        Logits are free up to a constant. Theirs is such that they lie where the members' do, since a rule that scales
        logits (RepetitionPenalty) asks for their sign.
        """
        logits, states = zip(
            *(member.step(own, ids, counts) for member, own in zip(self.members, state.states, strict=True)),
            strict=True,
        )
        sizes = sorted({one.shape[-1] for one in logits})
        if len(sizes) > 1:
            raise UsageError(
                f"The models of an ensemble must share one target vocabulary, but theirs have {sizes} tokens.",
                "Use runs that were trained with the same vocabulary.",
            )
        heights = torch.stack([one.float().logsumexp(dim=-1, keepdim=True) for one in logits])  # (members, R, 1)
        log_probs = torch.stack(logits) - heights  # (members, R, V)
        mean = log_probs.logsumexp(dim=0) - math.log(len(logits))
        return mean + heights.mean(dim=0), EnsembleState(tuple(states))
