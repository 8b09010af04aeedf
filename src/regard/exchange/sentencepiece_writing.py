"""SentencePiece models, written: of tokenizers of the kind `sentencepiece`, and those that were imported, written back.

The latter, which `sentencepiece_model.py` has built, are for the classes of Marian and M2M100. No library is needed.
"""

import base64
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import BYTES, SPACE, steps
from regard.exchange.sentencepiece_charsmap import charsmap_bytes, lower_case
from regard.exchange.sentencepiece_model import BPE, BYTE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, USER_DEFINED

_CONTROLS = ("<s>", "</s>")
_OWN = ("<unk>", "<start>", "<end>", "<pad>")  # in the order in which a model names them
_SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}


def is_sentencepiece(file: Mapping[str, Any]) -> bool:
    """Whether a tokenizer file is one that was built of a SentencePiece model."""
    before = steps(file["normalizer"])
    return file["pre_tokenizer"] is None and bool(before) and before[-1] == _SPACES


def sentencepiece_bytes(file: Mapping[str, Any], unknown: str) -> bytes:
    """Return the model of a tokenizer file: its pieces with their scores, and what its normaliser does."""
    model, before = file["model"], steps(file["normalizer"])
    types = {token["content"]: CONTROL if token["special"] else USER_DEFINED for token in file["added_tokens"]}
    pieces = [(unknown, 0.0, UNKNOWN), *((name, 0.0, CONTROL) for name in _CONTROLS)]
    for name, score in _scores(model):
        type = types.get(name, BYTE if model["byte_fallback"] and name.startswith("<0x") else NORMAL)
        if type != CONTROL and not name.startswith(" "):
            pieces.append((name, score, type))
    names = [step["type"] for step in before]
    charsmap = next((step["precompiled_charsmap"] for step in before if step["type"] == "Precompiled"), "")
    return _written(
        pieces,
        trainer=[
            _number(3, UNIGRAM if model["type"] == "Unigram" else BPE),
            _number(35, int(bool(model["byte_fallback"]))),
            *(_number(40 + place, id) for place, id in enumerate((0, 1, 2, -1))),  # unknown, start, end, padding
        ],
        charsmap=base64.b64decode(charsmap),
        dummy_prefix="Prepend" in names,
        fewer_spaces=names.count("Replace") > 1,
    )


def own_sentencepiece_bytes(tokenizer: Tokenizer) -> bytes:
    """Return the model of a tokenizer of the kind `sentencepiece`, which gives the same ids for every text."""
    merges = json.loads(tokenizer.to_json())["model"]["merges"]
    merged = [*dict.fromkeys("".join(pair) for pair in merges)]
    scores = {name: -float(rank) for rank, name in enumerate(merged)}
    roles = tokenizer.roles.named()
    types = {**dict.fromkeys(BYTES, BYTE), **dict.fromkeys(tokenizer.specials, CONTROL), roles[_OWN[0]]: UNKNOWN}
    last = -float(len(merged))  # of characters, which nothing is merged to
    return _written(
        [(name, scores.get(name, last), types.get(name, NORMAL)) for name in tokenizer.vocabulary],
        trainer=[
            _number(3, BPE),
            _number(35, 1),
            *(_number(40 + place, tokenizer.id_of(name)) for place, name in enumerate(_OWN)),
            *(_bytes(45 + place, roles[name].encode()) for place, name in enumerate(_OWN)),
        ],
        charsmap=charsmap_bytes(lower_case()) if tokenizer.lowercase else b"",
        dummy_prefix=tokenizer.spaced,
        fewer_spaces=False,
    )


def _written(
    pieces: Sequence[tuple[str, float, int]],
    *,
    trainer: Sequence[bytes],
    charsmap: bytes,
    dummy_prefix: bool,
    fewer_spaces: bool,
) -> bytes:
    """Return the file of a model; fields are those of `SentencePieceModel`, `trainer` says how pieces are put together."""
    normaliser = [
        _bytes(1, b"custom"),
        _bytes(2, charsmap),
        _number(3, int(dummy_prefix)),
        _number(4, int(fewer_spaces)),
        _number(5, 1),
    ]
    written = (
        _bytes(1, _bytes(1, name.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, type))
        for name, score, type in pieces
    )
    trained = b"".join((*trainer, _number(4, len(pieces))))
    return b"".join((*written, _bytes(2, trained), _bytes(3, b"".join(normaliser))))


def piece_vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the vocabulary that a SentencePiece model goes with: the tokens that have a row, by their own names."""
    found = {
        name: id for name, id in tokenizer.vocabulary.items() if not name.startswith("  ")
    }  # no row without a token
    return {name.removeprefix(" "): id for name, id in found.items()}


def _scores(model: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The pieces with their scores; those of BPE say which merge comes first."""
    if model["type"] == "Unigram":
        yield from ((name, score) for name, score in model["vocab"])
        return
    ranks: dict[str, int] = {}
    for rank, (left, right) in enumerate(model["merges"]):
        ranks.setdefault(left + right, rank)
    for place, name in enumerate(model["vocab"]):
        yield name, -float(ranks.get(name, len(model["merges"]) + place))


def _varint(value: int) -> bytes:
    """A whole number, seven bits a byte; one below 0 as its 64 bits."""
    value, found = value & ((1 << 64) - 1), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
