"""Tokenizers of Hugging Face folders, with the very same ids: each id is a row of somebody's embedding.

`read_tokenizers` finds the files (`tokenizer_files.py`), tells which token plays which role, and checks that all parts are
known; the way back is in `tokenizer_writing.py`. What stands around a text depends on what reads it:

    encoder-only      start text end                        BERT: [CLS] text [SEP]
    decoder-only      prefix text                           Llama: <s> text
    encoder-decoder   prefix text end  ->  start prefix …   T5: text </s>;  NLLB: eng_Latn text </s>  ->  </s> deu_Latn …
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from regard.data.text.imported_check import check_imported
from regard.data.text.roles import Roles
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_check import check_ids
from regard.data.text.tokenizer_parts import unknown_token
from regard.errors import DataError, RegardError, did_you_mean
from regard.exchange.tokenizer_files import (
    EXTRA,
    REMEDY,
    Family,
    Libraries,
    add_specials,
    languages_of,
    listed_names,
    read_json,
    read_libraries,
    token_name,
)

# Model types of config.json.
_ENCODERS = frozenset(
    [
        "albert",
        "bert",
        "camembert",
        "deberta",
        "deberta-v2",
        "distilbert",
        "electra",
        "modernbert",
        "mpnet",
        "roberta",
        "xlm-roberta",
    ]
)
_ENCODER_DECODERS = frozenset(("t5", "mt5", "marian", "m2m_100", "bart", "mbart"))
_NAMED = ("pad_token", "bos_token", "eos_token", "unk_token", "cls_token", "sep_token", "mask_token")
_SPECIAL = re.compile(r"<.+>|\[.+\]")  # as [PAD] and <|endoftext|>
# What the classes of files without a tokenizer.json take for granted.
_USUAL: Mapping[str, Mapping[str, str]] = {
    "bytes": dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
    "wordpiece": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
    "pieces": {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
}


@dataclass(frozen=True)
class FolderTokenizers:
    """The tokenizers of a source and of a target; one and the same where nothing sets them apart."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target


