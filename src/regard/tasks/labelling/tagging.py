"""Sequence tagging: a tag for each word, predicted at the word's first token (Devlin et al. 2019, 5.3), or for each vector.

A sentence that is too long to be read at once is read in segments of whole words when it is tagged or scored, so that
every word has a tag; so is a sequence of vectors. For training it was cut.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.pipeline.corpus import Corpus
from regard.errors import UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.constant import MajorityTag
from regard.evaluation.baselines.nearest_mean import NearestMean
from regard.evaluation.baselines.tag_lexicon import TagLexicon
from regard.evaluation.classification import accuracy
from regard.evaluation.entities import are_entities, entity_report, entity_scores, tag_report, tag_statistics
from regard.evaluation.intervals import Interval, clustered_share
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Floats, Statistics
from regard.tasks.baseline_inputs import sequences
from regard.tasks.class_evaluation import softmax
from regard.tasks.evaluation import Evaluation, Section
from regard.tasks.labelling.base import LabellingTask, LabelOptions
from regard.tasks.labelling.examples import (
    Logits,
    SequenceBatch,
    SequenceExamples,
    Sequences,
    TokenSequences,
    VectorSequences,
)
from regard.tasks.labelling.inputs import encode_vectors
from regard.tasks.labelling.words import Words, WordSequences
from regard.tasks.options import Count, no_count
from regard.tasks.results import Result
from regard.tasks.spec import TASKS
from regard.tasks.task import Examples, Indices

NOTHING = -1  # the target of a token at which nothing is predicted


@dataclass(frozen=True, kw_only=True, repr=False)
class TaggedVectors(Result):
    """The likeliest tag of each vector of a sequence and its probability; in how many segments it was read."""

    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    n_segments: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """What each tagged thing is called: a vector by its number, from 0."""
        return tuple(map(str, range(len(self.tags))))

    @property
    def truncation(self) -> str:
        return "read in parts" if self.n_segments > 1 else ""

    def lines(self, *, top: int = 0) -> list[str]:
        return [f"{name}\t{tag}" for name, tag in zip(self.names, self.tags, strict=True)]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"tags": " ".join(self.tags)}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        return {"tags": self.tags, "probabilities": self.probabilities, "parts": self.n_segments}


@dataclass(frozen=True, kw_only=True, repr=False)
class TaggedText(TaggedVectors):
    """The same of the words of a sentence."""

    words: Words

    @property
    def names(self) -> tuple[str, ...]:
        return self.words

    def lines(self, *, top: int = 0) -> list[str]:
        return [*super().lines(top=top), ""]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"text": " ".join(self.words), **super().cells(top=top)}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        return {"words": self.words, **super().to_json(top=top)}


class TaggingTask(LabellingTask):
    """The task of tagging."""

    spec: ClassVar = TASKS["tag"]
    label: ClassVar = "tags"
    n_specials: ClassVar = 2
    cuts: ClassVar = False
    ngrams: ClassVar = (1, 1)

    def targets(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """The tag of each word at its first token, or of each vector, (B, length), and -1 elsewhere."""
        targets = np.full((len(indices), length), NOTHING, np.int64)
        for row, index in enumerate(indices.tolist()):
            tags = corpus.ragged["tags"][index]
            if self.tokenizer is None:
                targets[row, : len(tags)] = tags
            else:
                targets[row, 1 + corpus.ragged["firsts"][index].astype(np.int64)] = tags
        return torch.from_numpy(targets)

    def loss(self, model: Any, batch: SequenceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy of the tags, summed, and their number."""
        assert batch.targets is not None
        targets = batch.targets.flatten()
        places = (targets != NOTHING).nonzero()[:, 0]
        logits = self.forward(model, batch).flatten(0, 1)
        logits = logits.index_select(0, places.to(logits.device))
        return self.loss_of(logits, targets[places], smoothing=smoothing)

    def loss_of(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        wanted = targets.to(logits.device)
        return F.cross_entropy(logits.float(), wanted, label_smoothing=smoothing, reduction="sum"), len(targets)

    def costs(self, model: Any, batch: SequenceBatch) -> Floats:
        """The loss of the tags of each sequence, their number, and how many are predicted right: (B, 3)."""
        assert batch.targets is not None
        logits, targets = self.forward(model, batch).float().cpu(), batch.targets
        losses = (
            F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=NOTHING, reduction="none").double().sum(1)
        )
        counts = (targets != NOTHING).sum(1), (logits.argmax(2) == targets).sum(1)
        return torch.stack((losses, *counts), dim=1).numpy()

    def sequences(self, corpus: Corpus) -> Sequences:
        if self.tokenizer is None:
            return super().sequences(corpus)
        return WordSequences.of_corpus(corpus, self.tokenizer, longest=self.longest)

    def encode(self, inputs: Sequence[Any], options: LabelOptions) -> Sequences:
        if self.tokenizer is None:
            return encode_vectors(inputs, options.texts_b, n_features=self.table.n_features, longest=sys.maxsize)
        if any(options.texts_b):
            raise UsageError("A sentence whose words are tagged has no second text.", "Leave the second texts out.")
        return WordSequences.of_inputs(inputs, self.tokenizer, longest=self.longest)

    def given(self, examples: SequenceExamples, row: int) -> Any:
        if isinstance(examples.sequences, WordSequences):
            return examples.sequences.words(row)
        return super().given(examples, row)

    def logits(self, model: nn.Module, sequences: Sequences, *, progress: Count = no_count) -> list[Logits]:
        """The logits of each word's or vector's tags, (N, n_tags), of each sequence; `progress` is told of segments."""
        if isinstance(sequences, VectorSequences):
            numbers, cut_vectors = sequences.segmented(self.longest)
            parts = super().logits(model, cut_vectors, progress=progress)
            own = groupby(zip(numbers, parts, strict=True), key=lambda pair: pair[0])
            return [np.concatenate([part for _, part in pairs]) for _, pairs in own]
        assert isinstance(sequences, WordSequences)
        ids, firsts = sequences.texts, sequences.firsts
        segments = [(row, segment) for row in range(len(ids)) for segment in sequences.segments(row)]
        cut = TokenSequences([ids[row][one.start : one.end] for row, one in segments], None, sequences.tokenizer)
        found: list[list[Logits]] = [[np.empty((0, self.table.n_outputs), np.float32)] for _ in range(len(ids))]
        for (row, one), logits in zip(segments, super().logits(model, cut, progress=progress), strict=True):
            places = np.asarray(firsts[row][one.first : one.last], np.int64) - one.start
            found[row].append(logits[1 + places])  # behind the start token
        return [np.concatenate(own) for own in found]

    def scores(self, corpus: Corpus, logits: Sequence[Logits]) -> list[Score]:
        """The loss and the accuracy over words or vectors; F1, precision and recall of entities where tags mark them."""
        words = np.concatenate(logits)
        gold = np.asarray(corpus.ragged["tags"].values, np.int64)
        loss, n_words = self.loss_of(torch.from_numpy(words), torch.from_numpy(gold), smoothing=0.0)
        scores = [
            Score(name="loss", value=float(loss) / n_words, signature=f"unit:{self.weighed.removesuffix('s')}"),
            replace(
                accuracy(gold, words.argmax(1), unit=self.weighed), interval=_interval(words.argmax(1) == gold, logits)
            ),
        ]
        if not are_entities(self.table.labels):
            return scores
        return [*scores, *entity_scores(self.expected(corpus), [self._named(own.argmax(1)) for own in logits])]

    @property
    def baseline_kinds(self) -> tuple[type[Baseline], ...]:
        return MajorityTag, TagLexicon if self.tokenizer is not None else NearestMean

    @property
    def baseline_sizes(self) -> tuple[int, int]:
        return self.table.n_features, self.table.n_outputs

    def fit_baselines(self, train: Examples) -> list[Baseline]:
        """The most frequent tag of all; that of each word, or the nearest mean of each vector."""
        assert isinstance(train, SequenceExamples)
        corpus, n_tags = train.corpus, len(self.table.labels)
        rows = self.features.rows(corpus)
        tags, majority = (
            sequences(corpus.ragged["tags"], rows).values.astype(np.int64),
            MajorityTag.fit(self.table.counts),
        )
        if self.tokenizer is None:
            return [majority, NearestMean.fit(self.features.vectors(corpus, rows), tags, n_tags)]
        return [majority, TagLexicon.fit(self.features.words(corpus, rows), tags, n_tags)]

    def baseline_logits(self, baseline: Baseline, corpus: Corpus, rows: Indices) -> Iterable[Logits]:
        lengths = corpus.ragged["tags"].lengths[rows]
        if isinstance(baseline, TagLexicon):
            logits = baseline.logits(self.features.words(corpus, rows))
        elif isinstance(baseline, NearestMean):
            logits = baseline.logits(self.features.vectors(corpus, rows))
        else:
            assert isinstance(baseline, MajorityTag)
            logits = baseline.repeated(int(lengths.sum()))
        return np.split(logits, np.cumsum(lengths)[:-1])

    def expected(self, corpus: Corpus) -> list[tuple[str, ...]]:
        tags = corpus.ragged["tags"]
        return [self._named(tags[row]) for row in range(len(tags))]

    def result(self, sequences: Sequences, row: int, logits: Logits) -> TaggedVectors:
        shares = softmax(logits)
        tags, probabilities = self._named(shares.argmax(1)), tuple(map(float, shares.max(1, initial=0.0)))
        if isinstance(sequences, VectorSequences):
            n_segments = len(sequences.segments(row, self.longest))
            return TaggedVectors(tags=tags, probabilities=probabilities, n_segments=n_segments)
        assert isinstance(sequences, WordSequences)
        words, n_segments = sequences.words(row), len(sequences.segments(row))
        return TaggedText(words=words, tags=tags, probabilities=probabilities, n_segments=n_segments)

    @property
    def weighed(self) -> str:
        """What has tags, in the plural."""
        return "words" if self.tokenizer is not None else "vectors"

    def sample(self, expected: Sequence[str], result: TaggedVectors) -> tuple[str, str]:
        return " ".join(expected), " ".join(result.tags)

    def report(self, found: Evaluation) -> Evaluation:
        """Add what each sentence adds to the metrics, the scores of each kind of entity, or of each tag, and the columns
        that conlleval reads."""
        results = [one for one in found.predictions if isinstance(one, TaggedVectors)]
        predicted = [one.tags for one in results]
        if are_entities(self.table.labels):
            report = entity_report(found.expected, predicted)
        else:
            report = tag_report(found.expected, predicted, unit=self.weighed)
        return replace(
            found,
            statistics=tuple(self._statistics(found.expected, predicted)),
            sections=(
                *found.sections,
                Section(name="classes", table=report.table(), data=report.to_json()),
                Section(name="labels", table=None, data=list(self.table.labels)),
            ),
            output=tuple(_columns(found.expected, results)),
        )

    def _statistics(
        self, expected: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
    ) -> Iterator[Statistics]:
        """What each sentence adds; how many entities a run predicts makes its score no other than that of another run."""
        for one in tag_statistics(expected, predicted, labels=self.table.labels, unit=self.weighed):
            fields = (field for field in one.signature.split("|") if not field.startswith("predicted:"))
            yield replace(one, signature="|".join(fields))

    def label_facts(self) -> list[tuple[str, str]]:
        return self.table.facts("tag")

    def _named(self, numbers: Any) -> tuple[str, ...]:
        return tuple(self.table.labels[int(number)] for number in numbers)


def _interval(correct: npt.NDArray[np.bool_], sequences: Sequence[Logits]) -> Interval | None:
    """The interval of the accuracy: words of one sentence are right or wrong together more often than others are."""
    lengths = np.array([len(own) for own in sequences])
    own = np.bincount(np.repeat(np.arange(len(lengths)), lengths), weights=correct, minlength=len(lengths))
    return clustered_share(own, lengths)


def _columns(expected: Sequence[Sequence[str]], results: Sequence[TaggedVectors]) -> Iterator[str]:
    """A word, its tag and the predicted one on each line, a blank line behind each sentence; of vectors their numbers."""
    for gold, one in zip(expected, results, strict=True):
        yield from ("\t".join(cells) for cells in zip(one.names, gold, one.tags, strict=True))
        yield ""
