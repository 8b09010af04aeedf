"""Running text: what language modelling and denoising share over one vocabulary: data, word vectors, validation, report.

What is predicted of a text, and how a model reads it, is in `language_model/` and `denoising/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, RunConfig
from regard.data.documents.dataset import DocumentDataset, encode_documents, prepare_documents
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.encoding import scored_notes
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.scores import Score
from regard.tasks.options import Count, Options, Progress, no_count
from regard.tasks.spec import TaskSpec
from regard.tasks.task import Examples, Prepared, Sample, Validation
from regard.tasks.word_vectors import WordVectors


class RunningTextTask(ABC):
    """A task over running text.

    specials:    tokens that the vocabulary has beside those of all
    running:     whether the examples are windows over the stream of tokens, and not segments of documents
    embeddings:  the weights into which given word vectors are put
    """

    spec: ClassVar[TaskSpec]
    options: ClassVar[type[Options]]
    specials: ClassVar[tuple[str, ...]] = ()
    running: ClassVar = True
    embeddings: ClassVar[tuple[str, ...]] = ("embedding.tokens.weight",)
    baseline_kinds: ClassVar[tuple[type[Baseline], ...]]

    def __init__(self, tokenizer: Tokenizer, config: RunConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None else None
        data = prepare_documents(
            config.data, config.tokenizer, given=given, progress=progress, running=cls.running, specials=cls.specials
        )
        task = cls(data.tokenizer, config)
        train, valid = task.examples(data.train, data.train_files), task.examples(data.valid, data.valid_files)
        facts = tuple(task._facts(data, train, valid))
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=data.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        return cls(Tokenizer.load(vocabulary / SHARED), config)

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(vocabulary / SHARED)

    def model_fields(self) -> dict[str, int | str]:
        return {"vocab": self.tokenizer.vocab_size}

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; a word without a vector keeps its random one."""
        if self.word_vectors is not None:
            for name in self.embeddings:
                self.word_vectors.put_into(model, name, self.config)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        return WordVectors.given(self.config, self.tokenizer)

    @abstractmethod
    def examples(self, corpus: Corpus, files: Sequence[str]) -> Any:
        """The examples of an encoded corpus."""

    @abstractmethod
    def loss(self, model: Any, batch: Any, *, smoothing: float) -> tuple[Tensor, float]: ...

    @abstractmethod
    def scores(self, model: nn.Module, text: Any, *, progress: Count = no_count) -> list[Score]:
        """Score all of a text: the loss first; `progress` is told how many tokens were read."""

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return 0, self.tokenizer.vocab_size

    @abstractmethod
    def fit_baselines(self, train: Examples) -> list[Baseline]: ...

    @abstractmethod
    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]: ...

    @abstractmethod
    def samples(self, model: nn.Module, text: Any, decoding: DecodingConfig) -> tuple[Sample, ...]:
        """What the model predicts at some places of a text."""

    def task_facts(self) -> list[tuple[str, str]]:
        """What the report says of the task's own settings."""
        return []

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Score all the text; with `n_samples`, show what is predicted at some places of it."""
        scores = self.scores(model, examples)
        with torch.inference_mode():
            return Validation.of(scores, self.samples(model, examples, decoding) if n_samples else ())

    def read(self, files: Sequence[str], options: Options) -> Any:
        """Read text to be scored, and encode it."""
        data = options.data or self.config.data
        return self.examples(encode_documents(files, data, self.tokenizer, progress=options.progress), files)

    def notes(self, text: Any) -> tuple[str, ...]:
        """What a reader of a text's scores should know."""
        return tuple(scored_notes(text.corpus, text.files))

    @cached_property
    def vocabulary_signature(self) -> str:
        """What the signatures of scores say that compare under one vocabulary only."""
        return f"vocabulary:{self.tokenizer.fingerprint()[:8]}"

    def _facts(self, data: DocumentDataset, train: Any, valid: Any) -> list[tuple[str, str]]:
        """What the report before the first step says of the data."""
        n_documents, tokenizer = data.train.facts["n_documents"], self.tokenizer
        documents = f"{n_documents:,} document{'s' if n_documents != 1 else ''}"
        facts = [
            ("training", f"{train.n_tokens:,} tokens, {documents}, {train.about_size()}"),
            ("validation", ", ".join(filter(None, (f"{valid.n_tokens:,} tokens", data.held_out)))),
            ("vocabulary", f"{tokenizer.vocab_size:,} tokens ({tokenizer.kind})"),
            *self.task_facts(),
            ("batches", train.about_batches()),
            *data.notes,
        ]
        if tokenizer.loss:
            facts.append(("tokenizer loss", tokenizer.loss))
        if self.word_vectors is not None:
            facts.append(("vectors", self.word_vectors.about("words")))
        return facts
