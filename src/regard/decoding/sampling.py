"""Sampling: every token is drawn at random, with a temperature, top-k and top-p (nucleus).

The draws of a sentence are a function of (seed, its key, the number of the sample), so that they do not depend on which
other sentences are in the batch. Scores and log-probabilities are the model's (after rules), before temperature and cuts.
"""

from dataclasses import dataclass

import numpy
import torch
from torch import Tensor

from regard.decoding.autoregressive import Choose
from regard.decoding.request import Request
from regard.errors import UsageError

# Below this a temperature leaves one token only, and single precision may take it for 0, by which nothing can be divided.
COLD = 1e-30
# Where only top_p cuts, so many tokens are sorted first: they nearly always hold it, and sorting all takes far longer.
LIKELY = 512


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn: from the logits over `temperature`, cut to `top_k` (0: all), then to `top_p`."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    samples: int = 1

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise UsageError(
                f"The temperature must not be below 0, but it is {self.temperature}.", "Give 0 for greedy search."
            )
        if self.top_k < 0:
            raise UsageError(f"top_k must not be below 0, but it is {self.top_k}.", "Give 0 for the whole vocabulary.")
        if not 0 < self.top_p <= 1:
            raise UsageError(
                f"top_p must be above 0 and at most 1, but it is {self.top_p}.", "Give 1.0 for the whole vocabulary."
            )
        if self.samples < 1:
            raise UsageError(
                f"At least 1 sample must be drawn per sentence, but {self.samples} were asked for.", "Give 1 or more."
            )

    def draw(self, log_probs: Tensor, uniform: Tensor) -> Tensor:
        """Pick a token (R,) from log-probabilities (R, V) by inverting the cumulative distribution at `uniform` (R,)."""
        if self.temperature < COLD:
            return log_probs.argmax(dim=-1)
        tokens = None
        if self.top_k:
            log_probs, tokens = log_probs.topk(min(self.top_k, log_probs.shape[1]), dim=-1)
        # With the largest at 0, none is too large for a small temperature.
        probs = torch.softmax((log_probs - log_probs.amax(dim=-1, keepdim=True)) / self.temperature, dim=-1)
        if self.top_p == 1:
            return _pick(probs, tokens, uniform)
        if tokens is not None:
            return _pick(self._nucleus(probs), tokens, uniform)
        likely, tokens = probs.topk(min(LIKELY, probs.shape[1]), dim=-1)
        drawn = _pick(self._nucleus(likely), tokens, uniform)
        short = ~(likely.sum(dim=-1) > self.top_p)  # (R,), True for what is no number too
        if bool(short.any()):
            ranked, tokens = probs[short].sort(dim=-1, descending=True)
            drawn[short] = _pick(self._nucleus(ranked), tokens, uniform[short])
        return drawn

    def _nucleus(self, probs: Tensor) -> Tensor:
        """Cut probabilities, the largest first, to the fewest that hold top_p; the others become 0.

        Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
        """
        return probs.masked_fill(probs.cumsum(dim=-1) - probs >= self.top_p, 0.0)


def _pick(probs: Tensor, tokens: Tensor | None, uniform: Tensor) -> Tensor:
    """Pick by probabilities (R, K) of `tokens` (R, K), or of 0 to K - 1, the one where their sum passes `uniform` (R,)."""
    cumulative = probs.cumsum(dim=-1)
    # The first place whose cumulative probability exceeds the point: one of probability 0 is never chosen.
    place = torch.searchsorted(cumulative, (uniform * cumulative[:, -1]).unsqueeze(1), right=True)
    place = place.clamp(max=probs.shape[1] - 1)  # Only where logits are not numbers, which the caller reports.
    return (place if tokens is None else tokens.gather(1, place)).squeeze(1)


def drawing(sampling: Sampling, request: Request) -> Choose:
    """Choose for the autoregressive loop: draw a token for each row, from a stream of its own."""
    uniforms = _uniforms(sampling.samples, request).to(request.limits.device)  # (R, longest limit)
    return lambda log_probs, position, rows: sampling.draw(log_probs, uniforms[rows, position])


def _uniforms(samples: int, request: Request) -> Tensor:
    """Draw every number that will be needed, each row from a stream of its own. NumPy's seeds mix several integers."""
    limits = request.limits.tolist()
    keys = range(len(limits)) if request.keys is None else request.keys
    table = numpy.zeros((len(limits) * samples, max(limits, default=0)), dtype=numpy.float32)
    for sentence, (key, limit) in enumerate(zip(keys, limits, strict=True)):
        for number in range(samples):
            stream = numpy.random.default_rng((request.seed, key, number))
            table[sentence * samples + number, :limit] = stream.random(limit, dtype=numpy.float32)
    return torch.from_numpy(table)
