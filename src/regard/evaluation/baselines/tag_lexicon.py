"""The tag lexicon: the most frequent tag of each word, and of an unknown word the most frequent tag of all."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from regard.evaluation.baselines.baseline import MOST_ENTRIES, Baseline, Floats, Integers, require_numbers
from regard.evaluation.baselines.ngrams import Hashes, Sequences, find, mixed, most_frequent, require_hashes


@dataclass(frozen=True, eq=False)
class TagLexicon(Baseline):
    """known: hashes (M,) of words; log_shares (M, K) of their tags, and of all words together, `unknown` (K,)."""

    name: ClassVar = "most frequent tag per word"

    known: Hashes
    log_shares: Floats
    unknown: Floats

    def __post_init__(self) -> None:
        require_hashes(self.known)
        require_numbers(self.unknown, None)
        require_numbers(self.log_shares, len(self.known), len(self.unknown))

    @property
    def n_outputs(self) -> int:
        return len(self.unknown)

    @classmethod
    def fit(cls, words: Hashes, tags: Integers, n_tags: int) -> Self:
        """Learn from words (N,) and their tags (N,)."""
        known = most_frequent(words, MOST_ENTRIES // max(1, n_tags))
        of_all = np.bincount(tags, minlength=n_tags) + 0.5
        shares = of_all / of_all.sum()
        places = find(known, words)
        kept = places >= 0
        counts = np.bincount(places[kept] * n_tags + tags[kept], minlength=len(known) * n_tags).reshape(-1, n_tags)
        # What is known of all words counts as much as one more word.
        of_words = (counts + shares) / (counts.sum(axis=1, keepdims=True) + 1)
        return cls(known, np.log(of_words).astype(np.float32), np.log(shares).astype(np.float32))

    def logits(self, words: Hashes) -> Floats:
        """The logits (N, K) of words (N,)."""
        table = np.concatenate((self.log_shares, self.unknown[None]))  # the last, which -1 names
        found: Floats = table[find(self.known, words)]
        return found


def word_hashes(pieces: Sequences, firsts: Sequences) -> Hashes:
    """Hash the words of sentences: each by its pieces, from its first to below that of the next word.

    pieces: the tokens of each sentence; firsts: where in these its words begin, in order
    """
    starts = firsts.values.astype(np.int64) + np.repeat(pieces.offsets[:-1], firsts.lengths)
    if not len(starts):
        return np.empty(0, np.uint64)
    # What stands in front of a sentence's first word is none, and follows the last word of the sentence before.
    ends = np.append(starts[1:], len(pieces.values))
    ends = np.minimum(ends, np.repeat(pieces.offsets[1:], firsts.lengths))
    lengths = np.maximum(ends - starts, 1)  # two words may share a piece
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # in the word
    tokens = pieces.values[np.repeat(starts, lengths) + places]
    hashes = mixed(mixed(tokens) + mixed(places, salt=1))
    return np.add.reduceat(hashes, np.cumsum(lengths) - lengths)
