"""Span corruption: spans of a text are hidden, and an encoder-decoder that reads the rest writes them (T5).

A segment of text with its gaps is a pair like any other: loss and model are those of translation.
"""

import math
from collections.abc import Iterator, Sequence
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
from regard.tasks.offers import can_decode
from regard.tasks.options import GenerationOptions
from regard.tasks.reading import Reading, decoder_reading, read_positions
from regard.tasks.results import Results
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices, Sample
from regard.tasks.token_loss import row_costs, token_loss
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
        return row_costs(model, inputs, targets, mask)

    def guesses(self, model: nn.Module, batch: SegmentBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        if not can_decode(model):
            return ()
        sources, _ = self.hide(batch, anew=False)
        counts = self._counts(sources)
        ended = [source_row(self.tokenizer, source) for source in sources]
        greedy = GenerationOptions(decoding=replace(decoding, beam=1, sample=False))
        written = self._generate(self._generator(model, greedy), ended, counts)
        return tuple(
            (text, was, list_texts(self.tokenizer.decode(ids) for ids, _ in self.spans(one.ids, one.log_probs, count)))
            for (text, was), one, count in zip(self.blanked(batch), written, counts, strict=True)
        )

    def blanked(self, batch: SegmentBatch) -> Iterator[tuple[str, str]]:
        sources, targets = self.hide(batch, anew=False)
        for source, target, count in zip(sources, targets, self._counts(sources), strict=True):
            hidden = (self.tokenizer.decode(ids) for ids, _ in self.spans(target, [0.0] * len(target), count))
            yield show_blanks(source, self.gaps, self.tokenizer), list_texts(hidden)

    def _counts(self, sources: Sequence[Sequence[int]]) -> list[int]:
        """How many gaps each text has."""
        return [sum(id in self.gaps for id in source) for source in sources]

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

    def reading(self, model: Any, text: str, result: Filled, options: GenerationOptions) -> Reading:
        """A text with blanks, and what was written for them, to look into."""
        found, most = find_blanks(text, self.tokenizer), most_tokens(model, n_specials=1)
        blanks = only_window(found, most)
        source, generator = self._row(blanks), self._generator(model, options)
        ids, lengths = padded([source], self.tokenizer.pad_id, generator.device)
        read = read_positions(self.tokenizer, source, text, name="source")
        return decoder_reading(
            model,
            generator,
            result.ids,
            forward=lambda target: model(ids, lengths, target),
            inputs=(ids, lengths),
            limit=self._limits(generator, [blanks.count])[0],
            result=lambda decoded: self._filled(found, found.windows(most), [decoded.best]),
            source=(("source_embedding", read), ("encoder", read)),
            memory=read,
            rules=[self._beginning(1)],
        )

    def _generator(self, model: Any, options: GenerationOptions) -> Generator:
        decoding = replace(options.decoding or self.config.decoding, n_best=1)
        return Generator(self.tokenizer, model, decoding, options, network=model)

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
        limits = torch.tensor(self._limits(generator, counts), device=generator.device)
        prompt, begin = generator.target_prompt(len(sources)), self._beginning(len(sources))
        return [one.best for one in generator.decode(inputs, limits, prompt=prompt, rules=[begin], keys=keys)]

    def _limits(self, generator: Generator, counts: Sequence[int]) -> list[int]:
        """The most tokens that are written for so many gaps each."""
        longest = longest_output([generator.decoder])
        return [min(generator.decoding.max_length or GAP_TOKENS * count + 1, longest) for count in counts]

    def _beginning(self, n_texts: int) -> ForcedPrefix:
        """Every target begins with the first gap."""
        return ForcedPrefix([[self.gaps[0]]] * n_texts)

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
