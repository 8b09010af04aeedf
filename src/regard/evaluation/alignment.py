"""Word alignment: which target word came from which source word, read off the attention of pieces over pieces; AER.

Attention shows routing, not proof: a link says where the model looked when it wrote the word.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError

Words = Sequence[int | None]


@dataclass(frozen=True, kw_only=True, order=True)
class Link:
    """A source word and a target word (both counted from 0), and the attention between them, 0 to 1."""

    source: int
    target: int
    score: float


def word_weights(weights: NDArray[Any], *, source_words: Words, target_words: Words) -> NDArray[np.float64]:
    """Merge pieces into words: (T, S) weights of pieces become (target words, source words).

    `source_words` (S) and `target_words` (T) give each piece's word, None for special tokens, which are left out.
    A target word's row is the mean over its pieces, a source word's column the sum over its own, so that a row
    sums to at most 1; what is missing went to special tokens. A word without pieces has zeros.
    """
    if weights.shape != (len(target_words), len(source_words)):
        raise UsageError(
            f"The weights must be {len(target_words)} target by {len(source_words)} source pieces, "
            f"but they are {' by '.join(map(str, weights.shape))}.",
            "Give one row for each piece that was written, one column for each piece that was read.",
        )
    of_target = _membership(target_words)  # (target words, T)
    of_source = _membership(source_words)  # (source words, S)
    of_target /= np.maximum(of_target.sum(axis=1, keepdims=True), 1)
    return of_target @ weights.astype(np.float64) @ of_source.T


def align_words(weights: NDArray[Any], *, source_words: Words, target_words: Words) -> list[Link]:
    """Link each target word to the source word it attends to the most; sorted by source, then target.

    Arguments as for `word_weights`. A target word that attends to special tokens alone has no link.
    """
    merged = word_weights(weights, source_words=source_words, target_words=target_words)
    if merged.shape[1] == 0:
        return []
    best = merged.argmax(axis=1)
    links = [Link(source=int(s), target=t, score=float(merged[t, s])) for t, s in enumerate(best)]
    return sorted(link for link in links if link.score > 0)


def as_pharaoh(links: Iterable[Link]) -> str:
    """Write links in the Pharaoh format, source first: `0-0 1-2`."""
    return " ".join(f"{link.source}-{link.target}" for link in links)


@dataclass(frozen=True, kw_only=True)
class GoldAlignment:
    """Which words people linked, (source, target): the sure links, and the possible ones, the sure among them."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


_GOLD_LINK = re.compile(r"(\d+)([-?p])(\d+)", re.ASCII)


def read_pharaoh(text: str) -> GoldAlignment:
    """Read links in the Pharaoh format, source first, words counted from 0: `0-0 1-2`; possible ones as `1?2` or `1p2`."""
    sure, possible = set(), set()
    for entry in text.split():
        found = _GOLD_LINK.fullmatch(entry)
        if found is None:
            raise UsageError(
                f"'{entry[:40]}' is not a link of two words.", "Write source-target, as in 0-0 1-2; possible ones 1?2."
            )
        link = int(found[1]), int(found[3])
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return GoldAlignment(sure=frozenset(sure), possible=frozenset(possible))


def alignment_error_rate(links: Iterable[Link], gold: GoldAlignment) -> float:
    """AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), of links A, sure links S and possible links P, which hold S.

    Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5.2. From 0, where all sure
    links are found and nothing that is not possible, to 1; 0 where nothing is linked and nothing was to be.
    """
    found = {(link.source, link.target) for link in links}
    total = len(found) + len(gold.sure)
    return 1 - (len(found & gold.sure) + len(found & gold.possible)) / total if total else 0.0


def as_json(links: Iterable[Link]) -> list[dict[str, int | float]]:
    """Write links as data that `json.dumps` takes."""
    return [{"source": link.source, "target": link.target, "score": round(link.score, 4)} for link in links]


def _membership(words: Words) -> NDArray[np.float64]:
    """A matrix (words, pieces) with 1 where a piece is of a word."""
    n_words = max((word + 1 for word in words if word is not None), default=0)
    matrix = np.zeros((n_words, len(words)))
    for piece, word in enumerate(words):
        if word is not None:
            matrix[word, piece] = 1
    return matrix
