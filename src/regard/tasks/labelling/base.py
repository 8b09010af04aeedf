"""Labelling: what classification, regression, similarity and tagging share, from files to scores.

Each task's own file says what its targets are, what an error costs and what becomes of the logits. A model is called as
`model(inputs, lengths, segments)` and nothing else of it is used, so that a network of the caller's own serves too.
"""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn

from regard.config import DataConfig, DecodingConfig, RunConfig
from regard.data import batching
from regard.data.labelled.dataset import LabelledDataset, encode_labelled, prepare_labelled
from regard.data.labelled.vectors import are_vectors
from regard.data.pipeline.corpus import Corpus
from regard.data.text.tokenizer import SHARED, Tokenizer
from regard.errors import ConfigError, UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats
from regard.models.presets import FOR_FEW_TEXTS, find_preset
from regard.tasks.baseline_inputs import in_chunks, ngram_order
from regard.tasks.baselines import score_baselines
from regard.tasks.batches import read_in_batches
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelling.baseline_features import BaselineFeatures, input_lengths
from regard.tasks.labelling.examples import (
    Flags,
    Logits,
    Rows,
    SequenceBatch,
    SequenceExamples,
    Sequences,
    TokenSequences,
    VectorSequences,
)
from regard.tasks.labelling.inputs import encode_pairs, encode_vectors
from regard.tasks.labelling.labels import LabelTable
from regard.tasks.labelling.report import evaluation_notes, preparation_facts
from regard.tasks.max_length import longest_text, refuse_short
from regard.tasks.offers import device_of
from regard.tasks.options import Count, Options, Progress, no_count
from regard.tasks.probe_example import ProbeExample, as_text, probe_rows
from regard.tasks.reading import Positions, Reading, read_positions
from regard.tasks.results import Result, Results
from regard.tasks.spec import TaskSpec
from regard.tasks.task import Examples, Indices, Prepared, Validation, sample_rows
from regard.tasks.word_vectors import WordVectors

ALL = "all"  # in place of a split
FEW = 100_000  # texts; more need less dropout
SAMPLE_CHARACTERS = 200  # of each text that a validation shows


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """How a run over labelled sequences is used; texts_b: the second text of each input, empty where there is none."""

    texts_b: tuple[str, ...] = ()


