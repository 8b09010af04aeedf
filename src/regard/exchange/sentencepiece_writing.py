"""SentencePiece models written back, as the classes of Marian and M2M100 read them; built by `sentencepiece_model.py`."""

import base64
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import SPACE, steps
from regard.exchange.sentencepiece_model import BPE, BYTE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, USER_DEFINED

_CONTROLS = ("<s>", "</s>")
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
    trainer = [
        _number(3, UNIGRAM if model["type"] == "Unigram" else BPE),
        _number(4, len(pieces)),
        _number(35, int(bool(model["byte_fallback"]))),
        *(_number(40 + place, id) for place, id in enumerate((0, 1, 2, -1))),  # unknown, start, end, padding
    ]
    normaliser = [
        _bytes(1, b"custom"),
        _bytes(2, base64.b64decode(charsmap)),
        _number(3, int("Prepend" in names)),
        _number(4, int(names.count("Replace") > 1)),
        _number(5, 1),
    ]
    written = (
        _bytes(1, _bytes(1, name.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, type))
        for name, score, type in pieces
    )
    return b"".join((*written, _bytes(2, b"".join(trainer)), _bytes(3, b"".join(normaliser))))


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
