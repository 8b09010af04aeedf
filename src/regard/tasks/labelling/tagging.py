"""Tagging: a tag for each word of a sentence, asked of the word's first piece (Devlin et al. 2019, 5.3).

A sentence that is too long to be read at once is read in parts of whole words when it is tagged or scored, so that every
word has a tag. For training it was cut.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.labelled.encoding import encode_words
from regard.data.pipeline.corpus import Corpus, Integers
from regard.errors import UsageError
from regard.evaluation.classification import accuracy
from regard.evaluation.entities import are_entities, entity_scores
from regard.evaluation.scores import Score
from regard.tasks.labelling.base import SequenceTask, softmax
from regard.tasks.labelling.examples import Outputs, Rows, SequenceBatch, SequenceExamples, TokenSequences
from regard.tasks.spec import TASKS
from regard.tasks.task import Indices

NOTHING = -1  # the label of a token of which nothing is asked
Places = Sequence[int] | Integers  # of tokens in a sentence


@dataclass(frozen=True, kw_only=True)
class TaggedText:
    """The words of a sentence, the likeliest tag of each and its probability; `n_parts`, in how many parts it was read."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    n_parts: int = 1


@dataclass(frozen=True)
class WordSpan:
    """What of a sentence is read at once: the words from `first` to below `last`, the tokens from `start` to below `end`."""

    first: int
    last: int
    start: int
    end: int


