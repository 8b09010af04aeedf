"""From text to tokens and back: six kinds, learned from text, kept as the `tokenizer.json` of the `tokenizers` library.

Everything that shapes the tokens stands inside the file as parts of that library, so that any program which reads such
files finds the same ids. No kind normalises the text. This file knows no model and no corpus format.

How `bpe` keeps spaces: a space belongs to the word behind it, and each text is given one space in front, which decoding
takes away again. Thus a word is the same token at the start of a sentence and inside it, and no text is changed.
`unigram` and `wordpiece` do likewise, with "▁" in place of the space.
"""

import json
import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import DataError, UsageError, did_you_mean

SPECIALS = ("<pad>", "<start>", "<end>", "<unk>")
"""The tokens 0 to 3 of every vocabulary. No text is ever encoded as one of them, but for what is unknown."""

LOSS: Mapping[str, str] = {
    "bpe": "",
    "bytes": "",
    "unigram": "Characters that were not in the training text are dropped, and the character ▁ becomes a space.",
    "wordpiece": "Words with a character that was not in the training text are dropped, as are words of more than"
    " 100 characters, and the character ▁ becomes a space.",
    "characters": "Characters that are not in the vocabulary are dropped.",
    "words": "Words that are not in the vocabulary are dropped, and white space becomes one space between all words"
    " and punctuation marks.",
}
"""What decode(encode(text)) loses, for each kind; nothing where the sentence is empty."""

KINDS = tuple(LOSS)

_SPACE = "▁"
# A word may hold hyphens and apostrophes inside (t-shirt, dog's); a run of punctuation is a word of its own.
_WORD = r"\w+(?:[-'’]\w+)*|[^\w\s]+"


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
    """Encodes and decodes; made by `learn` or `Tokenizer.load`."""

    pad_id, start_id, end_id, unknown_id = range(4)

    def __init__(self, library: tokenizers.Tokenizer) -> None:
        for id, special in enumerate(SPECIALS):
            if library.id_to_token(id) != special:
                raise DataError(f"expected {special} as token {id}, found {library.id_to_token(id)!r}.")
        self.kind = _kind_of(json.loads(library.to_str()))
        # Not kept in the file: without it, "<pad>" inside a text would become the token.
        library.encode_special_tokens = True
        self._library = library
        self._specials = {id for id, token in library.get_added_tokens_decoder().items() if token.special}
        self._front = {"bpe": "Ġ", "unigram": _SPACE, "wordpiece": _SPACE}.get(self.kind)
        self._bytes = _byte_symbols() if self.kind in ("bpe", "bytes") else None

    @property
    def lossless(self) -> bool:
        """Whether decode(encode(text)) is the text, for every text."""
        return not self.loss

    @property
    def loss(self) -> str:
        """What decode(encode(text)) loses, as a sentence; empty for nothing."""
        return LOSS[self.kind]

    @property
    def vocab_size(self) -> int:
        return int(self._library.get_vocab_size())

    @property
    def vocabulary(self) -> dict[str, int]:
        """Each token as the file spells it, with its id."""
        return dict(sorted(self._library.get_vocab().items(), key=lambda entry: entry[1]))

    def id_of(self, special: str) -> int:
        """Return the id of a special token, such as one asked for on learning."""
        id = self._library.token_to_id(special)
        if id not in self._specials:
            names = (str(self._library.id_to_token(id)) for id in self._specials)
            raise UsageError(f"There is no special token '{special}'.", did_you_mean(special, names))
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
        _refuse_surrogates([text])
        encoding = self._library.encode(text, add_special_tokens=False)
        spans = list(encoding.offsets)
        if encoding.tokens and encoding.tokens[0] == self._front:
            spans[0] = (0, 0)
        return [Piece(id, text[a:b], a, b) for id, (a, b) in zip(encoding.ids, spans, strict=True)]

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
            return str(token).removeprefix("##").replace(_SPACE, " ")
        data = bytes(self._bytes[symbol] for symbol in token)
        shown = data.decode("utf-8", errors="surrogateescape")
        return "".join(f"⟨{ord(c) - 0xDC00:02X}⟩" if "\udc80" <= c <= "\udcff" else c for c in shown)

    def to_json(self) -> str:
        """Return the file's text; the same tokenizer always gives the same."""
        return str(self._library.to_str(pretty=True))

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        path = Path(path)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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
        remedy = "Give a tokenizer.json that regard has written."
        if not Path(path).is_file():
            raise DataError(f"{path}: there is no such file.", remedy)
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except DataError as error:
            raise DataError(f"{path}: not a tokenizer of regard: {error.problem}", remedy) from None
        except Exception as error:  # the library raises nothing more particular
            raise DataError(f"{path}: not a tokenizer file: {error}.", remedy) from error


