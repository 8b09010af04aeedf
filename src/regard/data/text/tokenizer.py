"""The tokenizer: from text to tokens and back, kept as the `tokenizer.json` of the `tokenizers` library.

Everything that shapes the tokens stands inside the file as parts of that library, so that any program which reads such
files finds the same ids. Text is lower-cased or normalised (Unicode's NFC, NFKC) only where the file says so. How a
vocabulary is learned is in `tokenizer_training.py`, how one of tiktoken is read in `formats/tiktoken.py`. This file knows
no model and no corpus format.
"""

import hashlib
import json
import os
import re
import tempfile
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tokenizers

from regard.data.formats.rows import excerpt
from regard.errors import DataError, UsageError, did_you_mean
from regard.regular_files import MEGABYTE, read_regular

# How a run's vocabulary folder calls the files: one for all text, or one for each side of a translation.
SHARED, SOURCE, TARGET = "shared.json", "source.json", "target.json"

MOST_FILE = 256 * MEGABYTE

SPECIALS = ("<pad>", "<start>", "<end>", "<unk>")
"""What every vocabulary has: as tokens 0 to 3 where we learned it, behind all others where it was brought along.

No text is ever encoded as one of them, but for what is unknown.
"""

FORMS: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")
"""The Unicode forms to which text can be normalised, as the library calls them."""

SPACE = "▁"
"""What `unigram` and `wordpiece` write for a space."""

LOSS: Mapping[str, str] = {
    "bpe": "",
    "bytes": "",
    "tiktoken": "",
    "unigram": "Characters that were not in the training text are dropped, and the character ▁ becomes a space.",
    "wordpiece": "Words with a character that was not in the training text are dropped, as are words of more than"
    " 100 characters, and the character ▁ becomes a space.",
    "characters": "Characters that are not in the vocabulary are dropped.",
    "words": "Words that are not in the vocabulary are dropped, and white space becomes one space between all words"
    " and punctuation marks.",
}
"""What decode(encode(text)) loses, for each kind, beside case and Unicode form; nothing where the sentence is empty."""