class TaggingTask(SequenceTask):
    """The task of tagging."""

    spec: ClassVar = TASKS["tag"]
    n_specials = 2
    splits = True

    def gold(self, corpus: Corpus, indices: Indices, length: int) -> Tensor:
        """The tag of each word at its first token, (B, length), and -1 elsewhere."""
        labels = np.full((len(indices), length), NOTHING, np.int64)
        for row, index in enumerate(indices.tolist()):
            labels[row, 1 + corpus.ragged["firsts"][index].astype(np.int64)] = corpus.ragged["tags"][index]
        return torch.from_numpy(labels)

    def loss(self, model: Any, batch: SequenceBatch, *, smoothing: float) -> tuple[Tensor, float]:
        """The cross entropy of the words' tags, summed, and the number of words."""
        assert batch.labels is not None
        labels = batch.labels.flatten()
        places = (labels != NOTHING).nonzero()[:, 0]
        outputs = self.answer(model, batch).flatten(0, 1)
        outputs = outputs.index_select(0, places.to(outputs.device))
        return self.loss_of(outputs, labels[places], smoothing=smoothing)

    def loss_of(self, outputs: Tensor, labels: Tensor, *, smoothing: float) -> tuple[Tensor, float]:
        goals = labels.to(outputs.device)
        return F.cross_entropy(outputs.float(), goals, label_smoothing=smoothing, reduction="sum"), len(labels)

    def outputs(
        self, model: Any, examples: SequenceExamples, *, progress: Callable[[int], None] | None = None
    ) -> list[Outputs]:
        """The logits of each word's tags, (words, n_tags), of each sentence."""
        ragged = examples.corpus.ragged
        found, _ = self._read_words(model, ragged["ids"], ragged["firsts"], progress=progress)
        return found

    def scores_of(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[Score]:
        """The loss and the accuracy over words; F1, precision and recall of entities where tags mark them."""
        tags = examples.corpus.ragged["tags"]
        logits = np.concatenate(outputs)
        gold = np.asarray(tags.values, np.int64)
        loss, n_words = self.loss_of(torch.from_numpy(logits), torch.from_numpy(gold), smoothing=0.0)
        scores = [
            Score(name="loss", value=float(loss) / n_words, signature="unit:word"),
            accuracy(gold, logits.argmax(1), unit="words"),
        ]
        if not are_entities(self.table.labels):
            return scores
        return [*scores, *entity_scores(self.expected(examples), [self._named(own.argmax(1)) for own in outputs])]

    def answers(self, examples: SequenceExamples, outputs: Sequence[Outputs]) -> list[TaggedText]:
        ids, firsts = (examples.corpus.ragged[name] for name in ("ids", "firsts"))
        return [
            self._tagged(
                self._written(examples.text(row), firsts[row]),
                output,
                len(in_parts(firsts[row], len(ids[row]), self.longest)),
            )
            for row, output in enumerate(outputs)
        ]

    def expected(self, examples: SequenceExamples) -> list[tuple[str, ...]]:
        tags = examples.corpus.ragged["tags"]
        return [self._named(tags[row]) for row in range(len(tags))]

    def sample(self, examples: SequenceExamples, row: int, output: Outputs) -> tuple[str, str]:
        expected = self._named(examples.corpus.ragged["tags"][row])
        return " ".join(expected), " ".join(self._named(output.argmax(1)))

    def predict(
        self,
        model: Any,
        sentences: Sequence[Sequence[str] | str],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[TaggedText]:
        """Tag the words of each sentence, in their order; a sentence that is one string is split at white space."""
        assert self.tokenizer is not None
        words = [_words(number, one) for number, one in enumerate(sentences)]
        encoded = encode_words(words, self.tokenizer, sys.maxsize)
        outputs, n_parts = self._read_words(model, encoded.ids, encoded.firsts, progress=progress)
        return [self._tagged(*one) for one in zip(words, outputs, n_parts, strict=True)]

    def label_facts(self) -> list[tuple[str, str]]:
        return self.table.facts("tag")

    def _read_words(
        self, model: Any, ids: Rows, firsts: Rows, *, progress: Callable[[int], None] | None
    ) -> tuple[list[Outputs], list[int]]:
        """The logits of each word's tags, (words, n_tags), of each sentence; and in how many parts it was read."""
        assert self.tokenizer is not None
        parts = [in_parts(firsts[row], len(ids[row]), self.longest) for row in range(len(ids))]
        flat = [(row, part) for row, own in enumerate(parts) for part in own]
        pieces = TokenSequences([ids[row][part.start : part.end] for row, part in flat], None, self.tokenizer)
        read = self.read_sequences(model, pieces, progress=progress)
        words: list[list[Outputs]] = [[np.empty((0, self.n_outputs), np.float32)] for _ in parts]
        for (row, part), own in zip(flat, read, strict=True):
            places = np.asarray(firsts[row][part.first : part.last], np.int64) - part.start
            words[row].append(own[1 + places])  # behind the start token
        return [np.concatenate(own) for own in words], [len(own) for own in parts]

    def _written(self, text: str, firsts: Places) -> tuple[str, ...]:
        """The words of a sentence that was stored as text; in some languages a word may hold a space."""
        words = text.split(" ")
        if len(words) == len(firsts):
            return tuple(words)
        assert self.tokenizer is not None
        pieces = self.tokenizer.pieces(text)
        starts = [pieces[first].start for first in firsts]
        return tuple(text[start:end].strip() for start, end in pairwise([*starts, len(text)]))

    def _named(self, numbers: Any) -> tuple[str, ...]:
        return tuple(self.table.labels[int(number)] for number in numbers)

    def _tagged(self, words: tuple[str, ...], logits: Outputs, n_parts: int) -> TaggedText:
        shares = softmax(logits)
        probabilities = tuple(float(share) for share in shares.max(1, initial=0.0))
        return TaggedText(words=words, tags=self._named(shares.argmax(1)), probabilities=probabilities, n_parts=n_parts)


def _words(number: int, sentence: Sequence[str] | str) -> tuple[str, ...]:
    words = tuple(sentence.split() if isinstance(sentence, str) else sentence)
    for place, word in enumerate(words):
        if not word.strip():
            raise UsageError(f"Word {place} of sentence {number} is empty: there is nothing to tag.", "Leave it out.")
    return words


def in_parts(firsts: Places, n_tokens: int, longest: int) -> list[WordSpan]:
    """Cut a sentence into about equal parts of whole words, of at most `longest` tokens; none where there is no word.

    firsts: the first token of each word; two words may share one. Of a word that is too long by itself, the beginning
    is read.
    """
    if not len(firsts):
        return []
    begins = [0, *map(int, firsts[1:])]
    ends = [max(end, int(first) + 1) for first, end in zip(firsts, [*begins[1:], n_tokens], strict=True)]
    wanted = math.ceil(n_tokens / math.ceil(n_tokens / longest))
    starts = [0]
    for word in range(1, len(begins)):
        begun = begins[starts[-1]]
        if begins[word] - begun >= wanted or ends[word] - begun > longest:
            starts.append(word)
    return [
        WordSpan(first, last, begins[first], min(ends[last - 1], begins[first] + longest))
        for first, last in pairwise([*starts, len(begins)])
    ]