def learn(texts: Iterable[str], *, kind: str, vocab_size: int, specials: Sequence[str] = ()) -> Tokenizer:
    """Learn a tokenizer from a stream of texts.

    `vocab_size` is the most tokens it may have, special ones included; a small corpus gives fewer. `specials` are
    tokens asked for beside the four, as "<mask>"; they follow them. The same texts give the same tokenizer each time,
    but for `unigram` and `wordpiece`, where the library leaves ties to chance: keep the file.
    """
    if kind not in KINDS:
        raise UsageError(f"There is no tokenizer kind '{kind}'.", did_you_mean(kind, KINDS))
    all_specials = [*SPECIALS, *specials]
    for special in specials:
        # Only such a name is cut to pieces by every kind, and so never met in a text.
        if not re.fullmatch(r"<\w+>", special) or all_specials.count(special) > 1:
            raise UsageError(f"'{special}' cannot be a special token.", "Give distinct names such as <mask>.")
    if kind == "bytes":
        # Its tokens are known beforehand: one text shows that there is any.
        texts = islice((text for text in texts if text.strip()), 1)
    reading = _Reading(texts)
    library = _blank(kind)
    try:
        library.train_from_iterator(reading, _trainer(kind, vocab_size=vocab_size, specials=all_specials))
    except Exception as error:  # the library raises nothing more particular
        if "not large enough" not in str(error):
            raise
    if not "".join(reading.alphabet).strip():
        raise DataError("There is no text to learn a vocabulary from.", "Give a corpus with at least one word.")
    if kind == "wordpiece":
        needed = library.get_vocab_size()  # it takes the whole alphabet twice, to begin and to go on with
    else:
        alphabet = {"bpe": 256, "bytes": 256, "unigram": len(reading.alphabet - {" "} | {_SPACE})}.get(kind, 1)
        needed = len(all_specials) + alphabet
    if vocab_size < needed:
        raise UsageError(
            f"A vocabulary of kind {kind} needs at least {needed:,} tokens for this text, not {vocab_size:,}:"
            f" {len(all_specials)} special ones and its alphabet.",
            f"Set tokenizer.vocab_size to {needed:,} or more, or to 0 to let the corpus decide.",
        )
    return Tokenizer(_rounded(library) if kind == "unigram" else library)


