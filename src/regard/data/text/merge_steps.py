"""The merges of byte-pair encoding (BPE), one after the other: how the characters of a word become its tokens.

Sennrich et al. 2016. Of all neighbours that may be merged, those that were learned first go first; of several such, the
leftmost. The library does the same without telling how, and what is told here ends with its tokens, or nothing is told.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MOST_SYMBOLS = 200  # of a word whose merges are told


def merge_steps(model: Mapping[str, Any], word: str) -> list[list[str]]:
    """Every state of a word between its first symbols and its tokens, by the `model` table of a tokenizer file.

    None for a model without merges, or a word that is too long.
    """
    if model.get("type") != "BPE" or not 0 < len(word) <= MOST_SYMBOLS:
        return []
    vocabulary = model["vocab"]
    if model.get("ignore_merges") and word in vocabulary:
        return [[word]]
    ranks = {_pair(merge): rank for rank, merge in enumerate(model["merges"])}
    symbols = [symbol for character in word for symbol in _symbols(character, vocabulary, model)]
    states = [symbols]
    while len(symbols) > 1:
        found = [ranks.get(pair) for pair in pairwise(symbols)]
        lowest = min((rank for rank in found if rank is not None), default=None)
        if lowest is None:
            break
        place = found.index(lowest)
        symbols = [*symbols[:place], symbols[place] + symbols[place + 1], *symbols[place + 2 :]]
        states.append(symbols)
    return states


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    """A merge as files have it: two symbols, or one text with a space between them."""
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left, right


def _symbols(character: str, vocabulary: Mapping[str, int], model: Mapping[str, Any]) -> list[str]:
    """What a character begins as: itself, or the tokens of its bytes where it has none."""
    if character in vocabulary or not model.get("byte_fallback"):
        return [character]
    return [f"<0x{byte:02X}>" for byte in character.encode()]
