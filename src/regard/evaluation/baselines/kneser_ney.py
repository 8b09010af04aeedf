"""An n-gram model with Kneser-Ney smoothing: each token by the few before it, interpolated with what fewer of them say.

Discounts and continuation counts as of Chen and Goodman (1999), "An empirical study of smoothing techniques for language
modeling", section 3. N-grams of three tokens and more that occur once are forgotten, and what they had is left to shorter
ones: so the probabilities of all tokens still sum to 1, and the tables stay small.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from regard.evaluation.baselines.baseline import Baseline, Floats, Integers, require_integers, require_numbers, sum_by
from regard.evaluation.baselines.ngrams import Hashes, find, mixed, require_hashes

MOST_NGRAMS = 300_000  # of one order that are kept, the most frequent
_CHUNK = 1 << 18  # tokens that are looked up at once

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KneserNey(Baseline):
    """The n-grams of all orders above 1 in one table, by hash.

    unigrams:  (V,), the probability of each token where nothing is known of those before it
    ngrams:    hashes (M,), and what each has of its context's probability, `shares` (M,)
    contexts:  hashes (C,) of what stands before a token; what each leaves to shorter ones, `left` (C,); and the token that
               follows it most often, `next` (C,)
    """

    name: ClassVar = "n-gram model"

    unigrams: Floats
    ngrams: Hashes
    shares: Floats
    contexts: Hashes
    left: Floats
    next: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        require_numbers(self.unigrams, None)
        require_hashes(self.ngrams)
        require_numbers(self.shares, len(self.ngrams))
        require_hashes(self.contexts)
        require_numbers(self.left, len(self.contexts))
        require_integers(self.next, len(self.contexts), below=len(self.unigrams))
        if (self.unigrams <= 0).any() or (self.left <= 0).any() or (self.shares < 0).any():
            raise ValueError("a probability is not above 0")

    @property
    def n_outputs(self) -> int:
        return len(self.unigrams)

    @classmethod
    def fit(cls, tokens: Integers, before: Integers, n_tokens: int) -> Self:
        """Learn from tokens (N,) and what stands before each, (N, order - 1), the nearest in the last column.

        n_tokens: how many tokens there are, V
        """
        contexts = _contexts(before)  # of each order, (N,)
        tables = [_Table.empty()]
        # Of the longest n-grams all occurrences count, of a shorter one in how many longer ones it stands.
        places = np.arange(len(tokens))
        for context in contexts[:0:-1]:
            _, first, counts = np.unique(_ngrams(context, tokens)[places], return_index=True, return_counts=True)
            places = places[first]
            is_longer = context is not contexts[1]
            tables.append(_Table.of(context[places], tokens[places], counts, least=2 if is_longer else 1))
        unigrams = np.full(n_tokens, 1 / n_tokens)
        if len(tokens):
            counts = np.bincount(tokens[places], minlength=n_tokens)
            shares = (counts - _discounts(counts)) / counts.sum()
            unigrams = shares + (1 - shares.sum()) * unigrams
        ngrams, shares, known, left, following = (
            np.concatenate([getattr(one, name) for one in tables])
            for name in ("ngrams", "shares", "contexts", "left", "next")
        )
        by_ngram, by_context = np.argsort(ngrams), np.argsort(known)
        return cls(
            unigrams.astype(np.float32),
            ngrams[by_ngram],
            shares[by_ngram].astype(np.float32),
            known[by_context],
            left[by_context].astype(np.float32),
            following[by_context].astype(np.int64),
        )

    def cross_entropy(self, tokens: Integers, before: Integers) -> float:
        """What tokens (N,) cost behind what stands before each, (N, order - 1), summed, in nats."""
        starts = range(0, len(tokens), _CHUNK)
        chunks = ((tokens[start : start + _CHUNK], before[start : start + _CHUNK]) for start in starts)
        return -sum(float(np.log(self.probabilities(*chunk)).sum()) for chunk in chunks)

    def probabilities(self, tokens: Integers, before: Integers) -> Numbers:
        """The probability of each of tokens (N,) behind what stands before it, (N, order - 1)."""
        found: Numbers = self.unigrams[tokens].astype(np.float64)
        shares, left = np.append(self.shares, 0.0), np.append(self.left, 1.0)  # the last, which -1 names
        for context in _contexts(before)[1:]:
            found = shares[find(self.ngrams, _ngrams(context, tokens))] + left[find(self.contexts, context)] * found
        return found

    def guesses(self, before: Integers) -> npt.NDArray[np.int64]:
        """The token that follows most often (N,) what stands before it, (N, order - 1), as much of that as is known."""
        found = np.full(len(before), self.unigrams.argmax(), np.int64)
        for context in _contexts(before)[1:]:
            place = find(self.contexts, context)
            found = np.where(place >= 0, np.append(self.next, 0)[place], found)
        return found


def windows(stream: Integers, order: int) -> tuple[Integers, Integers]:
    """The tokens (N,) of a stream but for its first, and those before each, (N, order - 1); 0 before the stream."""
    padded = np.concatenate((np.zeros(max(0, order - 2), stream.dtype), stream))
    before = np.lib.stride_tricks.sliding_window_view(padded, order - 1)
    return stream[1:], before[: len(stream) - 1]


@dataclass(frozen=True, eq=False)
class _Table:
    """What n-grams of one order have of their contexts' probability, and what these leave."""

    ngrams: Hashes
    shares: Numbers
    contexts: Hashes
    left: Numbers
    next: npt.NDArray[np.int64]

    @classmethod
    def empty(cls) -> Self:
        nothing, numbers = np.empty(0, np.uint64), np.empty(0)
        return cls(nothing, numbers, nothing, numbers, np.empty(0, np.int64))

    @classmethod
    def of(cls, contexts: Hashes, tokens: Integers, counts: npt.NDArray[np.int64], *, least: int) -> Self:
        """Of different n-grams, a context and a token each, with their counts (N,); those of `least` and more are kept."""
        known, of = np.unique(contexts, return_inverse=True)
        shares = (counts - _discounts(counts)) / sum_by(of, counts, len(known))[of]
        if np.count_nonzero(counts >= least) > MOST_NGRAMS:
            least = int(np.partition(counts, -MOST_NGRAMS)[-MOST_NGRAMS]) + 1
        kept = counts >= least
        left = 1 - sum_by(of[kept], shares[kept], len(known))
        order = np.lexsort((tokens, -counts, of))
        most_often = order[np.unique(of[order], return_index=True)[1]]
        told = sum_by(of[kept], np.ones(kept.sum()), len(known)) > 0
        return cls(
            _ngrams(contexts, tokens)[kept],
            shares[kept],
            known[told],
            np.maximum(left, 1e-6)[told],
            tokens[most_often][told].astype(np.int64),
        )


