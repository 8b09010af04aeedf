"""The kind `sentencepiece`: byte-pair encoding (BPE) with byte fallback, such that a SentencePiece model gives the same ids.

Kudo and Richardson (2018) keep no list of merges: of any two neighbours that make up a piece, the best piece is merged
first, by its score, and characters that are no pieces become their bytes. What BPE has learned is put into that form here,
with all the merges that follow from its pieces, in place of those that led to them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers

from regard.data.text.tokenizer_parts import BYTES, SPACE

LEAST = 5
"""How often a character must occur to be a piece: the others teach the bytes what they are for."""

# The mark of spaces has a place of its own, and the library of SentencePiece never uses the piece of a zero.
_NO_PIECES = {" ", SPACE, "\0"}

Merge = tuple[str, str]


def merges_of(pieces: Sequence[str]) -> list[Merge]:
    """Return the pairs to be merged, those that make up the first piece first: any two pieces that make up a third."""
    known = {*pieces}
    return [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]


def with_byte_fallback(
    library: tokenizers.Tokenizer, counts: Mapping[str, int], *, vocab_size: int, specials: Sequence[str]
) -> tokenizers.Tokenizer:
    """Return a tokenizer that has learned more than enough, with `vocab_size` tokens as SentencePiece puts them together.

    In their order: the special tokens, the 256 bytes, characters, and what was merged, the first merge first. Characters
    have at most half of the room.

    counts: how often each character occurs in the text that it was learned from
    """
    file = json.loads(library.to_str())
    room = vocab_size - len(specials) - len(BYTES) - 1
    known = {one for one, count in counts.items() if count >= LEAST} - _NO_PIECES
    often = sorted(known, key=lambda one: (-counts[one], one))
    characters = {SPACE, *often[: room // 2]}
    joined = dict.fromkeys("".join(pair) for pair in file["model"]["merges"])
    merged = [piece for piece in joined if characters.issuperset(piece)][: room + 1 - len(characters)]
    pieces = [*specials, *BYTES, *sorted(characters), *merged]
    model: dict[str, Any] = {
        **file["model"],
        "vocab": {piece: id for id, piece in enumerate(pieces)},
        "merges": merges_of([*merged, *characters]),
    }
    return tokenizers.Tokenizer.from_str(json.dumps({**file, "model": model}))
