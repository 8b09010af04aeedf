"""Dropout that is fast on a CPU and reproducible anywhere.

The mask comes from random bytes compared with a threshold, eight elements a random word, instead of one Bernoulli draw an
element. The drop rate is therefore a multiple of 1/256, and the kept values are scaled by the rate that is really in force,
so that the expectation is exact. Inside `seeded` the draws are a function of the seed alone.
"""

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from regard.errors import ConfigError

_generator: ContextVar[torch.Generator | None] = ContextVar("dropout", default=None)


@contextlib.contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Draw every dropout mask inside the block from one generator with this seed."""
    token = _generator.set(torch.Generator(device).manual_seed(seed))
    try:
        yield
    finally:
        _generator.reset(token)


class Dropout(nn.Module):
    """Zero a share `rate` of the elements while training and scale the others up; nothing in evaluation."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ConfigError(
                f"A dropout rate must be at least 0 and below 1, not {rate}.", "Correct the model's dropout."
            )
        self.rate = rate
        self.threshold = min(round(rate * 256), 255)  # at 256 nothing would be left to scale up

    def forward(self, x: Tensor) -> Tensor:
        """Return x with elements dropped, any shape."""
        mask = self.mask(x)
        return x if mask is None else x * mask

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + dropout(y) in one pass over memory: the sum of a residual connection."""
        mask = self.mask(y)
        return x + y if mask is None else torch.addcmul(x, y, mask)

    def mask(self, x: Tensor) -> Tensor | None:
        """Return the factors for x, each 0 or 256 / (256 - threshold); None where nothing is dropped."""
        if not self.training or self.threshold == 0:
            return None
        words = torch.empty(math.ceil(x.numel() / 8), dtype=torch.int64, device=x.device)
        # From -2**63 on: a plain random_() never sets the top bit, and every eighth element would drop twice as often.
        words.random_(-(2**63), None, generator=_generator.get())
        drawn = words.view(torch.uint8)[: x.numel()].view(x.shape)
        # Compared as bytes, in place: booleans would be slow to multiply with, and floats are four times as much to read.
        return drawn.ge_(self.threshold).to(x.dtype).mul_(256 / (256 - self.threshold))

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
