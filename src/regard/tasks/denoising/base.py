"""Denoising: what masked language modelling and span corruption share: segments of running text, their loss and scores.

What is hidden of a segment, and how a model says what it was, is in `masked_lm.py` and `span_corruption.py`.
"""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data import batching
from regard.data.documents.dataset import DocumentDataset, encode_documents, prepare_documents
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.errors import DataError
from regard.evaluation.perplexity import cross_entropy_statistics, text_scores
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Statistics, share_statistics
from regard.tasks.batches import summed_loss
from regard.tasks.denoising.examples import ENDS, SegmentBatch, SegmentExamples
from regard.tasks.evaluation import Evaluation
from regard.tasks.max_length import longest_text, refuse_short
from regard.tasks.offers import device_of
from regard.tasks.options import Options, Progress
from regard.tasks.spec import TaskSpec
from regard.tasks.task import N_SAMPLES, Examples, Prepared, Validation
from regard.tasks.word_vectors import WordVectors

SAMPLE_TOKENS = 32  # of each segment that a validation shows

Sample = tuple[str, str, str]


class HiddenTextTask(ABC):
    """A task over segments of running text, in which something is hidden and to be predicted."""

    spec: ClassVar[TaskSpec]
    options: ClassVar[type[Options]]
    specials: ClassVar[tuple[str, ...]]  # that stand for what is hidden
    embeddings: ClassVar[tuple[str, ...]]  # the weights into which given word vectors are put

    def __init__(self, tokenizer: Tokenizer, config: RunConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None else None
        data = prepare_documents(
            config.data, config.tokenizer, given=given, progress=progress, running=False, specials=cls.specials
        )
        task = cls(data.tokenizer, config)
        train = task.examples(data.train, config.data.train)
        valid = task.examples(data.valid, config.data.valid or config.data.train)
        vectors = [("vectors", task.word_vectors.about("words"))] if task.word_vectors is not None else []
        facts = (*task._facts(data, train, valid), *vectors)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=data.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(Tokenizer.load(vocabulary / SHARED), config)

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(vocabulary / SHARED)

    @abstractmethod
    def model_fields(self) -> dict[str, int | str]: ...

    @abstractmethod
    def about_hidden(self) -> str:
        """What the report says is hidden."""

    @abstractmethod
    def loss(self, model: Any, batch: SegmentBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of what is hidden: drawn anew at each step while the model learns, else always the same."""

    @abstractmethod
    def costs(self, model: Any, batch: SegmentBatch) -> Floats:
        """What is hidden in each segment, (B, 2 or 3): its loss, its tokens, and perhaps how many are predicted right."""

    @abstractmethod
    def samples(self, model: nn.Module, batch: SegmentBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """For some segments what is shown of them, what is hidden, and what the model takes it for."""

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; refuse a network that cannot read a whole segment."""
        refuse_short(model, self.longest, n_specials=ENDS)
        if self.word_vectors is not None:
            for name in self.embeddings:
                self.word_vectors.put_into(model, name, self.config)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        path = self.config.tokenizer.vectors
        return WordVectors.read(path, self.tokenizer) if path else None

    @cached_property
    def longest(self) -> int:
        """How many tokens of text a segment has at most."""
        return longest_text(self.config, n_specials=ENDS)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Score what is hidden in all the text; with `n_samples`, show some segments of it."""
        assert isinstance(examples, SegmentExamples)
        loss, *others = self.scores(model, examples)
        samples: tuple[Sample, ...] = ()
        if n_samples:
            with torch.inference_mode():
                samples = self.samples(model, self._some(model, examples), decoding)
        return Validation(loss=loss.value, scores={score.name: score.value for score in others}, samples=samples)

    def evaluate(self, model: nn.Module, files: Sequence[str], options: Options) -> Evaluation:
        """Hide something of a text, always the same, and score what the model takes it for."""
        text = self.read(files, options)
        progress = partial(options.progress, "reading")
        began = time.perf_counter()
        statistics = self.statistics(model, text, progress=progress) if options.paired else []
        scores = [one.score for one in statistics] or self.scores(model, text, progress=progress)
        left_out = bad_rows_of(text.corpus, text.files).sentences()
        return Evaluation(
            scores=tuple(scores),
            statistics=tuple(statistics),
            paired_unit="segments",
            count=text.n_tokens,
            unit=self.spec.unit,
            seconds=time.perf_counter() - began,
            notes=tuple(f"Left out: {sentence}." for sentence in left_out),
        )

    def read(self, files: Sequence[str], options: Options) -> SegmentExamples:
        """Read text to be scored, and encode it."""
        data = options.data or self.config.data
        corpus = encode_documents(files, data, self.tokenizer, progress=options.progress)
        return self.examples(corpus, files)

    def scores(
        self, model: nn.Module, text: SegmentExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Score]:
        """Score what is hidden in a text by its loss and perplexity; `progress` is told how many tokens were read."""
        loss, n_hidden = summed_loss(partial(self.loss, model, smoothing=0.0), batches(model, text, progress=progress))
        return self.signed(text_scores(loss, n_tokens=int(n_hidden), n_bytes=None))

    def statistics(
        self, model: nn.Module, text: SegmentExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Statistics]:
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
        vocabulary = hashlib.sha256(self.tokenizer.to_json().encode()).hexdigest()[:8]
        cut = f"{self.signature()}|longest:{text.longest}|vocabulary:{vocabulary}"
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

    def _some(self, model: nn.Module, examples: SegmentExamples) -> SegmentBatch:
        """Some segments, in equal distances, cut to what people read."""
        numbers = range(0, len(examples), max(1, len(examples) // N_SAMPLES))[:N_SAMPLES]
        batch = examples.batch(np.array(numbers), device_of(model))
        lengths = batch.lengths.clip(max=SAMPLE_TOKENS + ENDS)
        ids = batch.ids[:, : int(lengths.max())].copy()
        ids[np.arange(len(ids)), lengths - 1] = self.tokenizer.end_id
        return replace(batch, ids=ids, lengths=lengths)

    def _facts(
        self, data: DocumentDataset, train: SegmentExamples, valid: SegmentExamples
    ) -> tuple[tuple[str, str], ...]:
        """What the report before the first step says of the data."""
        order, counts = train.order(0), data.train.facts
        documents = f"{counts['n_documents']:,} document{'s' if counts['n_documents'] != 1 else ''}"
        segments = f"{len(train):,} segments of at most {train.longest:,}"
        padding = batching.padding_share(train.lengths, order)
        facts = [
            ("training", f"{train.n_tokens:,} tokens, {documents}, {segments}"),
            ("validation", ", ".join(filter(None, (f"{valid.n_tokens:,} tokens", data.held_out)))),
            ("vocabulary", f"{data.tokenizer.vocab_size:,} tokens ({data.tokenizer.kind})"),
            ("hidden", self.about_hidden()),
            ("batches", f"{len(order):,} per epoch, {padding:.1%} padding"),
        ]
        facts += data.notes
        if not data.tokenizer.lossless:
            facts.append(("tokenizer loss", data.tokenizer.loss))
        return tuple(facts)


def batches(
    model: nn.Module, text: SegmentExamples, *, progress: Callable[[int], None] = lambda done: None
) -> Iterator[SegmentBatch]:
    """All segments of a text, for where the model is; `progress` is told how many tokens were read."""
    device, n_read = device_of(model), 0
    for indices in text.fixed_order():
        batch = text.batch(indices, device)
        yield batch
        n_read += batch.n_tokens
        progress(n_read)
