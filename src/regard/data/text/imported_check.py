"""Checks of a tokenizer that came along with somebody else's weights: only known parts and patterns are taken.

A regular expression of a stranger's making could take for ever on a line of text, a replacement could make it grow without
bound, and a part that nobody has looked at could do either. So each type of part is listed here with the settings that it
may have, and each pattern by its text. What came with a model is refused where it has anything else.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tokenizers

from regard.data.formats.rows import excerpt
from regard.data.formats.tiktoken import KNOWN
from regard.data.text.charsmap import check_charsmap
from regard.data.text.roles import Roles
from regard.data.text.tokenizer_parts import unknown_token, vocabulary_of
from regard.data.text.tokenizer_training import WORD
from regard.errors import DataError

MOST_TOKENS = 2_000_000
LONGEST_TOKEN = 10_000  # characters
MOST_SCORE = 1_000_000  # of a unigram model; larger ones leave no digits for the others
MOST_STEPS = 32  # of a sequence
MOST_DEPTH = 4  # of sequences inside sequences

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{{0}}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{{0}}"
_CASED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
SPLITS = {
    *(one.pattern for one in KNOWN),  # of tiktoken, GPT-2's among them
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}",  # GPT-4, Llama 3
    QWEN2,
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",  # Qwen 3.5
    rf"{_CASED.replace('{0}', '')}|\p{{N}}|{_CASED_REST}",  # Mistral's Tekken
    rf"{_CASED.replace('{0}', _CONTRACTIONS + '?')}|\p{{N}}{{1,3}}|{_CASED_REST}",  # GPT-4o
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",  # CLIP
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    r"\p{N}{1,3}",
    r"\p{N}",
    r"\d",
    r"\s+",
    WORD,  # our own, of words and characters
    r"[\s\S]",
}
"""By which text may be cut."""

AROUND, MANY = r"\A +| +\z", " {2,}"  # spaces that SentencePiece drops, or makes one
REPLACED = {AROUND, MANY, r"\s+", r"\s{2,}|[\n\r\t]", r"[\n\r\t]", r"\n", "^##"}
"""Which patterns may be replaced: by one character, or by none."""

_BEHAVIOURS = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
_SCHEMES = {"always", "never", "first"}


def _is_flag(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 16


def _is_character(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 1


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= 1_000_000)


def _is_split(value: Any) -> bool:
    return bool(_pattern(value, SPLITS))


def _is_replaced(value: Any) -> bool:
    return bool(_pattern(value, REPLACED))


def _is_charsmap(value: Any) -> bool:
    if value is None:
        return False
    try:
        check_charsmap(base64.b64decode(value, validate=True))
    except binascii.Error:
        raise DataError("its character map is not base64.") from None
    return True


Fits = Callable[[Any], bool]
Settings = Mapping[str, Fits]

_SPACES: Settings = {"add_prefix_space": _is_flag, "trim_offsets": _is_flag, "use_regex": _is_flag}
_METASPACE: Settings = {"replacement": _is_character, "prepend_scheme": _SCHEMES.__contains__, "split": _is_flag}
_REPLACE: Settings = {"pattern": _is_replaced, "content": _is_short}

KNOWN_PARTS: Mapping[str, Mapping[str, Settings]] = {
    "normalizer": {
        **{name: {} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")},
        "BertNormalizer": dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), _is_flag),
        "Precompiled": {"precompiled_charsmap": _is_charsmap},
        "Prepend": {"prepend": _is_character},
        "Replace": _REPLACE,
        "Strip": {"strip_left": _is_flag, "strip_right": _is_flag},
    },
    "pre_tokenizer": {
        **{name: {} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")},
        "ByteLevel": _SPACES,
        "Digits": {"individual_digits": _is_flag},
        "Metaspace": _METASPACE,
        "Punctuation": {"behavior": _BEHAVIOURS.__contains__},
        "Split": {"pattern": _is_split, "behavior": _BEHAVIOURS.__contains__, "invert": _is_flag},
    },
    "decoder": {
        **{name: {} for name in ("ByteFallback", "Fuse")},
        "BPEDecoder": {"suffix": _is_short},
        "ByteLevel": _SPACES,
        "Metaspace": _METASPACE,
        "Replace": _REPLACE,
        "Strip": {"content": _is_character, "start": _is_number, "stop": _is_number},
        "WordPiece": {"prefix": _is_short, "cleanup": _is_flag},
    },
}
_LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}

KNOWN_MODELS: Mapping[str, Settings] = {
    "BPE": {
        **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), _is_flag),
        **dict.fromkeys(("continuing_subword_prefix", "end_of_word_suffix"), lambda one: one is None or _is_short(one)),
    },
    "Unigram": {"unk_id": _is_number, "byte_fallback": _is_flag},
    "WordLevel": {},
    "WordPiece": {"continuing_subword_prefix": _is_short, "max_input_chars_per_word": _is_number},
}


def check_patterns(file: Any) -> None:
    """Refuse regular expressions that are not known; to be called before the library sees a file, and compiles them."""
    if not isinstance(file, dict):
        raise DataError("it is not a table of parts.")
    for name in KNOWN_PARTS:
        for pattern in _patterns(file.get(name)):
            if pattern not in SPLITS | REPLACED:
                raise DataError(f"the pattern '{_shown(pattern)}' of its {name} is not known.")


def check_imported(library: tokenizers.Tokenizer, roles: Roles) -> None:
    """Refuse a tokenizer with parts that are not known, or that has what a run's tokenizer has not."""
    file = json.loads(library.to_str())
    for name in ("post_processor", "truncation", "padding"):
        if file[name] is not None:
            raise DataError(f"it has a {name}.")
    for name, known in KNOWN_PARTS.items():
        _check_part(file[name], name, known)
    _check_model(file["model"])
    unknown = unknown_token(file)
    if unknown is not None and roles.unknown != unknown:
        raise DataError(f"its roles name '{roles.unknown}' as unknown, and it gives '{unknown}'.")
    names = vocabulary_of(file) | {token["content"] for token in file["added_tokens"]}
    longest = max(map(len, names), default=0)
    if len(names) > MOST_TOKENS or longest > LONGEST_TOKEN:
        raise DataError(f"it has {len(names):,} tokens, the longest of {longest:,} characters.")
    if "" in names:
        raise DataError("it has an empty token.")


