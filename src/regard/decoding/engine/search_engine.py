"""CTranslate2 as a search engine: ids in, hypotheses out.

It knows a model folder and a name for each id, and no text. What it cannot do as our own search does it, it refuses
(`unsupported`) or leaves to it, sentence by sentence (None in the place of hypotheses).

- Its beam search ends by another rule than ours: as soon as there are as many finished hypotheses as the beam is wide,
  whatever could still come.
- What it bans (repeated n-grams, an end before the minimum length) it takes out of the sum of all probabilities, which we
  do not: the likeliest token stays the same, the ranks of a beam's hypotheses do not.
- A repetition penalty changes the log-probabilities of an output's tokens, and read back they are without it. Behind a
  prompt that it has read at once, the library forgets the prompt's tokens, which count for us.
- A sequence of tokens that it suppresses is suppressed inside of words too, where a banned word is none.
- It samples one text at a time: its draws depend on the texts beside a text, and on all that were drawn before.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from regard.config import DecodingConfig
from regard.decoding.engine.library import Engine, EngineSettings
from regard.decoding.penalties import LengthPower
from regard.decoding.result import Attention, Decoded, hypothesis

BATCH_TOKENS = 2048  # of a batch at most; half as many cost 3 % of the speed of a small model, twice as many gain 2 %
LONGEST_INPUT = 0  # none is cut: who asks has seen to it

Ids = Sequence[int]


class SearchEngine(Engine):
    """What both kinds that search share: the names of tokens, and which of them are never written.

    never:  what must not be written; rows that no token has are added to it
    """

    compared = "log-probabilities"
    samples = False  # whether it draws a text that is alone
    counts_prompts = True  # whether what the output begins with is counted by rules on repetition

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        source_names: Sequence[str] | None = None,
        end_id: int,
        never: Ids,
        n_tokens: int,
        settings: EngineSettings,
    ) -> None:
        super().__init__(folder, settings=settings)
        self.names = names
        self.source_names = source_names or names
        self.ids = {name: id for id, name in enumerate(names)}
        self.end_id = end_id
        self.never = {*never, *range(n_tokens, len(names))}

    def unsupported(
        self,
        config: DecodingConfig,
        *,
        banned: bool = False,
        n_models: int = 1,
        alone: bool = False,
        log_probs: bool = False,
    ) -> str:
        """What of a search it cannot do as ours does; empty for nothing.

        alone:      whether one text is asked for
        log_probs:  whether the log-probability of each token is asked for
        """
        if n_models > 1:
            return "an ensemble"
        if config.sample and not (self.samples and alone and config.n_best == 1):
            return "sampling of several texts, each from a seed of its own" if self.samples else "sampling"
        if config.n_best > config.beam and not config.sample:
            return "more hypotheses than the beam is wide"
        greedy = config.beam == 1 and not config.sample
        if config.min_length and not greedy:
            return "a minimum length except in greedy search"
        if config.no_repeat_ngram and not (greedy and self.counts_prompts):
            return "no repeated n-gram" + " except in greedy search" * self.counts_prompts
        if config.repetition_penalty != 1 and (log_probs or not self.counts_prompts):
            return "a repetition penalty" + " with log-probabilities or a prefix" * self.counts_prompts
        return "banned words" if banned else ""

    def _named(self, ids: Ids) -> list[str]:
        """Ids as the names that the library knows."""
        return [self.names[id] for id in ids]

    def _batch_tokens(self, lengths: Sequence[int], *, most: int = BATCH_TOKENS) -> int:
        """Tokens of a batch of inputs, padding counted: at most so many, and so that every worker has as many batches."""
        workers, _ = self.settings.of(len(lengths))
        ordered = sorted(lengths, reverse=True)
        n_batches = min(len(lengths), workers * math.ceil(_n_batches(ordered, most) / workers))
        size = math.ceil(sum(lengths) / n_batches)  # without padding
        while size < most and _n_batches(ordered, size) > n_batches:
            size += math.ceil(size / 64)
        return min(size, most)

    def _may_write(self, outputs: Sequence[Ids], limit: int) -> bool:
        """Whether our own search could have written these outputs of an input, too."""
        return all(len(ids) <= limit and self.never.isdisjoint(ids) for ids in outputs)

    def _decoded(
        self,
        outputs: Sequence[Ids],
        scores: Sequence[float],
        config: DecodingConfig,
        *,
        log_probs: Sequence[Sequence[float]] | None = None,
        attention: Sequence[Attention] | None = None,
    ) -> Decoded:
        """The hypotheses of an input, best first: scored by their log-probabilities, or else as the library did."""
        penalty = LengthPower(config.length_penalty)
        found = []
        for number, (ids, score) in enumerate(zip(outputs, scores, strict=True)):
            own: Sequence[float] = ()
            if log_probs is not None:
                own = log_probs[number]
                score = penalty.score(sum(own), length=max(1, len(ids)))
            weights = None if attention is None else attention[number]
            found.append(hypothesis(ids or [self.end_id], own, score=score, end_id=self.end_id, attention=weights))
        return Decoded(tuple(sorted(found, key=lambda one: -one.score)))


def _n_batches(lengths: Sequence[int], size: int) -> int:
    """How many batches of so many tokens, padding counted, hold inputs of lengths that fall."""
    n_batches = widest = n_inputs = 0
    for length in lengths:
        n_inputs += 1
        if n_batches == 0 or n_inputs * widest > size:
            n_batches, widest, n_inputs = n_batches + 1, length, 1
    return n_batches
