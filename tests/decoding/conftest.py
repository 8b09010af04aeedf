"""Tiny models for the searches: what a row reads next depends on its sentence and on all that it has read."""

from dataclasses import dataclass
from functools import cache

import numpy
import pytest
import torch
from torch import Tensor

START, END = 0, 1


@dataclass(frozen=True)
class PrefixState:
    """Remembers every row's tokens (R, T) and every sentence's seed (N,), and checks what it is asked to do."""

    prefixes: Tensor
    seeds: Tensor

    @property
    def width(self) -> int:
        return len(self.prefixes) // len(self.seeds)

    def reorder(self, parents: Tensor) -> "PrefixState":
        width = len(parents) // len(self.seeds)
        assert torch.equal(parents // self.width, torch.arange(len(self.seeds)).repeat_interleave(width))
        return PrefixState(self.prefixes[parents], self.seeds)

    def keep(self, sentences: Tensor) -> "PrefixState":
        assert 0 < len(sentences) < len(self.seeds)
        prefixes = self.prefixes.unflatten(0, (len(self.seeds), self.width))
        return PrefixState(prefixes[sentences].flatten(0, 1), self.seeds[sentences])

    def join(self, other: "PrefixState") -> "PrefixState":
        return PrefixState(torch.cat((self.prefixes, other.prefixes)), torch.cat((self.seeds, other.seeds)))


class PrefixModel:
    """A decoder whose logits are random numbers drawn from (salt, sentence's seed, prefix)."""

    def __init__(self, vocab_size: int = 7, *, end_bias: float = 0.5, spread: float = 1.5, salt: int = 0) -> None:
        self.vocab_size = vocab_size
        self.end_bias = end_bias
        self.spread = spread
        self.salt = salt
        self.rows_read: list[int] = []
        self.logits = cache(self._logits)

    def _logits(self, seed: int, prefix: tuple[int, ...]) -> Tensor:
        values = numpy.random.default_rng((self.salt, seed, *prefix)).normal(size=self.vocab_size) * self.spread
        values[END] += self.end_bias
        return torch.tensor(values, dtype=torch.float32)

    def log_probs(self, seed: int, prefix: tuple[int, ...]) -> list[float]:
        return self.logits(seed, (START, *prefix)).log_softmax(-1).tolist()

    def start(self, seeds: list[int]) -> PrefixState:
        return PrefixState(torch.zeros(len(seeds), 0, dtype=torch.long), torch.tensor(seeds))

    def step(self, state: PrefixState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, PrefixState]:
        assert len(ids) == len(state.prefixes)
        self.rows_read.append(len(ids))
        state = PrefixState(torch.cat((state.prefixes, ids), dim=1), state.seeds)
        seeds = state.seeds.repeat_interleave(state.width).tolist()
        prefixes = map(tuple, state.prefixes.tolist())
        return torch.stack([self.logits(seed, prefix) for seed, prefix in zip(seeds, prefixes, strict=True)]), state


class Constant(PrefixModel):
    """A decoder with the same logits everywhere."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__(len(logits))
        self.logits = lambda seed, prefix: torch.tensor(logits)


# The scope is that of the session, since hypothesis refuses fixtures that are made anew for each test.
@pytest.fixture(scope="session")
def prefix_model() -> type[PrefixModel]:
    return PrefixModel


@pytest.fixture(scope="session")
def constant() -> type[Constant]:
    return Constant