_FRONT = {"bpe": "Ġ", "unigram": SPACE, "wordpiece": SPACE}  # the token of a space that was put in front of the text


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a text: `text` is text[start:end].

    A character whose bytes are spread over several tokens is the text of each of them. A piece that stands only for
    the space put in front of the text is empty.
    """

    id: int
    text: str
    start: int
    end: int


class Tokenizer:
    """Encodes and decodes; made by `learn`, `read_tiktoken` or `Tokenizer.load`."""

    def __init__(self, library: tokenizers.Tokenizer) -> None:
        self._specials = {id for id, token in library.get_added_tokens_decoder().items() if token.special}
        for special in SPECIALS:
            if library.token_to_id(special) not in self._specials:
                raise DataError(f"it has no special token {special}.")
        file = json.loads(library.to_str())
        self.kind = _kind_of(file)
        # Not kept in the file: without it, "<pad>" inside a text would become the token.
        library.encode_special_tokens = True
        self._library = library
        steps = _normalisers(file)
        self.spaced = "Prepend" in steps  # whether each text is given a space in front
        self.lowercase = "Lowercase" in steps  # whether all text is lower-cased
        self.normalisation = next((form.lower() for form in FORMS if form in steps), "none")
        self._front = _FRONT.get(self.kind) if self.spaced else None
        self._bytes = byte_symbols() if self.kind in ("bpe", "bytes", "tiktoken") else None
        self.pad_id, self.start_id, self.end_id, self.unknown_id = map(self.id_of, SPECIALS)

    @property
    def lossless(self) -> bool:
        """Whether decode(encode(text)) is the text, for every text; in the form NFC, if that is its normalisation."""
        return not self.loss and not self.lowercase and self.normalisation != "nfkc"

    @property
    def loss(self) -> str:
        """What decode(encode(text)) loses beside case and Unicode form, as a sentence; empty for nothing."""
        return LOSS[self.kind]

    def changes(self, text: str) -> bool:
        """Say whether a text is read otherwise than it is written: lower-cased, or in another Unicode form."""
        if self.lowercase and text != text.lower():
            return True
        form = next((form for form in FORMS if form.lower() == self.normalisation), None)
        return form is not None and not unicodedata.is_normalized(form, text)

    @property
    def vocab_size(self) -> int:
        return int(self._library.get_vocab_size())

    @property
    def vocabulary(self) -> dict[str, int]:
        """Each token as the file spells it, with its id."""
        return dict(sorted(self._library.get_vocab().items(), key=lambda entry: entry[1]))

    @property
    def specials(self) -> dict[str, int]:
        """Every special token with its id: the four, and those asked for on learning."""
        return {str(self._library.id_to_token(id)): id for id in sorted(self._specials)}

    def id_of(self, special: str) -> int:
        """Return the id of a special token, such as one asked for on learning."""
        id = self._library.token_to_id(special)
        if id not in self._specials:
            raise UsageError(f"There is no special token '{special}'.", did_you_mean(special, self.specials))
        return int(id)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without any special token."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts at once, on all cores."""
        try:
            return [encoding.ids for encoding in self._library.encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:
            _refuse_surrogates(texts)
            raise

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; special tokens are dropped, bytes that make no character become U+FFFD."""
        return str(self._library.decode(ids, skip_special_tokens=True))

    def pieces(self, text: str) -> list[Piece]:
        """Return the tokens of a text with the characters that each stands for."""
        [(ids, spans)] = self.spans_batch([text])
        return [Piece(id, text[a:b], a, b) for id, (a, b) in zip(ids, spans, strict=True)]

    def spans_batch(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Return for each of many texts its ids, and for each id where the characters begin and end that it stands for."""
        _refuse_surrogates(texts)
        found = []
        for encoding in self._library.encode_batch(texts, add_special_tokens=False):
            spans = list(encoding.offsets)
            if encoding.tokens[:1] == [self._front]:
                spans[0] = (0, 0)
            found.append((list(encoding.ids), spans))
        return found

    def unknown(self, text: str) -> list[str]:
        """Return what of a text is not in the vocabulary, characters or words, each once and in their order."""
        unknown = (piece.text for piece in self.pieces(text) if piece.id == self.unknown_id)
        return list(dict.fromkeys(one.strip() or one for one in unknown))  # a word may have its space with it

    def words(self, text: str) -> list[int]:
        """Return for each piece which word of text.split() it belongs to.

        White space alone belongs to the word after it, or to the last one; to -1 where there is no word.
        """
        ends = [word.end() for word in re.finditer(r"\S+", text)]
        return [min(bisect_right(ends, piece.start), len(ends) - 1) for piece in self.pieces(text)]

    def piece_text(self, id: int) -> str:
        """Return one token as people read it: " dog", "s"; a byte that is no whole character as "⟨E2⟩"."""
        token = self._library.id_to_token(id)
        if token is None:
            raise UsageError(f"There is no token {id}: the vocabulary has {self.vocab_size}.")
        if id in self._specials or self.kind in ("characters", "words"):
            return str(token)
        if self._bytes is None:
            return str(token).removeprefix("##").replace(SPACE, " ")
        data = bytes(self._bytes[symbol] for symbol in token)
        shown = data.decode("utf-8", errors="surrogateescape")
        return "".join(f"⟨{ord(c) - 0xDC00:02X}⟩" if "\udc80" <= c <= "\udcff" else c for c in shown)

    def to_json(self) -> str:
        """Return the file's text; the same tokenizer always gives the same."""
        return str(self._library.to_str(pretty=True))

    def fingerprint(self) -> str:
        """Return a hash of the file's text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        path = Path(path)
        # Under such a name, a run deletes what a kill leaves of it.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".tmp-{path.name}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a file that `save` wrote."""
        from regard.data.text.tokenizer_check import check_ids, check_parts  # which builds tokenizers

        remedy = "Give a tokenizer.json that regard has written."
        try:
            content = read_regular(Path(path), most=MOST_FILE)
        except FileNotFoundError:
            raise DataError(f"{path}: there is no such file.", remedy) from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}.", remedy) from None
        try:
            library = tokenizers.Tokenizer.from_str(content.decode())
            check_ids(library)
            tokenizer = cls(library)
            form = tokenizer.normalisation
            check_parts(library, kind=tokenizer.kind, lowercase=tokenizer.lowercase, normalisation=form)
            return tokenizer
        except DataError as error:
            raise DataError(f"{path}: not a tokenizer of regard: {error.problem}", remedy) from None
        except Exception as error:  # the library raises nothing more particular
            raise DataError(f"{path}: not a tokenizer file: {excerpt(str(error), characters=200)}.", remedy) from error


def _refuse_surrogates(texts: Iterable[str]) -> None:
    """Refuse text that no file could hold, which the library would call a wrong type."""
    for text in texts:
        if found := re.search("[\ud800-\udfff]", text):
            raise DataError(
                f"Half a surrogate pair, U+{ord(found[0]):04X}, stands at character {found.start()} of a text.",
                "Decode the text as UTF-8, or UTF-16, before it is encoded.",
            )


def _kind_of(file: Mapping[str, Any]) -> str:
    """Tell the kind from the parts in the file, so that the file needs nothing beside them."""
    model = file["model"]["type"]
    cut = file["pre_tokenizer"] or {}
    if model == "BPE" and cut.get("type") == "ByteLevel":
        return "bpe" if cut["use_regex"] else "bytes"
    if model == "BPE" and [part["type"] for part in cut.get("pretokenizers", [])] == ["Split", "ByteLevel"]:
        return "tiktoken"
    if model in ("WordLevel", "WordPiece") and file["model"]["unk_token"] not in file["model"]["vocab"]:
        raise DataError("it has no token for unknown words.")
    if model in ("Unigram", "WordPiece"):
        return str(model).lower()
    if model == "WordLevel":
        return "characters" if file["decoder"] else "words"
    raise DataError(f"{model} is none of its kinds.")


def _normalisers(file: Mapping[str, Any]) -> list[str]:
    """What is done to a text before it is cut, in order, by the names of the library."""
    first = file["normalizer"] or {"type": "Sequence", "normalizers": []}
    return [one["type"] for one in first.get("normalizers", [first])]


def byte_symbols() -> dict[str, int]:
    """Return the byte that each symbol of byte-level BPE stands for (GPT-2's table).

    Bytes that print as Latin-1 stand for themselves, the others in order for the symbols from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in sorted(printable)} | {chr(256 + n): byte for n, byte in enumerate(hidden)}