def read_tokenizers(
    folder: str | Path,
    *,
    family: Family | None = None,
    rows: int | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> FolderTokenizers:
    """Read the tokenizer of a Hugging Face folder.

    family:     what reads the text; by default as config.json says
    rows:       how many rows the embedding has; by default `vocab_size` of config.json, else as many as there are tokens
    languages:  of models for many (M2M100, NLLB, mBART-50, Marian to several), by their codes; by default those of
                tokenizer_config.json
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder.", REMEDY)
    config = {**read_json(folder / "generation_config.json"), **read_json(folder / "config.json")}
    settings = {
        **{key: config[key] for key in ("model_type",) if key in config},
        **read_json(folder / "special_tokens_map.json"),
        **read_json(folder / "tokenizer_config.json"),
    }
    try:
        family, rows = family or _family(config), rows or _size(config)
        libraries = read_libraries(folder, settings, rows=rows)
        reading = _Reading(libraries, settings, config, family, rows)
        asked = source_language or target_language
        if asked and not (family == "encoder-decoder" and languages_of(reading.specials)):
            raise DataError(
                f"it has no token that names a language, and {asked} is asked for.",
                "Leave --source-language and --target-language out.",
            )
        languages = (source_language or settings.get("src_lang"), target_language or settings.get("tgt_lang"))
        return reading.tokenizers(*languages)
    except RegardError as error:
        named = error.problem if str(folder) in error.problem else f"{folder}: {error.problem}"
        raise DataError(named, error.remedy or REMEDY) from None
    except BaseException as error:  # the library raises nothing more particular; a panic of it is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)):
            raise
        raise DataError(f"{folder}: its tokenizer cannot be read: {str(error)[:200]}.", REMEDY) from error


class _Reading:
    """One folder: its libraries, made to what `Tokenizer` takes, and the roles of its tokens."""

    def __init__(
        self, libraries: Libraries, settings: Mapping[str, Any], config: Mapping[str, Any], family: Family, rows: int
    ) -> None:
        self.libraries = libraries
        self.settings = settings
        self.config = config
        self.family = family
        self.rows = rows
        for library in self._both():
            library.no_truncation()
            library.no_padding()
        self.front, self.back = _around(libraries.source) if libraries.origin == "json" else ((), ())
        for library in self._both():
            library.post_processor = None  # the roles say what stands around a text
        self.names = self._names()
        known = libraries.source.get_vocab(with_added_tokens=True)
        size = rows or len(known)
        # Padding that somebody added without giving it a row is not missed: any token can pad.
        self.names = {key: name for key, name in self.names.items() if name in known or len(known) < size}
        for library in self._both():
            self._add(library)
        self.specials = _specials(libraries.source)

    def _both(self) -> list[tokenizers.Tokenizer]:
        libraries = self.libraries
        return [libraries.source] if libraries.source is libraries.target else [libraries.source, libraries.target]

    def _names(self) -> dict[str, str]:
        """The special tokens by what transformers calls them."""
        usual = _USUAL.get(self.libraries.origin, {})
        vocabulary = self.libraries.source.get_vocab(with_added_tokens=True)
        found = {}
        for key in _NAMED:
            name = token_name(self.settings.get(key))
            if key == "pad_token" and name in vocabulary and not self._is_special(name):
                continue  # a token of texts; any token can pad
            if name is None and key not in self.settings and usual.get(key) in vocabulary:
                name = usual[key]
            if name is None and type(id := self.config.get(f"{key}_id")) is int:
                name = self.libraries.source.id_to_token(id) if id >= 0 else None
                # Many configs name an id 0 that is a token of texts: as a special one, no text would have a "!" any more.
                name = name if self._is_special(name) else None
            if name is not None:
                found[key] = name
        return found

    def _is_special(self, name: str | None) -> bool:
        """Whether a token is none of texts: it was added, or its name stands in brackets."""
        added = self.libraries.source.get_added_tokens_decoder().values()
        return name is not None and (any(name == one.content for one in added) or bool(_SPECIAL.fullmatch(name)))

    def _add(self, library: tokenizers.Tokenizer) -> None:
        """Add the tokens that the settings name, those that are tokens already under the ids that they have."""
        added = {token.content for token in library.get_added_tokens_decoder().values()}
        for id, token in sorted(_by_id(self.settings.get("added_tokens_decoder")).items()):
            if token.content in added:
                continue
            if library.token_to_id(token.content) not in (None, id) or id > library.get_vocab_size():
                raise DataError(
                    f"its added token '{token.content}' has id {id:,}, and its other tokens another or a gap."
                )
            library.add_special_tokens([token]) if token.special else library.add_tokens([token])
        known = library.get_vocab(with_added_tokens=True)
        unknown = unknown_token(json.loads(library.to_str()))
        listed = [name for name in (*listed_names(self.settings), unknown) if name in known]
        add_specials(library, list(dict.fromkeys([*self.names.values(), *map(str, listed)])))

    def tokenizers(self, source_language: str | None, target_language: str | None) -> FolderTokenizers:
        """The tokenizers of both sides, checked."""
        roles = self._roles()
        if self.family != "encoder-decoder":
            tokenizer = _made(self.libraries.source, roles)
            return FolderTokenizers(tokenizer, tokenizer)
        source, target = self._by_language(roles, source_language, target_language)
        first = _made(self.libraries.source, source)
        if source == target and self.libraries.source is self.libraries.target:
            return FolderTokenizers(first, first)
        library = self.libraries.target
        if library is self.libraries.source:
            library = tokenizers.Tokenizer.from_str(library.to_str())
        return FolderTokenizers(first, _made(library, target))

    def _by_language(self, roles: Roles, source: str | None, target: str | None) -> tuple[Roles, Roles]:
        """The roles of both sides: what stands in front of a text names its language, or for Marian the other's."""
        codes, suffixed = (
            languages_of(self.specials),
            str(self.settings.get("tokenizer_class")).startswith("MBartTokenizer"),
        )
        if not codes:
            if self.libraries.origin == "json" and self.back != (roles.end,):
                behind = " ".join(self.back) or "nothing"
                raise DataError(f"it puts {behind} behind a text, and only {roles.end} is supported there.")
            return roles, roles
        if suffixed or self.settings.get("legacy_behaviour"):
            raise DataError("it names the language behind a text, and only in front of it is supported.")
        marian = all(token.startswith(">>") for token in codes.values())
        for language, side in ((target, "target"),) if marian else ((source, "source"), (target, "target")):
            if language not in codes:
                problem = f"it is for many languages, and the {side} language is {language or 'not given'}."
                raise DataError(problem, did_you_mean(str(language), codes))
        assert target is not None
        if marian:
            return dataclasses.replace(roles, prefix=(codes[target],)), dataclasses.replace(roles, prefix=())
        assert source is not None
        read, written = (dataclasses.replace(roles, prefix=(codes[language],)) for language in (source, target))
        return read, written

    def _roles(self) -> Roles:
        names = self.names
        end = names.get("sep_token") or names.get("eos_token")
        start = names.get("cls_token") or names.get("bos_token")
        prefix: tuple[str, ...] = ()
        if self.family != "encoder-only":
            end = names.get("eos_token") or names.get("sep_token")
            start, prefix = names.get("bos_token"), self._front()
        if self.family == "encoder-decoder":
            id = self.config.get("decoder_start_token_id")
            begins = self.libraries.target.id_to_token(id) if type(id) is int and id >= 0 else None
            start = begins or names.get("bos_token") or names.get("pad_token")
        if end is None:
            raise DataError("no token of it ends a text: neither eos_token nor sep_token is named.")
        if self.family == "encoder-only" and (self.front, self.back) not in (((start,), (end,)), ((), ())):
            raise DataError(f"it puts {' '.join((*self.front, 'TEXT', *self.back))}, not {start} TEXT {end}.")
        gaps = {int(found[1]): name for name in self.specials if (found := EXTRA.fullmatch(name))}
        unknown = unknown_token(json.loads(self.libraries.source.to_str())) or names.get("unk_token")
        return Roles(
            end=end,
            pad=names.get("pad_token"),
            start=start,
            unknown=unknown,
            mask=names.get("mask_token"),
            gaps=tuple(gaps[number] for number in range(len(gaps)) if number in gaps),
            prefix=prefix,
            rows=self._rows(),
        )

    def _rows(self) -> int:
        """How many rows the embedding has, if not one for each token."""
        size = int(self.libraries.source.get_vocab_size())
        if self.rows and self.rows < size and self.libraries.origin != "pieces":
            raise DataError(f"it has {size:,} tokens, and the embedding {self.rows:,} rows.")
        return 0 if self.rows == size else self.rows

    def _front(self) -> tuple[str, ...]:
        """What stands in front of a text."""
        added, start = self.settings.get("add_bos_token"), self.names.get("bos_token")
        if added is None and self.libraries.origin == "json":
            return self.front
        if added is None:  # as the classes have it that read such files: Llama's, and BART's
            added = (self.libraries.origin, self.family) in (("pieces", "decoder-only"), ("bytes", "encoder-decoder"))
        return (start,) if added and start is not None else ()


def _made(library: tokenizers.Tokenizer, roles: Roles) -> Tokenizer:
    check_ids(library)
    check_imported(library, roles)
    return Tokenizer(_rounded(library), roles)


def _rounded(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Round a unigram model's scores to twelve digits: longer ones change each time that the library reads a file."""
    file = json.loads(library.to_str())
    if file["model"]["type"] != "Unigram":
        return library
    file["model"]["vocab"] = [[token, float(f"{score:.12g}")] for token, score in file["model"]["vocab"]]
    return tokenizers.Tokenizer.from_str(json.dumps(file))


def _around(library: tokenizers.Tokenizer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is put in front of a text, and behind it."""
    encoding = library.encode("a", add_special_tokens=True)
    inside = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    if not inside:
        return (), ()
    return tuple(encoding.tokens[: inside[0]]), tuple(encoding.tokens[inside[-1] + 1 :])


def _specials(library: tokenizers.Tokenizer) -> list[str]:
    return [token.content for _, token in sorted(library.get_added_tokens_decoder().items()) if token.special]


def _by_id(listed: Any) -> dict[int, tokenizers.AddedToken]:
    """The added tokens of tokenizer_config.json."""
    found = {}
    for id, value in listed.items() if isinstance(listed, dict) else ():
        name = token_name(value)
        if name is None or not isinstance(id, str) or not id.isdecimal() or len(id) > 9:
            raise DataError("its added_tokens_decoder is not a table of tokens by their ids.")
        flags = value if isinstance(value, dict) else {}
        kept = {key: bool(flags.get(key)) for key in ("lstrip", "rstrip", "single_word", "special")}
        found[int(id)] = tokenizers.AddedToken(name, normalized=bool(flags.get("normalized", True)), **kept)
    return found


def _family(config: Mapping[str, Any]) -> Family:
    model_type = str(config.get("model_type"))
    if config.get("is_encoder_decoder") or model_type in _ENCODER_DECODERS:
        return "encoder-decoder"
    return "encoder-only" if model_type in _ENCODERS else "decoder-only"


def _size(config: Mapping[str, Any]) -> int:
    size = config.get("vocab_size", 0)
    if type(size) is not int or size < 0:
        raise DataError(f"vocab_size of its config.json is a whole number, not {repr(size)[:60]}.", REMEDY)
    return size