def choose_vocab_size(texts: Iterable[str], *, kind: str = "bpe") -> int:
    """Return a good vocabulary size for a corpus: 1,000 to 32,000, in thousands; more where the alphabet needs it.

    Two thoughts. A subword needs examples to be learnt from, so the size grows with the corpus, as the number of
    distinct words does: with the square root (Heaps' law). Ten times the root of the number of words, counted as 5.5
    characters each so that writing without spaces counts too, is 8,000 for the 29,000 pairs of Multi30k, and reaches
    the customary 32,000 with about ten million words. And a corpus of few distinct words, however long, needs no more
    subwords than words. Each distinct character takes a token of its own first.
    Reads no further than the answer needs.
    """
    smallest, largest = 1_000, 32_000
    uses = {"unigram": 1, "wordpiece": 2}.get(
        kind, 0
    )  # tokens that each character needs: to begin a word, and to go on
    n_characters = 0
    distinct: set[str] = set()
    alphabet: set[str] = set()
    for text in texts:
        n_characters += len(text)
        alphabet.update(text)
        if len(distinct) < largest:
            distinct.update(text.split())
        elif 10 * sqrt(n_characters / 5.5) >= largest and not uses:
            break
    by_size = 10 * sqrt(n_characters / 5.5)
    wanted = max(smallest, min(by_size, len(distinct))) + len(alphabet)
    needed = len(SPECIALS) + uses * (len(alphabet) + 1)
    return max(min(largest, int(wanted) // 1_000 * 1_000), ceil(needed / 1_000) * 1_000)


class _Reading:
    """Passes texts on and remembers which characters they held."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self.alphabet: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        for text in self._texts:
            self.alphabet.update(text)
            yield text


def _blank(kind: str) -> tokenizers.Tokenizer:
    """Build the tokenizer of a kind, before it has learnt anything."""
    if kind in ("bpe", "bytes"):
        library = tokenizers.Tokenizer(models.BPE())
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "bpe")
        library.decoder = decoders.ByteLevel()
        if kind == "bpe":
            library.normalizer = normalizers.Prepend(" ")
            library.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    elif kind in ("unigram", "wordpiece"):
        library = tokenizers.Tokenizer(models.Unigram() if kind == "unigram" else models.WordPiece(unk_token="<unk>"))
        library.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)])
        # Each punctuation mark stands alone: so "##" can only mean "goes on", and no text becomes a special token.
        library.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(_SPACE, "merged_with_next"), pre_tokenizers.Punctuation("isolated")]
        )
        whole = [decoders.Fuse(), decoders.Replace(_SPACE, " "), decoders.Strip(" ", 1, 0)]
        joined = [decoders.Replace(Regex("^##"), "")] if kind == "wordpiece" else []
        library.decoder = decoders.Sequence(joined + whole)
    else:
        library = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        if kind == "characters":
            library.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
            library.decoder = decoders.Fuse()
        else:
            library.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "removed", invert=True)
    return library


def _trainer(kind: str, *, vocab_size: int, specials: list[str]) -> trainers.Trainer:
    """Return what fills the tokenizer of a kind with tokens."""
    common: dict[str, Any] = {"vocab_size": vocab_size, "special_tokens": specials, "show_progress": False}
    if kind in ("bpe", "bytes"):
        alphabet = sorted(_byte_symbols())
        if kind == "bytes":
            common["vocab_size"] = len(specials) + len(alphabet)
        return trainers.BpeTrainer(**common, initial_alphabet=alphabet, min_frequency=2)
    if kind == "unigram":
        return trainers.UnigramTrainer(**common, unk_token="<unk>")
    if kind == "wordpiece":
        return trainers.WordPieceTrainer(**common, min_frequency=2)
    return trainers.WordLevelTrainer(**common)


def _rounded(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Round a unigram tokenizer's scores to six decimals: longer ones change on the library's way through a file."""
    file = json.loads(library.to_str())
    file["model"]["vocab"] = [[token, round(score, 6)] for token, score in file["model"]["vocab"]]
    return tokenizers.Tokenizer.from_str(json.dumps(file))


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
    if model == "BPE" and (file["pre_tokenizer"] or {}).get("type") == "ByteLevel":
        return "bpe" if file["pre_tokenizer"]["use_regex"] else "bytes"
    if model in ("Unigram", "WordPiece"):
        return str(model).lower()
    if model == "WordLevel":
        return "characters" if file["decoder"] else "words"
    raise DataError(f"{model} is none of its kinds.")


def _byte_symbols() -> dict[str, int]:
    """Return the byte that each symbol of byte-level BPE stands for (GPT-2's table).

    Bytes that print as Latin-1 stand for themselves, the others in order for the symbols from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in sorted(printable)} | {chr(256 + n): byte for n, byte in enumerate(hidden)}