def _contexts(before: Integers) -> list[Hashes]:
    """Hashes (N,) of no token, the nearest one, the nearest two and so on."""
    found = [np.zeros(len(before), np.uint64)]
    for column in range(before.shape[1] - 1, -1, -1):
        found.append(mixed(mixed(found[-1], salt=1) + before[:, column].astype(np.uint64)))
    return found


def _ngrams(context: Hashes, tokens: Integers) -> Hashes:
    """Hashes (N,) of what stands before tokens, and these."""
    return mixed(context + mixed(tokens, salt=2))


def _discounts(counts: npt.NDArray[np.int64]) -> Numbers:
    """What is taken of counts of one, two, and three or more (Chen and Goodman 1999, equation 26)."""
    n1, n2, n3, n4 = (int((counts == n).sum()) for n in (1, 2, 3, 4))
    share = n1 / max(1, n1 + 2 * n2)
    taken = [0.0]
    for n, fewer, more in ((1, n1, n2), (2, n2, n3), (3, n3, n4)):
        # Of few n-grams the formula may give anything.
        taken.append(min(max(n - (n + 1) * share * more / max(1, fewer), 0.1), n - 0.1) if fewer and more else 0.5)
    found: Numbers = np.array(taken)[np.minimum(counts, 3)]
    return found
