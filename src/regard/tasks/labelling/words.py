"""Sentences of words as an encoder reads them: where each word begins, and in segments where a sentence is too long."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.data.labelled.encoding import encode_words
from regard.data.pipeline.corpus import Corpus, Integers
from regard.data.text.tokenizer import Tokenizer
from regard.errors import UsageError
from regard.tasks.labelling.examples import Rows, TokenSequences

Places = Sequence[int] | Integers  # of tokens in a sentence
Words = tuple[str, ...]


@dataclass(frozen=True)
class WordSegment:
    """What of a sentence is read at once: the words from `first` to below `last`, the tokens from `start` to below `end`."""

    first: int
    last: int
    start: int
    end: int


class WordSequences(TokenSequences):
    """Sentences of words.

    firsts:    of each sentence, the place of each word's first token
    words:     from a sentence's number to its words
    segments:  from a sentence's number to what of it is read at once, at most `longest` tokens
    """

    def __init__(
        self, ids: Rows, firsts: Rows, words: Callable[[int], Words], tokenizer: Tokenizer, *, longest: int
    ) -> None:
        super().__init__(ids, None, tokenizer)
        self.firsts = firsts
        self.words = words
        self.longest = longest

    def segments(self, row: int) -> list[WordSegment]:
        return word_segments(self.firsts[row], len(self.texts[row]), self.longest)

    @classmethod
    def of_corpus(cls, corpus: Corpus, tokenizer: Tokenizer, *, longest: int) -> "WordSequences":
        """The sentences of a corpus, which keeps their words as text, if at all."""
        ids, firsts = corpus.ragged["ids"], corpus.ragged["firsts"]

        def words(row: int) -> Words:
            return split_text(corpus.ragged["text"].text(row), firsts[row], tokenizer)

        return cls(ids, firsts, words, tokenizer, longest=longest)

    @classmethod
    def of_inputs(
        cls, sentences: Sequence[Sequence[str] | str], tokenizer: Tokenizer, *, longest: int
    ) -> "WordSequences":
        """Sentences that are given: a string is split at white space."""
        words = [_given_words(number, one) for number, one in enumerate(sentences)]
        encoded = encode_words(words, tokenizer, sys.maxsize)
        return cls(encoded.ids, encoded.firsts, words.__getitem__, tokenizer, longest=longest)


def split_text(text: str, firsts: Places, tokenizer: Tokenizer) -> Words:
    """The words of a sentence that was stored as text; in some languages a word may hold a space."""
    words = text.split(" ")
    if len(words) == len(firsts):
        return tuple(words)
    pieces = tokenizer.pieces(text)
    starts = [pieces[first].start for first in firsts]
    return tuple(text[start:end].strip() for start, end in pairwise([*starts, len(text)]))


def word_segments(firsts: Places, n_tokens: int, longest: int) -> list[WordSegment]:
    """Cut a sentence into about equal segments of whole words, of at most `longest` tokens; none where there is no word.

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
        WordSegment(first, last, begins[first], min(ends[last - 1], begins[first] + longest))
        for first, last in pairwise([*starts, len(begins)])
    ]


def _given_words(number: int, sentence: Sequence[str] | str) -> Words:
    words = tuple(sentence.split() if isinstance(sentence, str) else sentence)
    for place, word in enumerate(words):
        if not word.strip():
            raise UsageError(f"Word {place} of sentence {number} is empty: there is nothing to tag.", "Leave it out.")
    return words
