"""Span corruption: spans of a text are hidden, and an encoder-decoder that reads the rest writes them (T5).

A segment of text with its gaps is a pair like any other: loss and model are those of translation.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig
from regard.data.formats.rows import excerpt
from regard.data.pairs.dataset import Vocabulary
from regard.data.text.masking import corrupt_spans
from regard.data.text.roles import GAPS
from regard.decoding.result import Hypothesis
from regard.decoding.rules import ForcedPrefix
from regard.errors import UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.kneser_ney import KneserNey, windows
from regard.evaluation.perplexity import text_scores
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.tasks.attention import AttentionWeights, written_attention
from regard.tasks.baseline_inputs import MOST_TOKENS, bounded_rows, in_chunks
from regard.tasks.batches import padded
from regard.tasks.denoising.base import HiddenTextTask
from regard.tasks.denoising.examples import SegmentBatch, SegmentExamples
from regard.tasks.denoising.fill_mask import (
    Blanks,
    Filled,
    Guess,
    Window,
    find_blanks,
    list_texts,
    most_tokens,
    only_window,
    show_blanks,
)
from regard.tasks.generation import Generator, in_batches, longest_output
from regard.tasks.offers import can_decode, device_of
from regard.tasks.options import GenerationOptions
from regard.tasks.results import Results
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices, Sample
from regard.tasks.token_loss import token_loss, token_losses
from regard.tasks.translation.examples import PairBatch, pair_batch, source_row

GAP_TOKENS = 16  # the most that are written for a gap, the gap's own among them, where nobody says how many
NGRAM_ORDER = 3  # of the baseline

Span = tuple[list[int], float]  # what was written for a gap, and its log-probability


class DenoisingTask(HiddenTextTask):
    """The task of span corruption."""

    spec: ClassVar = TASKS["denoise"]
    options: ClassVar = GenerationOptions
    specials = GAPS
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]] = (KneserNey,)
    embeddings = ("source_embedding.tokens.weight", "target_embedding.tokens.weight")

    def model_fields(self) -> dict[str, int | str]:
        return {"source_vocab": self.tokenizer.vocab_size, "target_vocab": self.tokenizer.vocab_size}

    def task_facts(self) -> list[tuple[str, str]]:
        corruption = self.config.corruption
        spans = f"in spans of {corruption.span:g} on average, drawn anew each time"
        return [("hidden", f"{corruption.rate:.0%} of the tokens, {spans}")]

    def signature(self) -> str:
        return f"{super().signature()}|span:{self.config.corruption.span:g}"

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The ids of the gap tokens."""
        return self.tokenizer.gap_ids

    def hide(self, batch: SegmentBatch, *, anew: bool) -> tuple[list[list[int]], list[list[int]]]:
        """Hide spans of a batch: the texts with gaps, and what was in these."""
        corruption = self.config.corruption
        found = [
            corrupt_spans(ids, rate=corruption.rate, span=corruption.span, gaps=self.gaps, random=random)
            for rows, random in batch.draws(anew=anew)
            for ids in batch.texts(rows)
        ]
        return [source for source, _ in found], [target for _, target in found]

    def loss(self, model: Any, batch: SegmentBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy summed over the tokens of the hidden spans, their gaps and the end, and their number."""
        inputs, targets, mask = self._pairs(batch, anew=model.training).teacher_forced()
        return token_loss(model, inputs, targets, mask, smoothing=smoothing)

    def _pairs(self, batch: SegmentBatch, *, anew: bool) -> PairBatch:
        """The texts with gaps as sources, what was in these as targets."""
        return pair_batch(*self.hide(batch, anew=anew), Vocabulary(self.tokenizer, self.tokenizer), batch.device)

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """An n-gram model of what is hidden, which sees nothing of the text around it."""
        assert isinstance(train, SegmentExamples)
        rows = bounded_rows(
            train.lengths.astype(np.int64), MOST_TOKENS // 5
        )  # it takes longer to hide something than to count it
        return [KneserNey.fit(*windows(self._hidden(train, rows), NGRAM_ORDER), self.tokenizer.vocab_size)]

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score the tokens that a model is to write."""
        assert isinstance(examples, SegmentExamples) and isinstance(baseline, KneserNey)
        nats, n_tokens = 0.0, 0
        for rows in in_chunks(examples.lengths.astype(np.int64)):
            tokens, before = windows(self._hidden(examples, rows), NGRAM_ORDER)
            nats, n_tokens = nats + baseline.cross_entropy(tokens, before), n_tokens + len(tokens)
        return self.signed(text_scores(nats, n_tokens=n_tokens, n_bytes=None))

    def _hidden(self, text: SegmentExamples, rows: Indices) -> Indices:
        """What a model is to write for some segments, end to end, an end token before the first and behind each."""
        _, targets = self.hide(text.batch(rows, torch.device("cpu")), anew=False)
        end = self.tokenizer.end_id
        return np.array([end, *(id for target in targets for id in (*target, end))], np.int64)

    def costs(self, model: Any, batch: SegmentBatch) -> Floats:
        inputs, targets, mask = self._pairs(batch, anew=False).teacher_forced()
        losses = token_losses(model, inputs, targets, mask).double().cpu().numpy()
        found = np.zeros((len(mask), 2))
        np.add.at(found, mask.nonzero()[:, 0].cpu().numpy(), np.stack((losses, np.ones_like(losses)), axis=1))
        return found

    def guesses(self, model: nn.Module, batch: SegmentBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        if not can_decode(model):
            return ()
        sources, targets = self.hide(batch, anew=False)
        counts = [sum(id in self.gaps for id in source) for source in sources]
        ended = [source_row(self.tokenizer, source) for source in sources]
        greedy = GenerationOptions(decoding=replace(decoding, beam=1, sample=False))
        written = self._generate(self._generator(model, greedy), ended, counts)
        return tuple(
            (
                show_blanks(source, self.gaps, self.tokenizer),
                list_texts(self.tokenizer.decode(ids) for ids, _ in self.spans(target, [0.0] * len(target), count)),
                list_texts(self.tokenizer.decode(ids) for ids, _ in self.spans(one.ids, one.log_probs, count)),
            )
            for source, target, one, count in zip(sources, targets, written, counts, strict=True)
        )

    def predict(self, model: nn.Module, inputs: Sequence[str], options: GenerationOptions) -> Results[Filled]:
        """Fill the blanks of texts, each with as many tokens as the model writes."""
        found = [find_blanks(text, self.tokenizer) for text in inputs]
        for blanks in found:
            if blanks.count > len(self.gaps):
                raise UsageError(
                    f"The text '{excerpt(blanks.text)}' has {blanks.count} blanks, and a model knows {len(self.gaps)}.",
                    "Fill it in parts.",
                )
        most = most_tokens(model, n_specials=1)
        read = [blanks.windows(most) for blanks in found]
        windows = [window for own in read for window in own]
        rows = [self._row(window.blanks) for window in windows]
        # What is drawn for a text depends on its number, and on those of its windows.
        keys = [line + (number << 64) for line, own in enumerate(read) for number in range(len(own))]
        generator = self._generator(model, options)

        def run(numbers: list[int]) -> list[Hypothesis]:
            counts = [windows[number].blanks.count for number in numbers]
            own_keys = [keys[number] for number in numbers]
            return self._generate(generator, [rows[number] for number in numbers], counts, keys=own_keys)

        written = iter(
            in_batches(
                [len(row) for row in rows],
                run,
                batch_size=generator.decoding.batch_size,
                name=lambda number: f"The text '{excerpt(windows[number].blanks.text)}'",
                progress=partial(options.progress, "writing"),
            )
        )
        return Results(
            self._filled(blanks, own, list(islice(written, len(own)))) for blanks, own in zip(found, read, strict=True)
        )

    def attention(self, model: Any, text: str, result: Filled, options: GenerationOptions) -> AttentionWeights:
        """How the model attended to a text with blanks while it wrote what it fills them with."""
        source = self._row(only_window(find_blanks(text, self.tokenizer), most_tokens(model, n_specials=1)))
        return written_attention(model, Vocabulary(self.tokenizer, self.tokenizer), source, result.ids)

    def _generator(self, model: Any, options: GenerationOptions) -> Generator:
        decoding = replace(options.decoding or self.config.decoding, n_best=1)
        return Generator(self.tokenizer, model, decoding, options, device=device_of(model))

    def _row(self, blanks: Blanks) -> list[int]:
        """What an encoder reads of a text with blanks."""
        return source_row(self.tokenizer, blanks.row(self.gaps[: blanks.count]))

    def _filled(self, blanks: Blanks, windows: Sequence[Window], outputs: Sequence[Hypothesis]) -> Filled:
        """The text with what was written for the blanks of each of its windows."""
        spans = [
            span
            for window, one in zip(windows, outputs, strict=True)
            for span in self.spans(one.ids, one.log_probs, window.blanks.count)[window.own]
        ]
        texts = blanks.guesses([ids for ids, _ in spans])
        guesses = tuple(
            (Guess(text=text, probability=math.exp(log_prob)),)
            for text, (_, log_prob) in zip(texts, spans, strict=True)
        )
        ids = [id for one in outputs for id in (*one.ids, *([self.tokenizer.end_id] if one.finished else []))]
        return Filled(
            source=blanks.text, text=blanks.filled(texts), guesses=guesses, ids=tuple(ids), cut=windows[0].cut
        )

    def _generate(
        self,
        generator: Generator,
        sources: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        keys: Sequence[int] | None = None,
    ) -> list[Hypothesis]:
        """Let the model write what is hidden in texts with so many gaps."""
        inputs = padded(sources, self.tokenizer.pad_id, generator.device)
        longest = [generator.decoding.max_length or GAP_TOKENS * count + 1 for count in counts]
        limits = torch.tensor(longest, device=generator.device).clamp(max=longest_output([generator.decoder]))
        begin = ForcedPrefix([[self.gaps[0]]] * len(sources))  # as every target does
        prompt = generator.target_prompt(len(sources))
        return [one.best for one in generator.decode(inputs, limits, prompt=prompt, rules=[begin], keys=keys)]

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
