"""Decoding rules (logits processors): small objects in a list, applied in order before a token is chosen.

A rule takes log-probabilities (R, V) and the step that they belong to, and returns log-probabilities (R, V), -inf where a
token is banned. It may write into those that it takes: who applies rules gives them away.
The longest length is no rule: searches take a limit per sentence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from regard.errors import UsageError


@dataclass(frozen=True, slots=True)
class Step:
    """What a rule may look at, and must not change.

    logits:     (R, V), as the model gave them
    read:       (R, P), the text that each row goes on from, -1 in front of a shorter one; P is 0 where there is none
    written:    (R, T), the tokens of each row, without the prompt
    sentences:  (R,), whose row each is; numbers of the sentences as they came in, so a rule need not know which have left
    """

    logits: Tensor
    read: Tensor
    written: Tensor
    sentences: Tensor

    @property
    def text(self) -> Tensor:
        """(R, P + T), the prompt and what is written behind it."""
        return torch.cat((self.read, self.written), dim=1)


class Rule(Protocol):
    def __call__(self, log_probs: Tensor, step: Step) -> Tensor: ...


def apply_rules(rules: Sequence[Rule], log_probs: Tensor, step: Step) -> Tensor:
    """Apply every rule in order; `log_probs` are given away."""
    for rule in rules:
        log_probs = rule(log_probs, step)
    return log_probs


class ForcedPrefix:
    """Every sentence begins with tokens of its own; an empty prefix leaves it free.

    As the last of the rules it has the last word: a token that others ban is written all the same, where it is forced.
    Its log-probability is the model's.
    """

    def __init__(self, prefixes: Sequence[Sequence[int]]) -> None:
        self.longest = max(map(len, prefixes), default=0)
        # -1 stands where a sentence is free.
        self.table = torch.tensor([[*prefix, *[-1] * (self.longest - len(prefix))] for prefix in prefixes])

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        position = step.written.shape[1]
        if position >= self.longest:
            return log_probs
        forced = self.table.to(log_probs.device)[step.sentences, position]  # (R,)
        rows = (forced >= 0).nonzero().squeeze(1)
        tokens = forced[rows].unsqueeze(1)
        own = torch.log_softmax(step.logits[rows], dim=-1, dtype=torch.float32)
        log_probs.index_fill_(0, rows, -math.inf)
        log_probs[rows.unsqueeze(1), tokens] = own.gather(1, tokens)
        return log_probs


@dataclass(frozen=True)
class MinLength:
    """The end token is banned until `length` other tokens are written."""

    length: int
    end_id: int

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        if step.written.shape[1] < self.length:
            log_probs[:, self.end_id] = -math.inf
        return log_probs


class Banned:
    """These tokens are never written."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = torch.tensor(ids, dtype=torch.long)

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        return log_probs.index_fill_(1, self.ids.to(log_probs.device), -math.inf)


class KnownTokens:
    """Only tokens of the vocabulary are written: a network of the caller's own may have more outputs than those."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        if log_probs.shape[1] > self.vocab_size:
            log_probs[:, self.vocab_size :] = -math.inf
        return log_probs


class BannedSequences:
    """These sequences of tokens are never written: the last token of one is banned where the others stand before it.

    unless_after:  (V,), True for tokens right behind which a sequence is allowed, as "und" is behind "H"
    """

    def __init__(self, sequences: Sequence[Sequence[int]], *, unless_after: Tensor | None = None) -> None:
        if not all(sequences):
            raise UsageError("A banned sequence has at least 1 token, but one is empty.", "Leave it out.")
        self.sequences = sequences
        self.unless_after = unless_after

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        text = step.text
        for *first, last in self.sequences:
            log_probs[self._ends_with(first, text), last] = -math.inf
        return log_probs

    def _ends_with(self, first: Sequence[int], text: Tensor) -> Tensor:
        """Say of each row whether it ends with these tokens, and with none before them that changes their meaning; (R,)."""
        begin = text.shape[1] - len(first)
        if begin < 0:
            return torch.zeros(len(text), dtype=torch.bool, device=text.device)
        found = (text[:, begin:] == torch.tensor(first, dtype=torch.long, device=text.device)).all(dim=1)
        if self.unless_after is not None and begin > 0:
            before = text[:, begin - 1]
            found &= ~(self.unless_after.to(text.device)[before] & (before >= 0))
        return found


@dataclass(frozen=True)
class NoRepeatedNgram:
    """No n tokens in a row occur twice in an output, the prompt counted."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(
                f"An n-gram that must not repeat has at least 1 token, but n is {self.n}.", "Give 1 or more."
            )

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        text = step.text
        if text.shape[1] < self.n:
            return log_probs
        seen = text.unfold(1, self.n, 1)  # (R, P + T - n + 1, n)
        last = text[:, text.shape[1] - self.n + 1 :]  # (R, n - 1)
        again = (seen[:, :, :-1] == last.unsqueeze(1)).all(-1) & (seen >= 0).all(-1)
        rows, places = again.nonzero(as_tuple=True)
        log_probs[rows, seen[rows, places, -1]] = -math.inf
        return log_probs


@dataclass(frozen=True)
class RepetitionPenalty:
    """The logit of a token already read or written is divided by `penalty`, or multiplied where it is negative.

    Keskar et al. 2019, "CTRL", section 4.1, and for negative logits transformers' repair of it: above 1, a token grows
    less likely. What the token loses the others gain, for the result is normalised.

    In every search it is the logits that are scaled. (The beam search of transformers scales log-probabilities. But a
    token that the model is sure of, as that of a loop is, has one near 0, which no factor moves.)
    """

    penalty: float

    def __post_init__(self) -> None:
        if self.penalty <= 0:
            raise UsageError(
                f"A repetition penalty is above 0, but it is {self.penalty}.", "Give 1.0 for none, 1.2 for a mild one."
            )

    def __call__(self, log_probs: Tensor, step: Step) -> Tensor:
        logits = step.logits.float()
        n_tokens = logits.shape[1]
        seen = torch.zeros(len(logits), n_tokens + 1, dtype=torch.bool, device=logits.device)
        # Padding goes to a column of its own.
        seen.scatter_(1, step.text.where(step.text >= 0, n_tokens), True)
        again = torch.where(logits < 0, logits * self.penalty, logits / self.penalty)
        penalised = torch.log_softmax(torch.where(seen[:, :n_tokens], again, logits), dim=-1)
        return penalised.masked_fill_(log_probs == -math.inf, -math.inf)
