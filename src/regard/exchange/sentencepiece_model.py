"""SentencePiece models (Kudo and Richardson 2018): read without the library of that name, rebuilt of parts of `tokenizers`.

The file is a protocol buffer, of which a dozen fields matter: the pieces with their scores and types, how pieces are put
together (unigram or BPE), and what the normaliser does with a text before. Nothing is cut before the model sees a text:
SentencePiece itself looks at whole sentences.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers

from regard.data.text.charsmap import check_charsmap
from regard.data.text.imported_check import AROUND, MANY
from regard.data.text.sentencepiece_training import merges_of
from regard.data.text.tokenizer_parts import SPACE
from regard.errors import DataError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
_NAMES = {3: "words", 4: "characters"}  # models of other kinds
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how a field is written
_MOST_BITS = 63


@dataclass(frozen=True, kw_only=True)
class SentencePieceModel:
    """What a file says.

    pieces:        each with its score and its type, by id
    charsmap:      the normaliser's map of characters; empty for none
    dummy_prefix:  whether a space is put in front of each text
    fewer_spaces:  whether spaces at the ends are dropped, and several in a row become one
    byte_fallback: whether a character that is no piece becomes its bytes
    """

    pieces: Sequence[tuple[str, float, int]]
    is_bpe: bool
    charsmap: bytes
    dummy_prefix: bool
    fewer_spaces: bool
    byte_fallback: bool

    @property
    def unknown(self) -> str:
        return next(piece for piece, _, kind in self.pieces if kind == UNKNOWN)

    def names(self, *kinds: int) -> list[str]:
        """The pieces of some types, in their order."""
        return [piece for piece, _, kind in self.pieces if kind in kinds]


def parse_sentencepiece(content: bytes) -> SentencePieceModel:
    """Read a model; DataError says what is wrong with it."""
    try:
        fields = list(_fields(content))
        pieces = [_piece(value) for number, value in fields if number == 1]
        trainer, normaliser = (_message(fields, number) for number in (2, 3))
        kind = trainer.get(3, UNIGRAM)
        charsmap = bytes(normaliser.get(2, b""))
    except (struct.error, UnicodeDecodeError, IndexError, ValueError, TypeError):
        raise DataError("it is not a SentencePiece model, or not a whole one.") from None
    if not pieces or sum(type == UNKNOWN for _, _, type in pieces) != 1:
        raise DataError("it is not a SentencePiece model: it has no pieces, or not one for what is unknown.")
    if kind not in (UNIGRAM, BPE):
        raise DataError(f"a SentencePiece model of {_NAMES.get(kind, 'another kind')} is not supported.")
    if trainer.get(24) or not normaliser.get(5, 1):
        raise DataError("a SentencePiece model that marks spaces behind words, or not at all, is not supported.")
    if len({piece for piece, _, _ in pieces}) < len(pieces):
        raise DataError("it has a piece twice.")
    if charsmap:
        check_charsmap(charsmap)
    return SentencePieceModel(
        pieces=pieces,
        is_bpe=kind == BPE,
        charsmap=charsmap,
        dummy_prefix=bool(normaliser.get(3, 1)),
        fewer_spaces=bool(normaliser.get(4, 1)),
        byte_fallback=bool(trainer.get(35, 0)),
    )


def sentencepiece_library(
    model: SentencePieceModel,
    vocabulary: Mapping[str, int] | None = None,
    *,
    specials: Collection[str] = (),
    rows: int = 0,
) -> tokenizers.Tokenizer:
    """Return a tokenizer of the library that gives the same pieces, by the model's own ids or by those of a vocabulary.

    `specials` are tokens of the vocabulary that are none of the model's pieces, and never text.

    Of a vocabulary that is for more than this model (Marian's is for source and target), tokens that are no pieces of it
    get a space in front, so that no text can become them; decoding takes it away. Pieces that are not in the vocabulary
    stand behind its `rows`, where `Roles` reads them as unknown.
    """
    if vocabulary is not None and model.unknown not in vocabulary:
        raise DataError(f"its vocabulary has no token '{model.unknown}' for what is unknown.")
    unknown, special = model.unknown, {*specials, *model.names(CONTROL, UNKNOWN)}
    entries, size = _own_entries(model) if vocabulary is None else _entries(model, vocabulary, special, rows)
    if model.is_bpe:
        ids = {name: id for id, (name, _) in enumerate(entries)}
        settings: dict[str, Any] = {"unk_token": unknown, "fuse_unk": True, "byte_fallback": model.byte_fallback}
        library = tokenizers.Tokenizer(models.BPE(ids, _merges(model), **settings))
    else:
        place = next(id for id, (name, _) in enumerate(entries) if name == unknown)
        library = tokenizers.Tokenizer(models.Unigram(entries, place, model.byte_fallback))
    library.normalizer = normalizers.Sequence(_normalisers(model))
    library.decoder = decoders.Sequence(_decoders(model))
    known = {name for name, _ in entries[:size]}
    named = [name for name, _ in entries[:size] if name in special]
    library.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in named])
    plain = [name for name in model.names(USER_DEFINED) if name in known]
    library.add_tokens([AddedToken(name, normalized=False) for name in plain])
    return library


def _own_entries(model: SentencePieceModel) -> tuple[list[tuple[str, float]], int]:
    entries = [(f" {piece}" if type == UNUSED else piece, score) for piece, score, type in model.pieces]
    return entries, len(entries)


def _entries(
    model: SentencePieceModel, vocabulary: Mapping[str, int], special: Collection[str], rows: int
) -> tuple[list[tuple[str, float]], int]:
    """Return all tokens with their scores, by id, and how many of them stand in front of what is read as unknown."""
    scores = {piece: score for piece, score, type in model.pieces if type != UNUSED and piece not in special}
    entries = []
    for id, (name, expected) in enumerate(sorted(vocabulary.items(), key=lambda entry: entry[1])):
        if id != expected:
            raise DataError("the ids of its vocabulary do not count up from 0.")
        entries.append((name if name in scores or name in special else f" {name}", scores.get(name, 0.0)))
    beyond = [(piece, score) for piece, score in scores.items() if piece not in vocabulary]
    if beyond:
        entries += [(f"  row {id}", 0.0) for id in range(len(entries), rows)]  # rows that no token has
    return entries + beyond, len(entries)


def _merges(model: SentencePieceModel) -> list[tuple[str, str]]:
    """Return the pairs to be merged, those of the best piece first."""
    scores = {piece: score for piece, score, type in model.pieces if type in (NORMAL, UNUSED)}
    return merges_of(sorted(scores, key=lambda piece: -scores[piece]))


def _normalisers(model: SentencePieceModel) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if model.fewer_spaces:
        steps += [normalizers.Replace(Regex(AROUND), ""), normalizers.Replace(Regex(MANY), " ")]
    if model.dummy_prefix:
        steps.append(normalizers.Prepend(SPACE))
    return [*steps, normalizers.Replace(" ", SPACE)]


def _decoders(model: SentencePieceModel) -> list[decoders.Decoder]:
    steps: list[decoders.Decoder] = [decoders.Replace(" ", ""), decoders.Replace(SPACE, " ")]
    steps += [decoders.ByteFallback()] if model.byte_fallback else []
    return [*steps, decoders.Fuse(), *([decoders.Strip(" ", 1, 0)] if model.dummy_prefix else [])]


def _piece(value: Any) -> tuple[str, float, int]:
    found = dict(_fields(value))
    [score] = struct.unpack("<f", found[2]) if 2 in found else (0.0,)
    name, type = bytes(found[1]).decode(), int(found.get(3, NORMAL))
    if not name or score != score or not NORMAL <= type <= BYTE:
        raise ValueError("not a piece")
    return name, score, type


def _message(fields: Sequence[tuple[int, Any]], number: int) -> dict[int, Any]:
    """The fields of the messages of a number: of several, the last one says what stands."""
    return {inner: value for field, content in fields if field == number for inner, value in _fields(content)}


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protocol buffer: whole numbers, or bytes, each with its number."""
    if not isinstance(content, bytes):
        raise TypeError("not a message")
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(content, place)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, place = _varint(content, place)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("not a field")
        if place + length > len(content):
            raise ValueError("a field beyond the end")
        yield key >> 3, content[place : place + length]
        place += length


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A whole number, seven bits a byte, and the place behind it."""
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > _MOST_BITS:
            raise ValueError("a number that is too long")
