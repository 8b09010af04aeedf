"""Encoding of texts for classification, tagging and regression, as ids; nothing of files.

Texts of more tokens than may be are cut at their end. Special tokens are the task's, and are not counted here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class EncodedTexts:
    """The ids of texts and of the second texts that belong to them (empty where there is none); `n_lost` were cut off."""

    ids: list[list[int]]
    ids_b: list[list[int]]
    n_lost: list[int]


@dataclass(frozen=True)
class EncodedWords:
    """The ids of sentences, and for each word of them the place of its first piece; words beyond the cut have none."""

    ids: list[list[int]]
    firsts: list[list[int]]


def encode_texts(texts: Sequence[str], texts_b: Sequence[str], tokenizer: Tokenizer, max_length: int) -> EncodedTexts:
    """Encode texts, each with its second text ("" for none; `texts_b` may be empty), without white space at their ends.

    Both have together at most `max_length` tokens: of the longer one more is cut (Devlin et al. 2019, as in BERT's code).
    """
    ids = tokenizer.encode_batch([text.strip() for text in texts])
    ids_b: list[list[int]] = [[] for _ in texts]
    if any(texts_b):
        ids_b = tokenizer.encode_batch([text.strip() for text in texts_b])
    n_lost = [max(0, len(one) + len(other) - max_length) for one, other in zip(ids, ids_b, strict=True)]
    for row, lost in enumerate(n_lost):
        if lost:
            room, room_b = _shares(len(ids[row]), len(ids_b[row]), max_length)
            ids[row], ids_b[row] = ids[row][:room], ids_b[row][:room_b]
    return EncodedTexts(ids, ids_b, n_lost)


def _shares(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens two texts keep: as if one token of the longer was dropped until both have room."""
    half = room // 2
    if first <= half:
        return first, room - first
    if second <= half:
        return room - second, second
    return room - half, half


def encode_words(sentences: Sequence[Sequence[str]], tokenizer: Tokenizer, max_length: int) -> EncodedWords:
    """Encode sentences of words, joined by single spaces, at most `max_length` tokens of each.

    A word that has no piece of its own takes the one that covers its place.
    """
    all_ids, all_firsts = [], []
    for words, (ids, spans) in zip(sentences, tokenizer.spans_batch([" ".join(one) for one in sentences]), strict=True):
        firsts: list[int] = []
        if ids:
            lengths = np.array([len(word) + 1 for word in words])
            begins = np.cumsum(lengths) - lengths
            # A piece may begin with the space before its word: the first that ends behind the word's beginning is meant.
            found = np.searchsorted([end for _, end in spans], begins, side="right")
            firsts = [place for place in np.minimum(found, len(ids) - 1).tolist() if place < max_length]
        all_ids.append(ids[:max_length])
        all_firsts.append(firsts)
    return EncodedWords(all_ids, all_firsts)


def number_of(text: str) -> float:
    """Return the number that a text is; ValueError with the reason if it is none that can be learned."""
    try:
        # Python would read digits apart by underscores, which no table means.
        number = math.inf if "_" in text else float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if math.isnan(number):
        raise ValueError("NaN")
    if math.isinf(number):
        raise ValueError("not a number" if "_" in text else "infinite")
    return number
