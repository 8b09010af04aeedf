"""Sequence tagging: a tag for each word, predicted at the word's first token (Devlin et al. 2019, 5.3).

A sentence that is too long to be read at once is read in segments of whole words when it is tagged or scored, so that
every word has a tag. For training it was cut.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.pipeline.corpus import Corpus
from regard.errors import UsageError
from regard.evaluation.classification import accuracy
from regard.evaluation.entities import are_entities, entity_report, entity_scores, tag_report, tag_statistics
from regard.evaluation.scores import Score
from regard.evaluation.sufficient_statistics import Statistics
from regard.tasks.class_evaluation import softmax
from regard.tasks.evaluation import Evaluation, Section
from regard.tasks.labelling.base import LabellingTask, LabelOptions
from regard.tasks.labelling.examples import Logits, SequenceBatch, Sequences, TokenSequences
from regard.tasks.labelling.words import Words, WordSequences
from regard.tasks.results import Result
from regard.tasks.spec import TASKS
from regard.tasks.task import Indices

NOTHING = -1  # the target of a token at which nothing is predicted


@dataclass(frozen=True, kw_only=True, repr=False)
class TaggedText(Result):
    """The words of a sentence, the likeliest tag of each and its probability; in how many segments it was read."""

    words: Words
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    n_segments: int = 1

    @property
    def truncation(self) -> str:
        return "read in parts" if self.n_segments > 1 else ""

    def lines(self, *, top: int = 0) -> list[str]:
        return [*(f"{word}\t{tag}" for word, tag in zip(self.words, self.tags, strict=True)), ""]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"text": " ".join(self.words), "tags": " ".join(self.tags)}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        facts = {"words": self.words, "tags": self.tags, "probabilities": self.probabilities}
        return {**facts, "parts": self.n_segments}


class TaggingTask(LabellingTask):
    """The task of tagging."""

    spec: ClassVar = TASKS["tag"]
    label: ClassVar = "tags"
    n_specials: ClassVar = 2
    cuts: ClassVar = False

    def targets(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """The tag of each word at its first token, (B, length), and -1 elsewhere."""
        targets = np.full((len(indices), length), NOTHING, np.int64)
        for row, index in enumerate(indices.tolist()):
            targets[row, 1 + corpus.ragged["firsts"][index].astype(np.int64)] = corpus.ragged["tags"][index]
        return torch.from_numpy(targets)

    def loss(self, model: Any, batch: SequenceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy of the words' tags, summed, and the number of words."""
        assert batch.targets is not None
        targets = batch.targets.flatten()
        places = (targets != NOTHING).nonzero()[:, 0]
        logits = self.forward(model, batch).flatten(0, 1)
        logits = logits.index_select(0, places.to(logits.device))
        return self.loss_of(logits, targets[places], smoothing=smoothing)

    def loss_of(self, logits: Tensor, targets: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        wanted = targets.to(logits.device)
        return F.cross_entropy(logits.float(), wanted, label_smoothing=smoothing, reduction="sum"), len(targets)

    def sequences(self, corpus: Corpus) -> WordSequences:
        assert self.tokenizer is not None
        return WordSequences.of_corpus(corpus, self.tokenizer, longest=self.longest)

    def encode(self, inputs: Sequence[Sequence[str] | str], options: LabelOptions) -> WordSequences:
        if any(options.texts_b):
            raise UsageError("A sentence whose words are tagged has no second text.", "Leave the second texts out.")
        assert self.tokenizer is not None
        return WordSequences.of_inputs(inputs, self.tokenizer, longest=self.longest)

    def logits(
        self, model: nn.Module, sequences: Sequences, *, progress: Callable[[int], None] = lambda done: None
    ) -> list[Logits]:
        """The logits of each word's tags, (words, n_tags), of each sentence; `progress` is told of segments."""
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
        """The loss and the accuracy over words; F1, precision and recall of entities where tags mark them."""
        words = np.concatenate(logits)
        gold = np.asarray(corpus.ragged["tags"].values, np.int64)
        loss, n_words = self.loss_of(torch.from_numpy(words), torch.from_numpy(gold), smoothing=0.0)
        scores = [
            Score(name="loss", value=float(loss) / n_words, signature="unit:word"),
            accuracy(gold, words.argmax(1), unit="words"),
        ]
        if not are_entities(self.table.labels):
            return scores
        return [*scores, *entity_scores(self.expected(corpus), [self._named(own.argmax(1)) for own in logits])]

    def expected(self, corpus: Corpus) -> list[tuple[str, ...]]:
        tags = corpus.ragged["tags"]
        return [self._named(tags[row]) for row in range(len(tags))]

    def result(self, sequences: Sequences, row: int, logits: Logits) -> TaggedText:
        assert isinstance(sequences, WordSequences)
        shares = softmax(logits)
        return TaggedText(
            words=sequences.words(row),
            tags=self._named(shares.argmax(1)),
            probabilities=tuple(float(share) for share in shares.max(1, initial=0.0)),
            n_segments=len(sequences.segments(row)),
        )

    def sample(self, expected: Sequence[str], result: TaggedText) -> tuple[str, str]:
        return " ".join(expected), " ".join(result.tags)

    def report(self, found: Evaluation) -> Evaluation:
        """Add what each sentence adds to the metrics, the scores of each kind of entity, or of each tag, and the columns
        that conlleval reads."""
        results = [one for one in found.predictions if isinstance(one, TaggedText)]
        predicted = [one.tags for one in results]
        make_report = entity_report if are_entities(self.table.labels) else tag_report
        report = make_report(found.expected, predicted)
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
        for one in tag_statistics(expected, predicted, labels=self.table.labels):
            fields = (field for field in one.signature.split("|") if not field.startswith("predicted:"))
            yield replace(one, signature="|".join(fields))

    def label_facts(self) -> list[tuple[str, str]]:
        return self.table.facts("tag")

    def _named(self, numbers: Any) -> tuple[str, ...]:
        return tuple(self.table.labels[int(number)] for number in numbers)


def _columns(expected: Sequence[Sequence[str]], results: Sequence[TaggedText]) -> Iterator[str]:
    """A word, its tag and the predicted one on each line, a blank line behind each sentence."""
    for gold, one in zip(expected, results, strict=True):
        yield from ("\t".join(cells) for cells in zip(one.words, gold, one.tags, strict=True))
        yield ""
