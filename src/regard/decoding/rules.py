"""Rules on what may be written next: small objects in a list, applied in order before a token is chosen.

A rule takes log-probabilities (R, V), the tokens each row has written (R, T; no start token) and the sentence that each
row belongs to (R,; numbers of the sentences as they came in, so a rule need not know which have left). It returns
log-probabilities (R, V), -inf where a token is banned, and never changes its input.
The longest length is no rule: searches take a limit a sentence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from regard.errors import UsageError


class Rule(Protocol):
    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor: ...


def apply_rules(rules: Sequence[Rule], log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
    """Apply every rule in order."""
    for rule in rules:
        log_probs = rule(log_probs, written, sentences)
    return log_probs


class ForcedPrefix:
    """Every sentence begins with tokens of its own; an empty prefix leaves it free."""

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self.longest = max(map(len, prefixes), default=0)
        # -1 stands where a sentence is free.
        self.table = torch.tensor([[*prefix, *[-1] * (self.longest - len(prefix))] for prefix in prefixes])

    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        position = written.shape[1]
        if position >= self.longest:
            return log_probs
        forced = self.table.to(log_probs.device)[sentences, position].unsqueeze(1)  # (R, 1)
        tokens = torch.arange(log_probs.shape[1], device=log_probs.device)
        return log_probs.masked_fill((forced >= 0) & (tokens != forced), -math.inf)


@dataclass(frozen=True)
class MinLength:
    """The end token is banned until `length` other tokens are written."""

    length: int
    end_id: int

    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        if written.shape[1] >= self.length:
            return log_probs
        return log_probs.index_fill(1, torch.tensor([self.end_id], device=log_probs.device), -math.inf)


@dataclass(frozen=True)
class Banned:
    """These tokens are never written."""

    ids: tuple[int, ...]

    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        return log_probs.index_fill(1, torch.tensor(self.ids, dtype=torch.long, device=log_probs.device), -math.inf)


@dataclass(frozen=True)
class NoRepeatedNgram:
    """No n tokens in a row occur twice in an output."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(
                f"An n-gram that must not repeat has at least 1 token, but n is {self.n}.", "Give 1 or more."
            )

    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        if written.shape[1] < self.n:
            return log_probs
        seen = written.unfold(1, self.n, 1)  # (R, T - n + 1, n)
        last = written[:, written.shape[1] - self.n + 1 :]  # (R, n - 1)
        rows, places = (seen[:, :, :-1] == last.unsqueeze(1)).all(-1).nonzero(as_tuple=True)
        log_probs = log_probs.clone()
        log_probs[rows, seen[rows, places, -1]] = -math.inf
        return log_probs


@dataclass(frozen=True)
class RepetitionPenalty:
    """The log-probability of a token already written is multiplied by `penalty`: above 1 it grows less likely.

    Keskar et al. 2019, "CTRL", section 4.1; on log-probabilities, as the beam search of transformers applies it.
    """

    penalty: float

    def __post_init__(self) -> None:
        if self.penalty <= 0:
            raise UsageError(
                f"A repetition penalty is above 0, but it is {self.penalty}.", "Give 1.0 for none, 1.2 for a mild one."
            )

    def __call__(self, log_probs: Tensor, written: Tensor, sentences: Tensor) -> Tensor:
        return log_probs.scatter(1, written, log_probs.gather(1, written) * self.penalty)