def _check_part(part: Any, name: str, known: Mapping[str, Settings], *, depth: int = 0) -> None:
    if part is None:
        return
    kind = part.get("type")
    if kind == "Sequence":
        own = part.get(_LISTS[name], [])
        if len(own) > MOST_STEPS or depth >= MOST_DEPTH:
            raise DataError(f"its {name} has too many parts.")
        for one in own:
            _check_part(one, name, known, depth=depth + 1)
        return
    if kind not in known:
        raise DataError(f"the part {_shown(kind)} of its {name} is not known.")
    _check_settings(part, known[kind], f"the part {kind} of its {name}")
    # What replaces something must not be longer: several in a row would let a text grow without bound.
    pattern = part.get("pattern")
    if kind == "Replace" and len(part["content"]) > max(1, len(_pattern(pattern, set()) or "")):
        raise DataError(f"the part Replace of its {name} has a replacement that is longer than what it replaces.")


def _check_model(model: Mapping[str, Any]) -> None:
    kind = model["type"]
    if kind not in KNOWN_MODELS:
        raise DataError(f"a model {_shown(kind)} is not known.")
    if model.get("dropout"):
        raise DataError("its model drops merges at random.")
    rest = {name: value for name, value in model.items() if name not in ("vocab", "merges", "unk_token", "dropout")}
    _check_settings(rest, KNOWN_MODELS[kind], f"its model {kind}")
    unknown = model.get("unk_token")
    if unknown is not None and unknown not in model["vocab"]:
        raise DataError(f"its token for what is unknown, '{_shown(unknown)}', is not in the vocabulary.")
    if kind == "Unigram":
        if model["unk_id"] is None and not model["byte_fallback"]:
            raise DataError("it has no token for what is unknown.")
        if not all(abs(score) <= MOST_SCORE for _, score in model["vocab"]):
            raise DataError(f"it has a score beyond {MOST_SCORE:,}.")


def _check_settings(part: Mapping[str, Any], known: Settings, name: str) -> None:
    for setting, value in part.items():
        if setting == "type":
            continue
        if setting not in known:
            raise DataError(f"the setting {_shown(setting)} of {name} is not known.")
        if not known[setting](value):
            raise DataError(f"{setting} = {_shown(value)} of {name} is not known.")


def _pattern(value: Any, known: set[str]) -> str | None:
    """Return the text of a pattern: a plain string, which may be any short one, or a regular expression that is known."""
    if isinstance(value, dict) and len(value) == 1:
        if isinstance(plain := value.get("String"), str) and len(plain) <= 16:
            return plain
        if (pattern := value.get("Regex")) in known:
            return str(pattern)
    return None


def _patterns(part: Any) -> Iterator[Any]:
    """Yield every regular expression anywhere in a part."""
    waiting: list[Any] = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if "Regex" in one:
                yield one["Regex"]
            waiting += one.values()
        elif isinstance(one, Sequence) and not isinstance(one, str):
            waiting += one


def _shown(value: Any) -> str:
    return excerpt(str(value), characters=60)
