"""Denoising: spans of a text are hidden, and an encoder-decoder that reads the rest writes them (T5).

A piece of text with its gaps is a pair like any other: loss and model are those of translation, and so are what the task
learns for it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.masking import GAPS, corrupt_spans
from regard.decoding.batches import run_in_batches
from regard.decoding.request import Request
from regard.decoding.result import Hypothesis
from regard.decoding.rules import Banned, ForcedPrefix
from regard.decoding.search import decode
from regard.errors import UsageError
from regard.tasks.denoising.base import HiddenText, Sample
from regard.tasks.denoising.examples import PieceBatch
from regard.tasks.denoising.fill_mask import Blanks, Filled, Guess, check_fits, find_blanks, list_texts, show_blanks
from regard.tasks.spec import TASKS
from regard.tasks.translation.alignment import padded
from regard.tasks.translation.examples import pair_batch
from regard.tasks.translation.task import TranslationTask

GAP_TOKENS = 16  # the most that are written for a gap, the gap's own among them, where nobody says how many

Span = tuple[list[int], float]  # what was written for a gap, and its log-probability


class DenoisingTask(HiddenText):
    """The task of writing hidden spans."""

    spec: ClassVar = TASKS["denoise"]
    specials = GAPS
    embeddings = ("source_embedding.tokens.weight", "target_embedding.tokens.weight")

    def model_fields(self) -> dict[str, int | str]:
        return {"source_vocab": self.tokenizer.vocab_size, "target_vocab": self.tokenizer.vocab_size}

    def about_hidden(self) -> str:
        corruption = self.config.corruption
        return f"{corruption.rate:.0%} of the tokens, in spans of {corruption.span:g} on average, drawn anew each time"

    def signature(self) -> str:
        return f"{super().signature()}|span:{self.config.corruption.span:g}"

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The ids of the gap tokens."""
        return tuple(map(self.tokenizer.id_of, GAPS))

    @cached_property
    def pairs(self) -> TranslationTask:
        """What learns a text with gaps and what was in them as a pair."""
        return TranslationTask(Vocabulary(self.tokenizer, self.tokenizer), self.config)

    def hide(self, batch: PieceBatch, *, anew: bool) -> tuple[list[list[int]], list[list[int]]]:
        """Hide spans of a batch: the texts with gaps, and what was in these."""
        corruption = self.config.corruption
        found = [
            corrupt_spans(ids, rate=corruption.rate, span=corruption.span, gaps=self.gaps, random=random)
            for rows, random in batch.draws(anew=anew)
            for ids in batch.texts(rows)
        ]
        return [source for source, _ in found], [target for _, target in found]

    def loss(self, model: Any, batch: PieceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the tokens of the hidden spans, their gaps and the end, and their number."""
        sources, targets = self.hide(batch, anew=model.training)
        return self.pairs.loss(
            model, pair_batch(sources, targets, self.pairs.vocabulary, batch.device), smoothing=smoothing
        )

    def samples(self, model: nn.Module, batch: PieceBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        if not hasattr(model, "step"):  # a network of the caller's own may know nothing of decoding
            return ()
        sources, targets = self.hide(batch, anew=False)
        counts = [sum(id in self.gaps for id in source) for source in sources]
        ended = [[*source, self.tokenizer.end_id] for source in sources]
        greedy = replace(decoding, beam=1, n_best=1, sample=False)
        written = self._write(model, ended, counts, greedy)
        return tuple(
            (
                show_blanks(source, self.gaps, self.tokenizer),
                list_texts(self.tokenizer.decode(ids) for ids, _ in self.spans(target, [0.0] * len(target), count)),
                list_texts(self.tokenizer.decode(ids) for ids, _ in self.spans(one.ids, one.log_probs, count)),
            )
            for source, target, one, count in zip(sources, targets, written, counts, strict=True)
        )

    def fill(
        self,
        model: nn.Module,
        texts: Sequence[str],
        *,
        decoding: DecodingConfig | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Filled]:
        """Fill the blanks of texts, each with as many tokens as the model writes; `decoding` in place of the run's own."""
        found = [find_blanks(text, self.tokenizer) for text in texts]
        for blanks in found:
            if blanks.count > len(self.gaps):
                raise UsageError(
                    f"The text '{excerpt(blanks.text)}' has {blanks.count} blanks, and a model knows {len(self.gaps)}.",
                    "Fill it in parts.",
                )
        rows = [[*blanks.row(self.gaps[: blanks.count]), self.tokenizer.end_id] for blanks in found]
        lengths = [len(row) for row in rows]
        check_fits(model, texts, lengths)
        settings = replace(decoding or self.config.decoding, n_best=1)

        def run(numbers: list[int]) -> list[Filled]:
            counts = [found[number].count for number in numbers]
            written = self._write(model, [rows[number] for number in numbers], counts, settings, keys=numbers)
            return [self._filled(found[number], one) for number, one in zip(numbers, written, strict=True)]

        with torch.inference_mode():
            return run_in_batches(lengths, run, batch_size=settings.batch_size, progress=progress)

    def _filled(self, blanks: Blanks, written: Hypothesis) -> Filled:
        spans = self.spans(written.ids, written.log_probs, blanks.count)
        texts = blanks.guesses([ids for ids, _ in spans])
        guesses = tuple(
            (Guess(text=text, probability=math.exp(log_prob)),)
            for text, (_, log_prob) in zip(texts, spans, strict=True)
        )
        return Filled(source=blanks.text, text=blanks.filled(texts), guesses=guesses)

    def _write(
        self,
        model: Any,
        sources: Sequence[Sequence[int]],
        counts: Sequence[int],
        decoding: DecodingConfig,
        *,
        keys: Sequence[int] | None = None,
    ) -> list[Hypothesis]:
        """Let the model write what is hidden in texts with so many gaps."""
        tokenizer = self.tokenizer
        ids, lengths = padded(sources, tokenizer.pad_id, next(model.parameters()).device)
        longest = [decoding.max_length or GAP_TOKENS * count + 1 for count in counts]
        limits = torch.tensor(longest, device=ids.device)
        if (limit := getattr(model, "max_length", None)) is not None:
            limits = limits.clamp(max=limit - 1)
        request = Request(
            prompt=tokenizer.start_id,
            end_id=tokenizer.end_id,
            limits=limits,
            # What no target holds must not be written either, and every target begins with the first gap.
            rules=[Banned((tokenizer.pad_id, tokenizer.start_id)), ForcedPrefix([[self.gaps[0]]] * len(sources))],
            keys=keys,
        )
        return [one.best for one in decode(model, model.start((ids, lengths)), request, decoding)]

    def spans(self, ids: Sequence[int], log_probs: Sequence[float], count: int) -> list[Span]:
        """What was written behind each of so many gap tokens; nothing, without any probability, for one that is missing."""
        spans: list[Span] = [([], -math.inf)] * count
        number = -1
        for id, log_prob in zip(ids, log_probs, strict=False):  # the end token has a probability too
            if id in self.gaps:
                number = self.gaps.index(id)
                if number >= count or spans[number][1] > -math.inf:
                    break
                spans[number] = ([], log_prob)
            elif number >= 0:
                written, so_far = spans[number]
                spans[number] = ([*written, id], so_far + log_prob)
        return spans
