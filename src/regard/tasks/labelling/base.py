"""What the tasks over labelled sequences share: preparing, saving, the report, reading in batches, the order of a score.

Each task's own file says what its labels are, what an error costs and what becomes of an answer. A model is called as
`model(inputs, lengths, segments)` and nothing else of it is used, so that a network of the caller's own serves too.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data import batching
from regard.data.labelled.dataset import LabelledDataset, encode_labelled, prepare_labelled
from regard.data.labelled.storage import cut_sentence
from regard.data.labelled.vectors import are_vectors
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.errors import ConfigError
from regard.evaluation.scores import Score
from regard.models.presets import positions_of
from regard.tasks.labelling.examples import (
    Outputs,
    SequenceBatch,
    SequenceExamples,
    Sequences,
    corpus_sequences,
    read_in_batches,
)
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.max_length import longest_text, refuse_short
from regard.tasks.spec import TaskSpec
from regard.tasks.task import Examples, Indices, Prepared, Progress, Validation
from regard.tasks.word_vectors import WordVectors

N_SAMPLES = 3  # shown at a validation
SAMPLE_CHARACTERS = 200  # of each of their texts


class SequenceTask(ABC):
    """A task over labelled sequences.

    n_specials:  how many special tokens stand around the longest example
    splits:      whether a text that is too long is read in parts when it is scored, and not cut
    """

    spec: ClassVar[TaskSpec]
    n_specials: int
    splits = False

    def __init__(self, tokenizer: Tokenizer | None, config: RunConfig, table: LabelTable) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.table = table
        self.unit = self.spec.unit if tokenizer is not None else "sequences"  # of vectors

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        of_vectors = are_vectors((*config.data.train, *config.data.valid), config.tokenizer)
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None and not of_vectors else None
        known = LabelTable.find(vocabulary, task=cls.spec.name) if vocabulary is not None else None
        longest = longest_text(config, n_specials=0 if of_vectors else cls.n_specials)
        found = prepare_labelled(
            replace(config.data, max_length=longest),
            config.tokenizer,
            kind=cls.spec.name,
            given=given,
            labels=(known.labels or None) if known is not None else None,
            progress=progress,
        )
        task = cls(found.tokenizer, config, LabelTable.of(found))
        train, valid = task.examples(found.train, found.train_files), task.examples(found.valid, found.valid_files)
        facts = (*task._data_facts(found, train, valid), *task.label_facts(), *task._model_facts(), *found.notes)
        return Prepared(task=task, train=train, valid=valid, facts=facts, hashes=found.hashes)

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        table = LabelTable.load(vocabulary, task=cls.spec.name)
        return cls(None if table.n_features else Tokenizer.load(vocabulary / SHARED), config, table)

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        if self.tokenizer is not None:
            self.tokenizer.save(vocabulary / SHARED)
        self.table.save(vocabulary, task=self.spec.name)

    @property
    def n_outputs(self) -> int:
        """How many numbers the model says of a sequence, or of a token."""
        return len(self.table.labels) or 1

    def sizes(self) -> dict[str, int | str]:
        sizes = {"vocab": self.tokenizer.vocab_size if self.tokenizer is not None else 0, "n_outputs": self.n_outputs}
        features = {"n_features": self.table.n_features} if self.table.n_features else {}
        return {**sizes, "head": self.spec.head, **features}

    @property
    def n_around(self) -> int:
        """How many special tokens stand around an example; vectors have none."""
        return self.n_specials if self.tokenizer is not None else 0

    @cached_property
    def longest(self) -> int:
        """The most tokens (or vectors) of an example that are read, special tokens not counted."""
        return longest_text(self.config, n_specials=self.n_around)

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; a word without a vector keeps its random one."""
        refuse_short(model, self.longest, n_specials=self.n_around)
        if self.word_vectors is not None:
            self.word_vectors.put_into(model, "embedding.tokens.weight", self.config)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        path = self.config.tokenizer.vectors
        return WordVectors.read(path, self.tokenizer) if path and self.tokenizer is not None else None

    def loss(self, model: Any, batch: SequenceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of what the answers of a batch cost, and their weight."""
        assert batch.labels is not None
        return self.loss_of(self.answer(model, batch), batch.labels, smoothing=smoothing)

    def answer(self, model: Any, batch: SequenceBatch) -> Tensor:
        """What a model says: (B, N), or (B, T, N) of tokens."""
        outputs: Tensor = model(batch.inputs, batch.lengths, batch.segments)
        wanted = (*batch.inputs.shape[: 2 if self.spec.head == "tokens" else 1], self.n_outputs)
        if outputs.shape != wanted:
            raise ConfigError(
                f"The network returned {tuple(outputs.shape)} for a batch, and {wanted} was expected: "
                f"{self.n_outputs:,} numbers for each {'token' if self.spec.head == 'tokens' else 'sequence'}.",
                "Let its forward(inputs, lengths, segments) return that.",
            )
        return outputs

    def outputs(
        self, model: Any, examples: SequenceExamples, *, progress: Callable[[int], None] | None = None
    ) -> list[Outputs]:
        """What a model says of each example, in their order."""
        return self.read_sequences(model, examples.sequences, progress=progress)

    def read_sequences(
        self, model: Any, sequences: Sequences, *, progress: Callable[[int], None] | None = None
    ) -> list[Outputs]:
        """What a model says of each sequence, (N,) or (T, N), in their order."""
        return read_in_batches(
            sequences,
            partial(self.answer, model),
            batch_tokens=self.config.training.batch_tokens,
            device=next(model.parameters()).device,
            progress=progress,
        )

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_decoded: int) -> Validation:
        """Score all examples; with `n_decoded`, show a few."""
        assert isinstance(examples, SequenceExamples)
        outputs = self.outputs(model, examples)
        loss, *others = self.scores_of(examples, outputs)
        rows = range(0, len(examples), max(1, len(examples) // N_SAMPLES))[:N_SAMPLES] if n_decoded else ()
        shown = ((examples.text(row), *self.sample(examples, row, outputs[row])) for row in rows)
        samples = tuple((_short(text), _short(expected), _short(found)) for text, expected, found in shown)
        return Validation(loss=loss.value, scores={score.name: score.value for score in others}, samples=samples)

    def read(
        self, files: Sequence[str], data: DataConfig, *, split: str = "test", progress: Progress
    ) -> SequenceExamples:
        """Read examples to be scored, as `data` says: where a column tells splits apart, those of one split."""
        corpus = encode_labelled(
            files,
            replace(data, max_length=sys.maxsize if self.splits else self.longest),
            self.tokenizer,
            kind=self.spec.name,
            labels=self.table.labels,
            split=split,
            progress=progress,
        )
        return self.examples(corpus, files)

    def scores(
        self, model: nn.Module, examples: SequenceExamples, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Score]:
        """Score a model on examples: the loss, then what the task is judged by."""
        return self.scores_of(examples, self.outputs(model, examples, progress=progress))

    def notes(self, examples: SequenceExamples) -> tuple[str, ...]:
        """What a reader of the scores should know."""
        corpus, files = examples.corpus, examples.files
        notes = [f"Left out: {sentence}." for sentence in bad_rows_of(corpus, files).sentences()]
        cut = cut_sentence(corpus, files, self.longest)
        return (*notes, f"Cut: {cut}.") if cut else tuple(notes)

    def examples(self, corpus: Corpus, files: Sequence[str]) -> SequenceExamples:
        """The examples of an encoded corpus."""
        return SequenceExamples(
            corpus,
            files,
            corpus_sequences(corpus, self.tokenizer),
            labels=partial(self.gold, corpus),
            batch_tokens=self.config.training.batch_tokens,
            seed=self.config.seed,
        )

    def label_facts(self) -> list[tuple[str, str]]:
        """What the report says of the labels."""
        return self.table.facts("class")

    @abstractmethod
    def gold(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """What is asked of some examples: (B,), or (B, length) of their tokens."""

    @abstractmethod
    def loss_of(self, outputs: Tensor, labels: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """What outputs (N, n_outputs), wherever they are, cost where labels (N,) are right, summed, and their weight."""

    @abstractmethod
    def scores_of(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Score]:
        """Score what was said of each example: the loss first."""

    @abstractmethod
    def answers(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Any]:
        """What was said of each example, as `predict` says it."""

    @abstractmethod
    def expected(self, examples: SequenceExamples) -> list[Any]:
        """What should have been said of each example: its label, its tags, its number."""

    @abstractmethod
    def sample(self, examples: SequenceExamples, row: int, output: Outputs) -> tuple[str, str]:
        """What was expected of an example, and what was said of it, as a validation shows them."""

    def _data_facts(
        self, found: LabelledDataset, train: SequenceExamples, valid: SequenceExamples
    ) -> list[tuple[str, str]]:
        order = train.order(0)
        unit, piece = self.unit, "tokens" if self.tokenizer is not None else "vectors"
        lengths = train.sequences.lengths
        facts = [
            ("training", f"{len(train):,} {unit}, {int(lengths.sum(dtype=np.int64)):,} {piece}"),
            ("validation", f"{len(valid):,} {unit}{', held out' if found.n_held_out else ''}"),
        ]
        if self.tokenizer is None:
            facts.append(("features", f"{self.table.n_features:,} a vector"))
        else:
            facts.append(("vocabulary", f"{self.tokenizer.vocab_size:,} tokens ({self.tokenizer.kind})"))
        padding = f"{batching.padding_share(lengths, order):.1%} padding"
        return [*facts, ("batches", f"{len(order):,} an epoch, {padding}")]

    def _model_facts(self) -> list[tuple[str, str]]:
        facts = []
        if self.longest < self.config.data.max_length:
            positions = f"the model has positions for {positions_of(self.config.model):,}"
            longest = f"{self.longest:,} vectors: {positions}"
            if self.tokenizer is not None:
                longest = f"{self.longest:,} tokens: {positions}, {self.n_specials} of them for special ones"
            facts.append(("longest", longest))
        if self.word_vectors is not None:
            facts.append(("vectors", self.word_vectors.about("words")))
        return facts


def _short(text: str) -> str:
    return text if len(text) <= SAMPLE_CHARACTERS else text[:SAMPLE_CHARACTERS] + "…"


def softmax(logits: Outputs) -> npt.NDArray[np.float64]:
    """Logits (…, N) to probabilities."""
    return torch.from_numpy(np.asarray(logits, np.float64)).softmax(-1).numpy()