class LabellingTask(ABC):
    """A task over labelled sequences.

    label:       what is predicted, as the data has it: class, number or tags
    n_specials:  how many special tokens stand around the longest example: <start> text <end> second <end>
    cuts:        whether an example that is too long is cut at its end where it is predicted or scored
    ngrams:      how long n-grams of tokens are that baselines read, and how long those of characters or bytes
    """

    spec: ClassVar[TaskSpec]
    options: ClassVar = LabelOptions
    label: ClassVar[str]
    n_specials: ClassVar = 3
    cuts: ClassVar = True
    ngrams: ClassVar = (2, 5)

    def __init__(self, tokenizer: Tokenizer | None, config: RunConfig, table: LabelTable) -> None:
        self.tokenizer = tokenizer  # None where sequences are of vectors
        self.config = config
        self.table = table
        self.unit = self.spec.unit if tokenizer is not None else "sequences"
        self.n_around = self.n_specials if tokenizer is not None else 0
        self.longest = longest_text(config, n_specials=self.n_around)  # of an example, special tokens not counted

    @classmethod
    def prepare(cls, config: RunConfig, *, vocabulary: Path | None, progress: Progress) -> Prepared:
        of_vectors = are_vectors((*config.data.train, *config.data.valid), config.tokenizer)
        given = Tokenizer.load(vocabulary / SHARED) if vocabulary is not None and not of_vectors else None
        known = LabelTable.find(vocabulary, task=cls.spec.name) if vocabulary is not None else None
        longest = longest_text(config, n_specials=0 if of_vectors else cls.n_specials)
        found = prepare_labelled(
            replace(config.data, max_length=longest),
            config.tokenizer,
            kind=cls.label,
            given=given,
            labels=(known.labels or None) if known is not None else None,
            progress=progress,
        )
        task = cls(found.tokenizer, config, cls.table_of(found))
        train, valid = task.examples(found.train, found.train_files), task.examples(found.valid, found.valid_files)
        facts = preparation_facts(task, found, train, valid)
        suited = task.suited_fields(len(train))
        prepared = Prepared(task=task, train=train, valid=valid, facts=facts, hashes=found.hashes, suited=suited)
        if of_vectors:
            example = f"--data FILE{Path(config.data.train[0]).suffix}"
            return replace(prepared, example=example, throughput_unit=task.weighed, batch_unit="vectors")
        return replace(prepared, example='"…" --text-b "…"') if task.table.pairs else prepared

    @property
    def weighed(self) -> str:
        """What the weight of a loss is a number of, in the plural."""
        return self.spec.throughput_unit if self.tokenizer is not None else "sequences"

    @classmethod
    def load(cls, config: RunConfig, vocabulary: Path) -> Self:
        table = LabelTable.load(vocabulary, task=cls.spec.name)
        return cls(None if table.n_features else Tokenizer.load(vocabulary / SHARED), config, table)

    def save(self, vocabulary: Path) -> None:
        vocabulary.mkdir(parents=True, exist_ok=True)
        if self.tokenizer is not None:
            self.tokenizer.save(vocabulary / SHARED)
        self.table.save(vocabulary, task=self.spec.name)

    def model_fields(self) -> dict[str, int | str]:
        vocab = self.tokenizer.vocab_size if self.tokenizer is not None else 0
        features = {"n_features": self.table.n_features} if self.table.n_features else {}
        return {"vocab": vocab, "n_outputs": self.table.n_outputs, "head": self.spec.head, **features}

    def suited_fields(self, n_examples: int) -> dict[str, Any]:
        """Fields of a BERT that suit so many examples, where nobody chose them; measured in docs/LOG.md."""
        preset = self.config.model.preset
        if self.tokenizer is None or self.spec.head == "tokens" or not preset or find_preset(preset).family != "bert":
            return {}
        fields = dict(FOR_FEW_TEXTS)
        if self.tokenizer.kind != "words" or n_examples >= FEW:
            del fields["dropout"]
        return fields

    def initialise(self, model: nn.Module) -> None:
        """Put given word vectors into the embedding; a word without a vector keeps its random one."""
        refuse_short(model, self.longest, n_specials=self.n_around)
        if self.word_vectors is not None:
            self.word_vectors.put_into(model, "embedding.tokens.weight", self.config)

    @cached_property
    def word_vectors(self) -> WordVectors | None:
        """The given vectors, read when first asked for."""
        return WordVectors.given(self.config, self.tokenizer)

    def loss(self, model: Any, batch: SequenceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of a batch, and their weight."""
        assert batch.targets is not None
        return self.loss_of(self.forward(model, batch), batch.targets, smoothing=smoothing)

    def costs(self, model: Any, batch: SequenceBatch) -> Floats:
        """The loss of each example, and its weight: (B, 2)."""
        logits, targets = self.forward(model, batch).cpu(), batch.targets
        assert targets is not None
        found = (
            self.loss_of(logits[row : row + 1], targets[row : row + 1], smoothing=0.0) for row in range(len(targets))
        )
        return np.array([(float(loss), weight) for loss, weight in found])

    def forward(self, model: Any, batch: SequenceBatch) -> Tensor:
        """The logits of a batch: (B, N), or (B, T, N) of tokens."""
        logits: Tensor = model(batch.inputs, batch.lengths, batch.segments)
        by_token, n_outputs = self.spec.head == "tokens", self.table.n_outputs
        wanted = (*batch.inputs.shape[: 2 if by_token else 1], n_outputs)
        if logits.shape != wanted:
            raise ConfigError(
                f"The network returned {tuple(logits.shape)} for a batch, and {wanted} was expected: "
                f"{n_outputs:,} numbers for each {'token' if by_token else 'sequence'}.",
                "Let its forward(inputs, lengths, segments) return that.",
            )
        return logits

    def logits(self, model: nn.Module, sequences: Sequences, *, progress: Count = no_count) -> list[Logits]:
        """The logits of each sequence, (N,), or (T, N) without those of padding, in their order."""
        device = device_of(model)

        def read(indices: Indices) -> list[Logits]:
            logits = self.forward(model, sequences.batch(indices, device)).float().cpu().numpy()
            lengths = sequences.lengths[indices].tolist()
            # A view would keep the padding.
            return [own if own.ndim == 1 else own[:length].copy() for own, length in zip(logits, lengths, strict=True)]

        batches = batching.fixed_batches(sequences.lengths, self.config.training.batch_tokens)
        return read_in_batches(batches, read, progress=progress)

    def validate(self, model: nn.Module, examples: Examples, decoding: DecodingConfig, *, n_samples: int) -> Validation:
        """Score all examples; with `n_samples`, show a few."""
        assert isinstance(examples, SequenceExamples)
        logits = self.logits(model, examples.sequences)
        rows = sample_rows(len(examples)) if n_samples else ()
        expected = self.expected(examples.corpus) if rows else []
        found = ((row, self.result(examples.sequences, row, logits[row])) for row in rows)
        shown = ((examples.text(row), *self.sample(expected[row], result)) for row, result in found)
        samples = ((_shortened(text), _shortened(wanted), _shortened(said)) for text, wanted, said in shown)
        return Validation.of(self.scores(examples.corpus, logits), samples)

    def predict(self, model: nn.Module, inputs: Sequence[Any], options: LabelOptions) -> Results[Any]:
        """Label each text, or each sequence of vectors (T, F), in their order."""
        sequences = self.encode(inputs, options)
        return self.results(sequences, self.logits(model, sequences, progress=partial(options.progress, "reading")))

    def reading(self, model: Any, text: Any, result: Result, options: LabelOptions) -> Reading:
        """A text, with one that is read with it, or a sequence of vectors, to look into."""
        batch = self.encode([text], options).batch(np.array([0]), device_of(model))
        length = int(batch.lengths[0])
        if self.tokenizer is None:
            own = Positions(name="vector", labels=tuple(map(str, range(length))))
        else:
            shown = text if isinstance(text, str) else " ".join(text)
            own = read_positions(self.tokenizer, batch.inputs[0, :length].tolist(), shown, name="token")
        return Reading(forward=lambda: self.forward(model, batch), places=(("", own),), outputs=self.output_name)

    def probes(self, examples: Examples, n: int) -> list[ProbeExample]:
        """Some examples, to be labelled while the model learns."""
        assert isinstance(examples, SequenceExamples)
        expected = self.expected(examples.corpus)
        return [
            ProbeExample(
                title=examples.text(row),
                input=self.given(examples, row),
                text_b=examples.corpus.ragged["text_b"].text(row) if self.table.pairs else "",
                expected=as_text(expected[row]),
            )
            for row in probe_rows(examples.lengths, n)
        ]

    def given(self, examples: SequenceExamples, row: int) -> Any:
        """What `predict` takes of an example: its first text, or its vectors."""
        if isinstance(examples.sequences, VectorSequences):
            return examples.sequences.vectors(row)
        return examples.corpus.ragged["text"].text(row)

    def output_name(self, number: int) -> str:
        """What a number of the logits stands for."""
        return self.table.labels[number] if self.table.labels else "value"

    def evaluate(self, model: nn.Module, files: Sequence[str], options: LabelOptions) -> Evaluation:
        """Label a test set, and score it by the loss and the task's metrics."""
        examples = self.read(files, options)
        began = time.perf_counter()
        logits = self.logits(model, examples.sequences, progress=partial(options.progress, "reading"))
        seconds = time.perf_counter() - began
        found = Evaluation(
            scores=tuple(self.scores(examples.corpus, logits)),
            count=len(examples),
            unit=self.unit,
            seconds=seconds,
            predictions=self.results(examples.sequences, logits),
            expected=tuple(self.expected(examples.corpus)),
            baselines=score_baselines(self, options.baselines, examples),
            notes=evaluation_notes(examples, self.longest),
        )
        return self.report(found)

    @property
    @abstractmethod
    def baseline_kinds(self) -> tuple[type[Baseline], ...]: ...

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return 2 * self.table.n_features, self.table.n_outputs  # the mean and the deviation of each

    def score_baseline(self, baseline: Baseline, examples: Examples, *, n_samples: int) -> list[Score]:
        """Score all examples."""
        assert isinstance(examples, SequenceExamples)
        corpus, lengths = examples.corpus, input_lengths(examples.corpus)
        return self.scores(
            corpus, [own for rows in in_chunks(lengths) for own in self.baseline_logits(baseline, corpus, rows)]
        )

    @cached_property
    def features(self) -> BaselineFeatures:
        """What baselines read of the examples."""
        few, many = self.ngrams
        order = ngram_order(self.tokenizer.vocab_size, few=few, many=many) if self.tokenizer is not None else 1
        return BaselineFeatures(order=order, pairs=self.table.pairs, n_features=self.table.n_features)

    def results(self, sequences: Sequences, logits: Sequence[Logits]) -> Results[Any]:
        """What logits say of all sequences."""
        return Results(self.result(sequences, row, own) for row, own in enumerate(logits))

    def read(self, files: Sequence[str], options: Options) -> SequenceExamples:
        """Read examples to be scored: where a column tells splits apart, those of one split."""
        data, split = test_split(options.data or self.config.data, options.split)
        corpus = encode_labelled(
            files,
            replace(data, max_length=self.longest if self.cuts else sys.maxsize),
            self.tokenizer,
            kind=self.label,
            labels=self.table.labels,
            split=split,
            progress=options.progress,
        )
        return self.examples(corpus, files)

    def examples(self, corpus: Corpus, files: Sequence[str]) -> SequenceExamples:
        """The examples of an encoded corpus."""
        return SequenceExamples(
            corpus,
            files,
            self.sequences(corpus),
            targets=partial(self.targets, corpus),
            batch_tokens=self.config.training.batch_tokens,
            seed=self.config.seed,
        )

    def sequences(self, corpus: Corpus) -> Sequences:
        """The sequences of an encoded corpus."""
        cut = corpus.numbers["cut"]
        if self.tokenizer is None:
            return VectorSequences(corpus.ragged["vectors"], self.table.n_features, cut=cut)
        return self.paired(corpus.ragged["ids"], corpus.ragged["ids_b"], self.tokenizer, cut=cut)

    def encode(self, inputs: Sequence[Any], options: LabelOptions) -> Sequences:
        """The sequences of what is given to predict."""
        if self.tokenizer is None:
            return encode_vectors(inputs, options.texts_b, n_features=self.table.n_features, longest=self.longest)
        found = encode_pairs(inputs, options.texts_b, self.tokenizer, pairs=self.table.pairs, longest=self.longest)
        return self.paired(found.ids, found.ids_b, self.tokenizer, cut=[n_lost > 0 for n_lost in found.n_lost])

    def paired(self, texts: Rows, texts_b: Rows, tokenizer: Tokenizer, *, cut: Flags) -> Sequences:
        """Encoded texts with their second ones, as a model reads them: as one sequence."""
        return TokenSequences(texts, texts_b, tokenizer, cut=cut)

    @classmethod
    def table_of(cls, data: LabelledDataset) -> LabelTable:
        """The labels of the training data, or the scale of its numbers."""
        return LabelTable.of(data)

    def label_facts(self) -> list[tuple[str, str]]:
        """What the report says of the labels."""
        return self.table.facts("class")

    @abstractmethod
    def targets(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """What is to be predicted of some examples: (B,), or (B, length) of their tokens."""

    @abstractmethod
    def loss_of(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        """The sum of the losses of logits (B, N), wherever they are, where targets (B,) are right, and their weight."""

    @abstractmethod
    def scores(self, corpus: Corpus, logits: Sequence[Logits]) -> list[Score]:
        """Score the logits of all examples: the loss first, then the metrics."""

    @abstractmethod
    def fit_baselines(self, train: Examples) -> list[Baseline]: ...

    @abstractmethod
    def baseline_logits(self, baseline: Baseline, corpus: Corpus, rows: Indices) -> Iterable[Logits]:
        """What a baseline says of some examples: logits of each as of a model, (N,) or (T, N)."""

    @abstractmethod
    def expected(self, corpus: Corpus) -> Sequence[Any]:
        """What is right for each example: its class, its number, its tags."""

    @abstractmethod
    def result(self, sequences: Sequences, row: int, logits: Logits) -> Result:
        """What logits (N,), or (T, N) of words, say of one sequence."""

    @abstractmethod
    def sample(self, expected: Any, result: Any) -> tuple[str, str]:
        """What was expected and what was predicted, as a validation shows them."""

    @abstractmethod
    def report(self, found: Evaluation) -> Evaluation:
        """Add statistics, further tables and lines to write: from what was expected, and what was predicted."""


def test_split(data: DataConfig, split: str) -> tuple[DataConfig, str]:
    """How a test set is read, and which split of it: test by default, all of it where no column tells splits apart."""
    if split == ALL:
        return replace(data, split_column=""), ""
    if split and not data.split_column:
        raise UsageError(
            f"No column says which rows are of the split '{split}'.", "Name the column with --split-column."
        )
    return data, split or "test"


def _shortened(text: str) -> str:
    return text if len(text) <= SAMPLE_CHARACTERS else text[:SAMPLE_CHARACTERS] + "…"
