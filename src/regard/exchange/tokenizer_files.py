"""Tokenizer files of a Hugging Face folder, read into tokenizers of the `tokenizers` library with the ids of the weights.

    tokenizer.json                              the library's own
    vocab.json, merges.txt                      byte-level BPE (GPT-2, RoBERTa, Qwen 2)
    vocab.txt                                   WordPiece (BERT)
    spiece.model, tokenizer.model               SentencePiece (T5, Llama)
    sentencepiece.bpe.model                     SentencePiece with fairseq's ids (XLM-R), or with vocab.json (M2M100)
    source.spm, target.spm, vocab.json          two SentencePiece models with one vocabulary (Marian)

Which of their tokens does what is decided in `tokenizers.py`.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from regard.data.text.imported_check import QWEN2, check_patterns
from regard.data.text.tokenizer_file import MOST_FILE
from regard.errors import DataError
from regard.exchange.sentencepiece_model import SentencePieceModel, parse_sentencepiece, sentencepiece_library
from regard.regular_files import read_regular

Family = Literal["encoder-only", "decoder-only", "encoder-decoder"]
"""What reads a text, which decides what stands around it."""

REMEDY = "Give a folder as `save_pretrained` of transformers writes it, complete."
EXTRA = re.compile(r"<extra_id_(\d+)>")  # T5's sentinels
LANGUAGE = re.compile(r">>.+<<")  # which Marian puts in front of a source
# M2M100's __en__, NLLB's eng_Latn, mBART-50's en_XX, and Marian's >>fra<<
_CODE = re.compile(r"__([a-z]{2,3})__|([a-z]{3}_[A-Z][a-z]{3})|([a-z]{2}_[A-Z]{2})|>>(.+)<<")
_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
_PIECES = ("spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model")


@dataclass(frozen=True)
class Libraries:
    """What turns a source into tokens, and a target: one and the same, but for Marian's.

    origin: what kind of files they were read from: "json", "bytes", "wordpiece" or "pieces"
    """

    source: tokenizers.Tokenizer
    target: tokenizers.Tokenizer
    origin: str


def read_libraries(folder: Path, settings: Mapping[str, Any], *, rows: int) -> Libraries:
    """Read the files that there are; `settings` are those of the folder's tokenizer_config.json and config.json."""
    if (folder / "tokenizer.json").is_file():
        return _alike(_from_json(folder / "tokenizer.json"), "json")
    if (folder / "source.spm").is_file():
        return _marian(folder, settings, rows=rows)
    for name in _PIECES:
        if (folder / name).is_file():
            return _alike(_from_pieces(folder, folder / name, settings, rows=rows), "pieces")
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _alike(_byte_level(folder, settings), "bytes")
    if (folder / "vocab.txt").is_file():
        return _alike(_wordpiece(folder / "vocab.txt", settings), "wordpiece")
    raise DataError(
        f"{folder}: there is no tokenizer: neither tokenizer.json, vocab.json with merges.txt, vocab.txt, nor a model of"
        " SentencePiece.",
        REMEDY,
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the table of a JSON file; an empty one where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        raise DataError(f"{path}: it is not JSON.", REMEDY) from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: it is not a table.", REMEDY)
    return found


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, which is one's own, and may be a link."""
    try:
        return read_regular(path.resolve(), most=MOST_FILE)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.", REMEDY) from None


def add_specials(library: tokenizers.Tokenizer, names: Collection[str]) -> None:
    """Make tokens special, those that are tokens already under the ids that they have."""
    special = {token.content for token in library.get_added_tokens_decoder().values() if token.special}
    library.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in names if name not in special]
    )


def _alike(library: tokenizers.Tokenizer, origin: str) -> Libraries:
    return Libraries(library, library, origin)


def _from_json(path: Path) -> tokenizers.Tokenizer:
    check_patterns(read_json(path))  # before the library compiles any
    return tokenizers.Tokenizer.from_str(read_bytes(path).decode())


def _byte_level(folder: Path, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    lines = _lines(folder / "merges.txt")
    merges = [line.partition(" ")[::2] for line in lines if line.strip() and not line.startswith("#version")]
    if wrong := next((merge for merge in merges if not all(merge) or " " in merge[1]), None):
        raise DataError(f"{folder / 'merges.txt'}: '{' '.join(wrong)[:60]}' is not a pair of tokens.", REMEDY)
    library = tokenizers.Tokenizer(models.BPE(_vocabulary(folder), merges))
    spaced = bool(settings.get("add_prefix_space"))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    if str(settings.get("tokenizer_class", "")).startswith("Qwen2"):
        library.normalizer = normalizers.NFC()
        bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=False)
        library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), bytes_alone])
    library.decoder = decoders.ByteLevel()
    return library


