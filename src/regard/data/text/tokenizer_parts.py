"""What the parts of a tokenizer file make of a text: its kind, what is lost, how a token is spelt for people.

The parts are those of the `tokenizers` library: normalizer, pre_tokenizer, model, decoder. A vocabulary of our own is known
by them; one that came along with somebody else's weights is of the kind `imported`, and asked what it does.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import tokenizers

from regard.errors import DataError

FORMS: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")
"""The Unicode forms to which text can be normalised, as the library calls them."""

SPACE = "▁"
"""What `unigram`, `wordpiece` and `sentencepiece`, and SentencePiece itself, write for a space."""

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""What SentencePiece and `sentencepiece` write for the bytes of a character that is not in the vocabulary."""

IMPORTED = "imported"

LOSS: Mapping[str, str] = {
    "bpe": "",
    "bytes": "",
    "tiktoken": "",
    "sentencepiece": "The character ▁ becomes a space.",
    "unigram": "Characters that were not in the training text are dropped, and the character ▁ becomes a space.",
    "wordpiece": "Words with a character that was not in the training text are dropped, as are words of more than"
    " 100 characters, and the character ▁ becomes a space.",
    "characters": "Characters that are not in the vocabulary are dropped.",
    "words": "Words that are not in the vocabulary are dropped, and white space becomes one space between all words"
    " and punctuation marks.",
}
"""What decode(encode(text)) loses, for each kind, beside case and Unicode form; nothing where the sentence is empty."""

# The token of a space that was put in front of the text.
_FRONT = {"bpe": "Ġ", "unigram": SPACE, "wordpiece": SPACE, "sentencepiece": SPACE}
_DROP_SPACES = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_BYTE = re.compile("<0x([0-9A-F]{2})>")  # a byte of a character that is not in the vocabulary
_PROBES = {"NFKC": ("ﬁ", "fi"), "NFC": ("e\u0301", "é")}  # what only such a form changes so

File = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is known of a tokenizer by its parts.

    spaced:        whether each text is given a space in front
    front:         the token of that space alone
    keeps_spaces:  whether white space is kept as it stands
    spell:         from a token as the file spells it to what it stands for
    normalise:     from a text to what is read of it, but for spaces in front
    """

    kind: str
    spaced: bool
    lowercase: bool
    normalisation: str
    loss: str
    keeps_spaces: bool
    front: str | None
    spell: Callable[[str], str]
    normalise: Callable[[str], str] | None = None


def own_parts(file: File) -> Parts:
    """Return what is known of a tokenizer that regard has put together."""
    kind, names = _kind_of(file), [step["type"] for step in steps(file["normalizer"])]
    spaced = "Prepend" in names
    spell: Callable[[str], str] = _with_marks
    if kind in ("characters", "words"):
        spell = str
    elif kind in ("bpe", "bytes", "tiktoken"):
        spell = partial(_from_bytes, byte_symbols())
    elif kind == "sentencepiece":
        spell = _imported_spelling(file, byte_level=False)
    return Parts(
        kind=kind,
        spaced=spaced,
        lowercase="Lowercase" in names,
        normalisation=next((form.lower() for form in FORMS if form in names), "none"),
        loss=LOSS[kind],
        keeps_spaces=kind != "words",
        front=_FRONT.get(kind) if spaced else None,
        spell=spell,
    )


def imported_parts(file: File) -> Parts:
    """Return what is known of a tokenizer that somebody else has put together, of parts that were checked."""
    cuts = {step["type"] for step in steps(file["pre_tokenizer"])}
    byte_level = "ByteLevel" in cuts
    normalise = normaliser([one for one in steps(file["normalizer"]) if not _marks_spaces(one)])
    forms = [form.lower() for form, (written, read) in _PROBES.items() if normalise(written) == read]
    spaced = any(map(_puts_space, (*steps(file["normalizer"]), *steps(file["pre_tokenizer"]))))
    keeps_spaces = not cuts & _DROP_SPACES
    return Parts(
        kind=IMPORTED,
        spaced=spaced,
        lowercase=normalise("A") == "a",
        normalisation=forms[0] if forms else "none",
        loss=_loss(file, byte_level=byte_level, keeps_spaces=keeps_spaces, spaced=spaced),
        keeps_spaces=keeps_spaces,
        front=("Ġ" if byte_level else SPACE) if spaced else None,
        spell=_imported_spelling(file, byte_level=byte_level),
        normalise=normalise,
    )


def steps(part: File | None) -> list[dict[str, Any]]:
    """Return what a part consists of, in order: a sequence's parts, sequences inside it among them, or itself."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [dict(part)]
    lists = (part.get(name) for name in ("normalizers", "pretokenizers", "decoders", "processors"))
    return [step for parts in lists for one in parts or () for step in steps(one)]


