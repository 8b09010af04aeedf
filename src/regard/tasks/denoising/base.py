"""What the tasks mask and denoise share: running text in pieces of which something is hidden, and its loss.

What is hidden, and how a model says what it was, is in `mask.py` and `denoise.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data import batching
from regard.data.documents.dataset import DocumentDataset, encode_documents, prepare_documents
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.errors import DataError
from regard.evaluation.perplexity import text_scores
from regard.evaluation.scores import Score
from regard.tasks.denoising.examples import ENDS, PieceBatch, PieceExamples
from regard.tasks.max_length import longest_text, refuse_short
from regard.tasks.spec import TaskSpec
from regard.tasks.task import Examples, Prepared, Progress, Validation
from regard.tasks.word_vectors import WordVectors

N_SAMPLES = 3  # shown at a validation
SAMPLE_TOKENS = 32  # of each of them

Sample = tuple[str, str, str]


class HiddenText(ABC):
    """A task over pieces of running text, in which something is hidden and to be guessed."""

    spec: ClassVar[TaskSpec]
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
    def sizes(self) -> dict[str, int | str]: ...

    @abstractmethod
    def about_hidden(self) -> str:
        """What the report says is hidden."""

    @abstractmethod
    def loss(self, model: Any, batch: PieceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of what is hidden: drawn anew at each step while the model learns, else always the same."""

    @abstractmethod
    def samples(self, model: nn.Module, batch: PieceBatch, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """For some pieces what is shown of them, what is hidden, and what the model takes it for."""

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; refuse a network that cannot read a whole piece."""
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
        """How many tokens of text a piece has at most."""
        return longest_text(self.config, n_specials=ENDS)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_decoded: int) -> Validation:
        """Score what is hidden in all the text; with `n_decoded`, show some pieces of it."""
        assert isinstance(examples, PieceExamples)
        loss, *others = self.scores(model, examples)
        samples: tuple[Sample, ...] = ()
        if n_decoded:
            with torch.inference_mode():
                samples = self.samples(model, self._some(model, examples), decoding)
        return Validation(loss=loss.value, scores={score.name: score.value for score in others}, samples=samples)

    def read(self, files: Sequence[str], data: DataConfig, *, progress: Progress) -> PieceExamples:
        """Read text to be scored, as `data` says, and encode it."""
        corpus = encode_documents(files, data, self.tokenizer, progress=progress)
        return self.examples(corpus, files)

    def scores(
        self, model: nn.Module, text: PieceExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Score]:
        """Score what is hidden in a text by its loss and perplexity; `progress` is told how many tokens were read."""
        total, n_hidden, n_read = 0.0, 0.0, 0
        with torch.inference_mode():
            for batch in batches(model, text):
                loss, count = self.loss(model, batch, smoothing=0.0)
                total, n_hidden = total + float(loss), n_hidden + count
                n_read += batch.n_tokens
                progress(n_read)
        return self.signed(text_scores(total, n_tokens=int(n_hidden), n_bytes=None))

    def signed(self, scores: Sequence[Score]) -> list[Score]:
        """Scores with what is hidden in their signature: only then do they compare."""
        return [replace(score, signature=f"{score.signature}|{self.signature()}") for score in scores]

    def signature(self) -> str:
        """What is hidden, as a score's signature says it."""
        return f"hidden:{self.config.corruption.rate:g}"

    def notes(self, text: PieceExamples) -> tuple[str, ...]:
        """What a reader of a text's scores should know."""
        return tuple(f"Left out: {sentence}." for sentence in bad_rows_of(text.corpus, text.files).sentences())

    def examples(self, corpus: Corpus, files: Sequence[str]) -> PieceExamples:
        """Pieces of an encoded corpus."""
        examples = PieceExamples(
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

    def _some(self, model: nn.Module, examples: PieceExamples) -> PieceBatch:
        """Some pieces, in equal distances, cut to what people read."""
        numbers = range(0, len(examples), max(1, len(examples) // N_SAMPLES))[:N_SAMPLES]
        batch = examples.batch(np.array(numbers), next(model.parameters()).device)
        lengths = batch.lengths.clip(max=SAMPLE_TOKENS + ENDS)
        ids = batch.ids[:, : int(lengths.max())].copy()
        ids[np.arange(len(ids)), lengths - 1] = self.tokenizer.end_id
        return replace(batch, ids=ids, lengths=lengths)

    def _facts(self, data: DocumentDataset, train: PieceExamples, valid: PieceExamples) -> tuple[tuple[str, str], ...]:
        """What the report before the first step says of the data."""
        order, counts = train.order(0), data.train.facts
        documents = f"{counts['n_documents']:,} document{'s' if counts['n_documents'] != 1 else ''}"
        pieces = f"{len(train):,} pieces of at most {train.longest:,}"
        padding = batching.padding_share(train.lengths, order)
        facts = [
            ("training", f"{train.n_tokens:,} tokens, {documents}, {pieces}"),
            ("validation", ", ".join(filter(None, (f"{valid.n_tokens:,} tokens", data.held_out)))),
            ("vocabulary", f"{data.tokenizer.vocab_size:,} tokens ({data.tokenizer.kind})"),
            ("hidden", self.about_hidden()),
            ("batches", f"{len(order):,} an epoch, {padding:.1%} padding"),
        ]
        facts += data.notes
        if not data.tokenizer.lossless:
            facts.append(("lost", data.tokenizer.loss))
        return tuple(facts)


def batches(model: nn.Module, text: PieceExamples) -> Iterator[PieceBatch]:
    """All pieces of a text, for where the model is."""
    device = next(model.parameters()).device
    return (text.batch(indices, device) for indices in text.fixed_order())