def _wordpiece(path: Path, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    names = _lines(path)
    if len(set(names)) < len(names):
        raise DataError(f"{path}: it has a token twice.", REMEDY)
    unknown = token_name(settings.get("unk_token")) or "[UNK]"
    ids = {name: id for id, name in enumerate(names)}
    library = tokenizers.Tokenizer(models.WordPiece(ids, unk_token=unknown))
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=settings.get("strip_accents"),
        lowercase=bool(settings.get("do_lower_case", True)),
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix="##")
    return library


def _from_pieces(folder: Path, path: Path, settings: Mapping[str, Any], *, rows: int) -> tokenizers.Tokenizer:
    model = _model(path)
    name = str(settings.get("tokenizer_class", ""))
    if (folder / "vocab.json").is_file():
        return _many_languages(model, _vocabulary(folder), settings, rows=rows)
    if path.name == "sentencepiece.bpe.model":
        if not name.startswith("XLMRoberta"):
            raise DataError(f"{path}: without a tokenizer.json, the ids of a {name or 'folder'} are not known.", REMEDY)
        pieces = [piece for piece, _, _ in model.pieces[3:]]
        names = (*_FAIRSEQ, *pieces, "<mask>")
        return sentencepiece_library(model, {one: id for id, one in enumerate(names)}, specials=(*_FAIRSEQ, "<mask>"))
    library = sentencepiece_library(model)
    if name.startswith("T5") or (not name and settings.get("model_type") == "t5"):
        count = settings.get("extra_ids", 100)
        if type(count) is not int or not 0 <= count <= 10_000:
            raise DataError(f"{folder}: extra_ids is a whole number of at most 10,000, not {count!r}.", REMEDY)
        add_specials(library, [f"<extra_id_{number}>" for number in reversed(range(count))])
    return library


def _many_languages(
    model: SentencePieceModel, vocabulary: dict[str, int], settings: Mapping[str, Any], *, rows: int
) -> tokenizers.Tokenizer:
    """M2M100: the languages' tokens follow upon the vocabulary."""
    languages = [name for name in listed_names(settings) if name not in vocabulary]
    ids = {**vocabulary, **{name: len(vocabulary) + place for place, name in enumerate(languages)}}
    return sentencepiece_library(model, ids, specials=(*_FAIRSEQ, *languages), rows=rows)


def _marian(folder: Path, settings: Mapping[str, Any], *, rows: int) -> Libraries:
    if settings.get("separate_vocabs"):
        raise DataError(f"{folder}: a vocabulary of its own for each side of Marian is not supported.", REMEDY)
    vocabulary, contents = _vocabulary(folder), [read_bytes(folder / name) for name in ("source.spm", "target.spm")]
    specials = ("<unk>", "<pad>", "</s>", *filter(LANGUAGE.fullmatch, vocabulary))
    sides = [
        sentencepiece_library(_model(folder / name), vocabulary, specials=specials, rows=rows)
        for name in ("source.spm", "target.spm")[: 1 if contents[0] == contents[1] else 2]
    ]
    return Libraries(sides[0], sides[-1], "pieces")


def _model(path: Path) -> SentencePieceModel:
    try:
        return parse_sentencepiece(read_bytes(path))
    except DataError as error:
        raise DataError(
            f"{path}: {error.problem}" if str(path) not in error.problem else error.problem, REMEDY
        ) from None


def _vocabulary(folder: Path) -> dict[str, int]:
    found = read_json(folder / "vocab.json")
    if not all(type(id) is int and 0 <= id < len(found) for id in found.values()):
        raise DataError(f"{folder / 'vocab.json'}: its ids do not count up from 0.", REMEDY)
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise DataError(f"{path}: it is not UTF-8.", REMEDY) from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def token_name(value: Any) -> str | None:
    """Return a token's name, which may be written with its settings; None for none."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else None


def listed_names(settings: Mapping[str, Any]) -> list[str]:
    """Return further special tokens, as languages and sentinels, in their order."""
    found: list[str] = []
    for key in ("additional_special_tokens", "extra_special_tokens"):
        listed = settings.get(key)
        for value in listed.values() if isinstance(listed, dict) else listed if isinstance(listed, list) else ():
            if (name := token_name(value)) is not None and name not in found:
                found.append(name)
    return found


def languages_of(specials: Iterable[str]) -> dict[str, str]:
    """The tokens that name languages, by the codes that people give."""
    found = {}
    for name in specials:
        if (code := _CODE.fullmatch(name)) is not None:
            found[next(filter(None, code.groups()))] = name
    return found
