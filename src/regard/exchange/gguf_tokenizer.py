"""The tokenizer inside a GGUF file, with the very same ids: SentencePiece's BPE, or byte-level BPE.

    tokenizer.ggml.model = llama     pieces with scores and types, as in SentencePiece's own file
    tokenizer.ggml.model = gpt2      tokens and merges; tokenizer.ggml.pre names how text is cut before
    tokenizer.ggml.*_token_id        which token ends, starts, pads, stands for the unknown

What a file leaves unsaid is as llama.cpp takes it. Rows that have no token are written there as unused ones behind all
others, and are here again rows without a token.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from regard.data.text.imported_check import QWEN2, check_imported
from regard.data.text.roles import Roles
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_check import check_ids
from regard.data.text.tokenizer_parts import unknown_token
from regard.errors import LONGEST_SHOWN, DataError, RegardError
from regard.exchange.gguf_config import SPECIAL_KEYS, TOKENS
from regard.exchange.gguf_file import REMEDY, gguf_errors
from regard.exchange.gguf_header import read_gguf_header
from regard.exchange.sentencepiece_model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    SentencePieceModel,
    sentencepiece_library,
)
from regard.exchange.their_config import TheirConfig
from regard.exchange.tokenizer_files import add_specials
from regard.runs.json_files import is_number

MODEL, PRE, TYPES = "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.token_type"
SCORES, MERGES = "tokenizer.ggml.scores", "tokenizer.ggml.merges"
ADD_START, SPACED = "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix"
FEWER_SPACES = "tokenizer.ggml.remove_extra_whitespaces"
LONGEST_PIECE = 512  # characters: each place of a piece is looked at for merges

_LETTERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"  # that may begin a word, and go on
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?{0}*{1}+|[^\r\n\p{L}\p{N}]?{0}+{1}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, kw_only=True)
class PreTokenizer:
    """How text is cut before merges, and what else is usual in such a tokenizer.

    pattern:      of the parts; GPT-2's where it is empty
    digits:       whether each digit is cut off first
    nfc:          whether text is brought into that Unicode form
    whole_words:  whether a part that is a token is not merged
    starts:       whether a start token stands in front of a text, unless the file says otherwise
    """

    pattern: str = ""
    digits: bool = False
    nfc: bool = False
    whole_words: bool = False
    starts: bool = False


_LLAMA3 = PreTokenizer(
    pattern=QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|"), whole_words=True, starts=True
)  # three digits at a time instead of one
PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    "gpt-2": PreTokenizer(),
    "llama-bpe": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama3": _LLAMA3,
    "qwen2": PreTokenizer(pattern=QWEN2, nfc=True),
    "smollm": PreTokenizer(digits=True),
    "tekken": PreTokenizer(
        pattern=_TEKKEN.replace("{0}", _LETTERS[0]).replace("{1}", _LETTERS[1]), whole_words=True, starts=True
    ),
}
"""By the names that llama.cpp has for them."""


def read_gguf_tokenizer(path: Path, *, rows: int) -> Tokenizer:
    """Read the tokenizer of a file whose embedding has so many rows."""
    metadata = TheirConfig(read_gguf_header(path).metadata, str(path))
    with gguf_errors(path):
        try:
            return _tokenizer(metadata, rows)
        except RegardError:
            raise
        except BaseException as error:  # the library raises nothing more particular; a panic of it is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)):
                raise
            raise DataError(f"{path}: its tokenizer cannot be read: {str(error)[:200]}.", REMEDY) from error


def _tokenizer(metadata: TheirConfig, rows: int) -> Tokenizer:
    kind = metadata.text(MODEL, "")
    if not kind:
        raise DataError(
            f"{metadata.origin} holds no tokenizer ({MODEL}).",
            "Choose a file that does, or convert the model again with its tokenizer.",
        )
    if kind not in ("llama", "gpt2"):
        metadata.refuse(MODEL, "known here: llama, gpt2")
    tokens, types = _tokens(metadata)
    if kind == "llama":
        library, starts = _sentencepiece(metadata, tokens, types), True
    else:
        how = _pre_tokenizer(metadata)
        library, starts = _byte_level(metadata, tokens, types, how), how.starts
    names = _names(metadata, tokens, types)
    add_specials(library, list(dict.fromkeys(names.values())))
    check_ids(library)
    size = int(library.get_vocab_size())
    if size > rows:
        raise DataError(f"it has {size:,} tokens, and the embedding {rows:,} rows.", REMEDY)
    start = names.get("bos")
    roles = Roles(
        end=names["eos"],
        pad=names.get("pad"),
        start=start,
        unknown=unknown_token(json.loads(library.to_str())) or names.get("unk"),
        prefix=(start,) if start is not None and metadata.flag(ADD_START, starts) else (),
        rows=0 if rows == size else rows,
    )
    check_imported(library, roles)
    return Tokenizer(library, roles)


def _tokens(metadata: TheirConfig) -> tuple[Sequence[str], Sequence[int]]:
    """The tokens and their types by id, without the unused ones behind all others."""
    tokens = metadata.texts(TOKENS)
    types = metadata.counts(TYPES, [NORMAL] * len(tokens))
    if not tokens or len(types) != len(tokens) or not all(NORMAL <= one <= BYTE for one in types):
        raise DataError(f"it has {len(tokens):,} tokens, and {len(types):,} types of them, or unknown ones.", REMEDY)
    if len(set(tokens)) < len(tokens):
        raise DataError("it has a token twice.", REMEDY)
    size = max((id + 1 for id, one in enumerate(types) if one != UNUSED), default=0)
    return tokens[:size], types[:size]


def _names(metadata: TheirConfig, tokens: Sequence[str], types: Sequence[int]) -> dict[str, str]:
    """The tokens that play a role; padding that has no row, or is a token of texts, is not missed: any token can pad."""
    names: dict[str, str] = {}
    for role, key in SPECIAL_KEYS.items():
        id = metadata.count(key) if role == "eos" or key in metadata.values else len(tokens)
        if id < len(tokens):
            if role != "pad" or types[id] != NORMAL:
                names[role] = tokens[id]
        elif key in metadata.values and role != "pad":
            raise DataError(f"its {key} is {id:,}, and it has {len(tokens):,} tokens.", REMEDY)
    return names


def _sentencepiece(metadata: TheirConfig, tokens: Sequence[str], types: Sequence[int]) -> tokenizers.Tokenizer:
    scores = metadata.values.get(SCORES)
    if not isinstance(scores, list) or len(scores) < len(tokens) or not all(map(is_number, scores)):
        raise DataError(f"its tokens have no scores ({SCORES}), or not each a number.", REMEDY)
    if types.count(UNKNOWN) != 1:
        raise DataError(f"{types.count(UNKNOWN):,} of its tokens stand for what is unknown, not one.", REMEDY)
    if max(map(len, tokens)) > LONGEST_PIECE:
        raise DataError(f"it has a token of more than {LONGEST_PIECE} characters.", REMEDY)
    pieces = list(zip(tokens, map(float, scores), types, strict=False))
    normal = {score for _, score, kind in pieces if kind == NORMAL}
    if len(normal) == 1 and types.count(NORMAL) > 1:
        # As converters write them that found no model of SentencePiece.
        raise DataError("its tokens have all one score, which says nothing of how they are merged.", REMEDY)
    model = SentencePieceModel(
        pieces=pieces,
        is_bpe=True,
        charsmap=b"",
        dummy_prefix=metadata.flag(SPACED, True),
        fewer_spaces=metadata.flag(FEWER_SPACES, False),
        byte_fallback=BYTE in types,
    )
    return sentencepiece_library(model)


def _pre_tokenizer(metadata: TheirConfig) -> PreTokenizer:
    name = metadata.text(PRE, "default")
    if name not in PRE_TOKENIZERS:
        raise DataError(
            f"{metadata.origin}: how its tokenizer cuts text is not known here ({PRE} = {name[:LONGEST_SHOWN]}).",
            f"Known are: {', '.join(PRE_TOKENIZERS)}.",
        )
    return PRE_TOKENIZERS[name]


def _byte_level(
    metadata: TheirConfig, tokens: Sequence[str], types: Sequence[int], how: PreTokenizer
) -> tokenizers.Tokenizer:
    merges = [one.partition(" ")[::2] for one in metadata.texts(MERGES)]
    if wrong := next((pair for pair in merges if not all(pair) or " " in pair[1]), None):
        raise DataError(f"'{' '.join(wrong)[:60]}' of its {MERGES} is not a pair of tokens.", REMEDY)
    # What was added behind the vocabulary is added here too, and no merge can lead to it.
    size = max((id + 1 for id, one in enumerate(types) if one == NORMAL), default=0)
    vocabulary = {token: id for id, token in enumerate(tokens[:size])}
    library = tokenizers.Tokenizer(models.BPE(vocabulary, merges, ignore_merges=how.whole_words))
    if how.nfc:
        library.normalizer = normalizers.NFC()
    spaced = metadata.flag(SPACED, False)
    steps: list[pre_tokenizers.PreTokenizer] = []
    if how.digits:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if how.pattern:
        steps.append(pre_tokenizers.Split(Regex(how.pattern), "isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=not how.pattern))
    library.pre_tokenizer = pre_tokenizers.Sequence(steps)
    library.decoder = decoders.ByteLevel()
    library.add_tokens(
        [
            AddedToken(token, normalized=False, special=one != USER_DEFINED)
            for id, (token, one) in enumerate(zip(tokens, types, strict=True))
            if one in (CONTROL, USER_DEFINED) or id >= size
        ]
    )
    return library
