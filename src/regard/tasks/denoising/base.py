"""Denoising: what masked language modelling and span corruption share: segments of running text, their loss and scores.

What is hidden of a segment, and how a model says what it was, is in `masked_lm.py` and `span_corruption.py`.
"""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig
from regard.data.pipeline.corpus import Corpus
from regard.errors import DataError
from regard.evaluation.perplexity import cross_entropy_statistics, text_scores
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Statistics, share_statistics
from regard.tasks.baselines import score_baselines
from regard.tasks.batches import fixed_batches, summed_loss
from regard.tasks.denoising.examples import ENDS, SegmentBatch, SegmentExamples
from regard.tasks.evaluation import Evaluation
from regard.tasks.max_length import longest_text, refuse_short
from regard.tasks.offers import device_of
from regard.tasks.options import Count, Options, no_count
from regard.tasks.probe_example import ProbeExample, probe_rows
from regard.tasks.running_text import RunningTextTask
from regard.tasks.task import Examples, Indices, Sample, sample_rows

SAMPLE_TOKENS = 32  # of each segment that a validation shows


class HiddenTextTask(RunningTextTask):
    """A task over segments of running text, in which something is hidden and to be predicted; `specials` stand for it."""

    running: ClassVar = False

    @abstractmethod
    def loss(self, model: Any, batch: SegmentBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of what is hidden: drawn anew at each step while the model learns, else always the same."""

    @abstractmethod
    def costs(self, model: Any, batch: SegmentBatch) -> Floats:
        """What is hidden in each segment, (B, 2 or 3): its loss, its tokens, and perhaps how many are predicted right."""

    @abstractmethod
    def guesses(self, model: nn.Module, batch: SegmentBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """For some segments what is shown of them, what is hidden, and what the model takes it for."""

    @abstractmethod
    def blanked(self, batch: SegmentBatch) -> Iterator[tuple[str, str]]:
        """Each segment with blanks in the place of what is hidden, always the same, and what that is."""

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; refuse a network that cannot read a whole segment."""
        refuse_short(model, self.longest, n_specials=ENDS)
        super().initialise(model)

    @cached_property
    def longest(self) -> int:
        """How many tokens of text a segment has at most."""
        return longest_text(self.config, n_specials=ENDS)

    def evaluate(self, model: nn.Module, files: Sequence[str], options: Options) -> Evaluation:
        """Hide something of a text, always the same, and score what the model takes it for."""
        text = self.read(files, options)
        progress = partial(options.progress, "reading")
        began = time.perf_counter()
        statistics = self.statistics(model, text, progress=progress) if options.paired else []
        scores = [one.score for one in statistics] or self.scores(model, text, progress=progress)
        return Evaluation(
            scores=tuple(scores),
            statistics=tuple(statistics),
            paired_unit="segments",
            count=text.n_tokens,
            unit=self.spec.unit,
            seconds=time.perf_counter() - began,
            baselines=score_baselines(self, options.baselines, text),
            notes=self.notes(text),
        )

    def scores(self, model: nn.Module, text: SegmentExamples, *, progress: Count = no_count) -> list[Score]:
        """Score what is hidden in a text by its loss and perplexity; `progress` is told how many tokens were read."""
        loss, n_hidden = summed_loss(partial(self.loss, model, smoothing=0.0), batches(model, text, progress=progress))
        return self.signed(text_scores(loss, n_tokens=int(n_hidden), n_bytes=None))

    def statistics(self, model: nn.Module, text: SegmentExamples, *, progress: Count = no_count) -> list[Statistics]:
        """What each segment adds to the scores, for paired tests.

        What is hidden depends on the vocabulary and on how text is cut, which the signatures therefore name.
        """
        costs: dict[int, Floats] = {}
        with torch.inference_mode():
            for batch in batches(model, text, progress=progress):
                costs |= zip(batch.numbers.tolist(), self.costs(model, batch), strict=True)
        nats, n_tokens, *n_correct = np.stack([costs[number] for number in range(len(text))], axis=1)
        found: list[Statistics] = [*cross_entropy_statistics(nats, n_tokens)]
        found += [share_statistics("masked_accuracy", own, n_tokens, unit="tokens") for own in n_correct]
        cut = f"{self.signature()}|longest:{text.longest}|{self.vocabulary_signature}"
        return [replace(one, signature=f"{one.signature}|{cut}") for one in found]

    def signed(self, scores: Sequence[Score]) -> list[Score]:
        """Scores with what is hidden in their signature: only then do they compare."""
        return [replace(score, signature=f"{score.signature}|{self.signature()}") for score in scores]

    def signature(self) -> str:
        """What is hidden, as a score's signature says it."""
        return f"hidden:{self.config.corruption.rate:g}"

    def examples(self, corpus: Corpus, files: Sequence[str]) -> SegmentExamples:
        """Segments of an encoded corpus."""
        examples = SegmentExamples(
            corpus,
            files,
            self.tokenizer,
            longest=self.longest,
            batch_tokens=self.config.training.batch_tokens,
            seed=self.config.seed,
        )
        if not len(examples):
            raise DataError(
                f"{', '.join(files)}: there is nothing to guess: no token of the text is in the vocabulary.",
                "Check that these are the right files and the right vocabulary.",
            )
        return examples

    def samples(self, model: nn.Module, text: SegmentExamples, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """The guesses for some segments, cut to what people read."""
        return self.guesses(model, self._cut(text, np.array(sample_rows(len(text))), device_of(model)), decoding)

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Some segments with blanks, to be filled in while the model learns."""
        assert isinstance(examples, SegmentExamples)
        batch = self._cut(examples, np.array(probe_rows(examples.lengths, n)), torch.device("cpu"))
        return [ProbeExample(title=text, input=text, expected=hidden) for text, hidden in self.blanked(batch)]

    def _cut(self, text: SegmentExamples, rows: Indices, device: torch.device) -> SegmentBatch:
        """Some segments, cut to what people read."""
        batch = text.batch(rows, device)
        lengths = batch.lengths.clip(max=SAMPLE_TOKENS + ENDS)
        ids = batch.ids[:, : int(lengths.max())].copy()
        ids[np.arange(len(ids)), lengths - 1] = self.tokenizer.end_id
        return replace(batch, ids=ids, lengths=lengths)


def batches(model: nn.Module, text: SegmentExamples, *, progress: Count = no_count) -> Iterator[SegmentBatch]:
    """All segments of a text, for where the model is; `progress` is told how many tokens were read."""
    n_read = 0
    for batch in fixed_batches(model, text):
        yield batch
        n_read += batch.n_tokens
        progress(n_read)