def as_part(parts: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """Return steps as one part, the inverse of `steps`; `name` is what a sequence calls them."""
    return ({"type": "Sequence", name: parts} if len(parts) > 1 else parts[0]) if parts else None


def normaliser(parts: list[dict[str, Any]]) -> Callable[[str], str]:
    """Return what these steps make of a text."""
    if not parts:
        return str
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    file: File = {"version": "1.0", "added_tokens": [], "model": model, "normalizer": as_part(parts, "normalizers")}
    library = tokenizers.Tokenizer.from_str(json.dumps(file))
    return lambda text: str(library.normalizer.normalize_str(text))


def without_space_in_front(file: File) -> dict[str, Any]:
    """Return a tokenizer file that gives text no space in front, for text that goes on."""
    before = [one for one in steps(file["normalizer"]) if one["type"] != "Prepend"]
    cuts = steps(file["pre_tokenizer"])
    for one in cuts:
        if one["type"] == "Metaspace":
            one.update(prepend_scheme="never")
        if one["type"] == "ByteLevel":
            one.update(add_prefix_space=False)
    return {**file, "normalizer": as_part(before, "normalizers"), "pre_tokenizer": as_part(cuts, "pretokenizers")}


def as_text_only(file: File, specials: set[str]) -> dict[str, Any]:
    """Return a tokenizer file of the same ids in which no text can become one of these tokens.

    Their names get spaces, which no piece of text has any more when the model sees it. Merges that lead to them go.
    """
    model = dict(file["model"])
    new = {name: f" {name} " for name in specials}
    if isinstance(model["vocab"], list):  # unigram: pairs of a token and its score
        model["vocab"] = [[new.get(token, token), score] for token, score in model["vocab"]]
    else:
        model["vocab"] = {new.get(token, token): id for token, id in model["vocab"].items()}
    if "merges" in model:
        pairs = (tuple(one.split(" ", 1)) if isinstance(one, str) else tuple(one) for one in model["merges"])
        model["merges"] = [pair for pair in pairs if not specials & {*pair, "".join(pair)}]
    if model.get("unk_token") in new:
        model["unk_token"] = new[model["unk_token"]]
    added = [{**token, "content": new.get(token["content"], token["content"])} for token in file["added_tokens"]]
    return {**file, "model": model, "added_tokens": added}


def vocabulary_of(file: File) -> set[str]:
    """Return the tokens that the model itself may give."""
    vocabulary = file["model"]["vocab"]  # of unigram, pairs of a token and its score
    return {token for token, _ in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)


def hidden_tokens(file: File) -> dict[str, int]:
    """Return the tokens that a space in front hides from text, by what they stand for; for unigram models alone.

    They belong to another model that shares the vocabulary, as that of Marian's other side.
    """
    if not isinstance(file["model"]["vocab"], list):
        return {}
    return {name[1:]: id for id, (name, _) in enumerate(file["model"]["vocab"]) if name.startswith(" ")}


def unknown_token(file: File) -> str | None:
    """Return what the model gives for what it does not know; None where it knows all, or drops the rest."""
    model = file["model"]
    if isinstance(model["vocab"], list):
        return None if model["unk_id"] is None else str(model["vocab"][model["unk_id"]][0])
    return None if model.get("unk_token") is None else str(model["unk_token"])


def byte_symbols() -> dict[str, int]:
    """Return the byte that each symbol of byte-level BPE stands for (GPT-2's table).

    Bytes that print as Latin-1 stand for themselves, the others in order for the symbols from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in sorted(printable)} | {chr(256 + n): byte for n, byte in enumerate(hidden)}


def _kind_of(file: File) -> str:
    """Tell the kind from the parts in the file, so that the file needs nothing beside them."""
    model = file["model"]["type"]
    cut = file["pre_tokenizer"] or {}
    if model == "BPE" and cut.get("type") == "ByteLevel":
        return "bpe" if cut["use_regex"] else "bytes"
    if model == "BPE" and [part["type"] for part in cut.get("pretokenizers", [])] == ["Split", "ByteLevel"]:
        return "tiktoken"
    if model == "BPE" and file["model"]["byte_fallback"]:
        if not _has_bytes(file):
            raise DataError("it has no token for some byte.")
        return "sentencepiece"
    if model in ("WordLevel", "WordPiece") and file["model"]["unk_token"] not in file["model"]["vocab"]:
        raise DataError("it has no token for unknown words.")
    if model in ("Unigram", "WordPiece"):
        return str(model).lower()
    if model == "WordLevel":
        return "characters" if file["decoder"] else "words"
    raise DataError(f"{model} is none of its kinds.")


def _puts_space(step: File) -> bool:
    """Whether a step gives each text a space in front."""
    if step["type"] == "Metaspace":
        return bool(step["prepend_scheme"] != "never")
    return step["type"] == "Prepend" or (step["type"] == "ByteLevel" and bool(step["add_prefix_space"]))


def _marks_spaces(step: File) -> bool:
    """Whether a step of the normaliser only puts a space in front, or marks spaces."""
    marks = step["type"] == "Replace" and step["content"] == SPACE and step["pattern"] == {"String": " "}
    return bool(marks or step["type"] == "Prepend")


def _loss(file: File, *, byte_level: bool, keeps_spaces: bool, spaced: bool) -> str:
    vocabulary = file["model"]["vocab"]
    if not keeps_spaces:
        return (
            "White space is not kept as it stands, characters that are not in the vocabulary are dropped, and perhaps the"
            " words that they stand in."
        )
    if byte_level and not spaced and all(symbol in vocabulary for symbol in byte_symbols()):
        return ""
    if file["model"].get("byte_fallback") and _has_bytes(file):
        return LOSS["sentencepiece"]
    if byte_level:
        return "A text may come back with a space in front."
    return "Characters that are not in the vocabulary are dropped, and the character ▁ becomes a space."


def _has_bytes(file: File) -> bool:
    """Whether every byte has a token, for characters that have none."""
    return {*BYTES} <= vocabulary_of(file)


def _with_marks(token: str) -> str:
    return token.removeprefix("##").replace(SPACE, " ")


def _from_bytes(symbols: Mapping[str, int], token: str) -> str:
    """The text of a token of byte symbols; a byte that is no whole character as "⟨E2⟩"."""
    shown = bytes(symbols[symbol] for symbol in token).decode("utf-8", errors="surrogateescape")
    return "".join(f"⟨{ord(c) - 0xDC00:02X}⟩" if "\udc80" <= c <= "\udcff" else c for c in shown)


def _imported_spelling(file: File, *, byte_level: bool) -> Callable[[str], str]:
    symbols = byte_symbols()
    added = {token["content"] for token in file["added_tokens"]}
    goes_on = file["model"].get("continuing_subword_prefix") or ""
    ends_word = file["model"].get("end_of_word_suffix") or ""
    bytes_alone = bool(file["model"].get("byte_fallback"))

    def spell(token: str) -> str:
        if token in added:
            return token
        if byte_level:
            return _from_bytes(symbols, token) if all(symbol in symbols for symbol in token) else token
        if bytes_alone and (byte := _BYTE.fullmatch(token)):
            number = int(byte[1], 16)
            return chr(number) if number < 0x80 else f"⟨{number:02X}⟩"
        # A space in front hides a token of the other side's vocabulary from text.
        return token.removeprefix(" ").removeprefix(goes_on).removesuffix(ends_word).replace(SPACE, " ")

    return spell
