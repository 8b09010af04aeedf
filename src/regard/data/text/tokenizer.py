"""The tokenizer: from text to tokens and back, kept as the `tokenizer.json` of the `tokenizers` library.

Everything that shapes the tokens stands inside the file as parts of that library, so that any program which reads such
files finds the same ids. Text is lower-cased or normalised (Unicode's NFC, NFKC) only where the file says so. How the file
is written and read is in `tokenizer_file.py`, how a vocabulary is learned in `tokenizer_training.py`, how one of tiktoken is
read in `formats/tiktoken.py`. This file knows no model and no corpus format.
"""

import hashlib
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from regard.data.text.merge_steps import merge_steps
from regard.data.text.roles import NO_TOKEN, SPECIALS, Roles, own_roles
from regard.data.text.tokenizer_parts import (
    FORMS,
    IMPORTED,
    as_text_only,
    hidden_tokens,
    imported_parts,
    own_parts,
    unknown_token,
    vocabulary_of,
    without_space_in_front,
)
from regard.errors import DataError, UsageError, did_you_mean

# How a run's vocabulary folder calls the files: one for all text, or one for each side of a translation.
SHARED, SOURCE, TARGET = "shared.json", "source.json", "target.json"


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
    """Encodes and decodes; made by `learn`, `read_tiktoken` or `Tokenizer.load`.

    roles: which of its special tokens does what, where it came along with somebody else's weights; by default our names do
    """

    def __init__(self, library: tokenizers.Tokenizer, roles: Roles | None = None) -> None:
        file = json.loads(library.to_str())
        self._specials = {id for id, token in library.get_added_tokens_decoder().items() if token.special}
        # Not kept in the file: without it, "<pad>" inside a text would become the token.
        library.encode_special_tokens = True
        self._library = library
        self.roles = own_roles(self.specials) if roles is None else roles
        self._parts = own_parts(file) if roles is None else imported_parts(file)
        self.kind = self._parts.kind
        self.spaced = self._parts.spaced  # whether each text is given a space in front
        self.lowercase = self._parts.lowercase  # whether all text is lower-cased
        self.normalisation = self._parts.normalisation
        self.n_pieces = int(library.get_vocab_size())  # which may be more than there are rows for: see `Roles`
        self.roles.check(self.specials, n_tokens=self.n_pieces)
        self._named = {name: self.specials[token] for name, token in self.roles.named().items()}
        self.pad_id, self.start_id, self.end_id, self.unknown_id = (
            self._named.get(name, NO_TOKEN) for name in SPECIALS
        )
        self.prefix = tuple(self.specials[token] for token in self.roles.prefix)
        self._never_read = frozenset() if roles is None else self._forbidden(file)
        self._hidden = {} if roles is None else hidden_tokens(file)
        self._spelled: dict[int, str] = {}  # the pieces that were asked for, as people read them

    def _forbidden(self, file: Mapping[str, Any]) -> frozenset[int]:
        """Which ids no text may have, though the library could give them: special tokens, and such as have no row."""
        beyond = range(self.vocab_size, self.n_pieces)
        unknown = set() if unknown_token(file) is None else {self.unknown_id}
        return frozenset((self._specials | {*beyond}) - unknown)

    @property
    def lossless(self) -> bool:
        """Whether decode(encode(text)) is the text, for every text; in the form NFC, if that is its normalisation."""
        return not self.loss and not self.lowercase and self.normalisation != "nfkc"

    @property
    def loss(self) -> str:
        """What decode(encode(text)) loses beside case and Unicode form, as a sentence; empty for nothing."""
        return self._parts.loss

    @property
    def reads_lines(self) -> bool:
        """Whether it was learned from sentences, so that running text is read line by line, each with a space in front."""
        return self.spaced and self.kind != IMPORTED

    @property
    def keeps_spaces(self) -> bool:
        """Whether white space is kept as it stands."""
        return self._parts.keeps_spaces

    def changes(self, text: str) -> bool:
        """Say whether a text is read otherwise than it is written: lower-cased, or in another Unicode form."""
        if self._parts.normalise is not None:
            return self._parts.normalise(text) != text
        if self.lowercase and text != text.lower():
            return True
        form = next((form for form in FORMS if form.lower() == self.normalisation), None)
        return form is not None and not unicodedata.is_normalized(form, text)

    @property
    def vocab_size(self) -> int:
        """How many rows an embedding has for it: as many as there are tokens, or more where others have padded it."""
        return self.roles.rows or self.n_pieces

    @property
    def n_tokens(self) -> int:
        """How many tokens there are; ids from here on are never written."""
        return min(self.n_pieces, self.vocab_size)

    @property
    def vocabulary(self) -> dict[str, int]:
        """Each token as the file spells it, with its id."""
        tokens = sorted(self._library.get_vocab().items(), key=lambda entry: entry[1])
        return dict(tokens[: self.n_tokens])

    @cached_property
    def specials(self) -> dict[str, int]:
        """Every special token with its id: the four, and those asked for on learning."""
        return {str(self._library.id_to_token(id)): id for id in sorted(self._specials)}

    def has_special(self, special: str) -> bool:
        """Whether there is such a special token, by its own name or by ours."""
        return special in self._named or special in self.specials

    def id_of(self, special: str) -> int:
        """Return the id of a special token, such as one asked for on learning, by our name for its role or by its own."""
        if not self.has_special(special):
            raise UsageError(f"There is no special token '{special}'.", did_you_mean(special, self.specials))
        return self._named[special] if special in self._named else self.specials[special]

    @property
    def gap_ids(self) -> tuple[int, ...]:
        """The tokens that stand for spans that are left out, in their order."""
        return tuple(self.specials[token] for token in self.roles.gaps)

    @property
    def opening(self) -> tuple[int, ...]:
        """What a document of running text begins with: its prefix, or else the end token of the one before."""
        return self.prefix or (self.end_id,)

    @property
    def boundary(self) -> tuple[int, ...]:
        """What stands in front of each document of running text: the end of the one before, and its own beginning."""
        return self.opening if self.opening[0] == self.end_id else (self.end_id, *self.opening)

    def unwritten(self, *, unknown: bool = False) -> tuple[int, ...]:
        """Tokens that no target holds, and so are never to be written: padding and start, with `unknown` what is unknown.

        Never the end token, which may have other roles too.
        """
        found = {self.pad_id, self.start_id} | ({self.unknown_id} if unknown else set())
        return tuple(sorted(found - {self.end_id, NO_TOKEN}))

    @cached_property
    def continuing(self) -> "Tokenizer":
        """The tokenizer of text that goes on: the same, but without a space in front where one was imported with it."""
        if self.kind != IMPORTED or not self.spaced:
            return self
        file = without_space_in_front(json.loads(self._library.to_str()))
        return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(file)), self.roles)

    @cached_property
    def _text_only(self) -> tokenizers.Tokenizer:
        """The same library, to which the names of special tokens are text like any other."""
        file = json.loads(self._library.to_str())
        names = {*self.specials} & vocabulary_of(file)
        library = tokenizers.Tokenizer.from_str(json.dumps(as_text_only(file, names)))
        library.encode_special_tokens = True
        return library

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without any special token."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts at once, on all cores."""
        try:
            found = [encoding.ids for encoding in self._library.encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:
            _refuse_surrogates(texts)
            raise
        if self.kind != IMPORTED:
            return found
        return [ids if self._is_plain(ids) else self._read(text)[0] for text, ids in zip(texts, found, strict=True)]

    def _is_plain(self, ids: Sequence[int]) -> bool:
        """Whether the ids that the library gives can be taken as they are."""
        return self._never_read.isdisjoint(ids) and not (self._hidden and self.unknown_id in ids)

    def _read(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Encode a text for which the library gives ids that are not plain; return them and their spans.

        What is named like a special token is text like any other. A piece without a row is unknown. And what this side's
        pieces do not know may be a token of the other side's.
        """
        encoding = self._text_only.encode(text, add_special_tokens=False)
        beyond = range(self.vocab_size, self.n_pieces)
        ids, spans = [], []
        for id, token, span in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            if id in beyond:
                id = self.unknown_id
            elif id == self.unknown_id:
                id = self._hidden.get(token, id)
            elif id in self._never_read:
                continue
            ids.append(id)
            spans.append(span)
        return ids, spans

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
        for text, encoding in zip(texts, self._library.encode_batch(texts, add_special_tokens=False), strict=True):
            ids, spans = list(encoding.ids), list(encoding.offsets)
            if not self._is_plain(ids):
                ids, spans = self._read(text)
            # Others put a space only in front of text that does not begin with one.
            own = self.kind != IMPORTED or not text[:1].isspace()
            if encoding.tokens[:1] == [self._parts.front] and own:
                spans[0] = (0, 0)
            found.append((ids, spans))
        return found

    def merges(self, text: str) -> list[list[str]]:
        """How byte-pair encoding makes the tokens of a text's last word, merge by merge, as people read them; none of other
        kinds, nor where the library would do otherwise."""
        _refuse_surrogates([text])
        normaliser, cut = self._library.normalizer, self._library.pre_tokenizer
        normal = text if normaliser is None else normaliser.normalize_str(text)
        words = [(normal, (0, 0))] if cut is None else cut.pre_tokenize_str(normal)
        if not words:
            return []
        states = merge_steps(self._model, words[-1][0])
        tokens = self._library.encode(text, add_special_tokens=False).tokens
        if not states or tokens[-len(states[-1]) :] != states[-1]:
            return []
        return [[self._parts.spell(symbol) for symbol in state] for state in states]

    @cached_property
    def _model(self) -> dict[str, Any]:
        """The table of the file that says how words become tokens."""
        model: dict[str, Any] = json.loads(self._library.to_str())["model"]
        return model

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
        found = self._spelled.get(id)
        if found is None:
            found = self._spelled[id] = self._spell(id)
        return found

    def _spell(self, id: int) -> str:
        if not 0 <= id < self.vocab_size:
            raise UsageError(f"There is no token {id}: the vocabulary has {self.vocab_size}.")
        if id >= self.n_pieces:
            return f"⟨{id}⟩"  # a row of the embedding that no token has
        token = str(self._library.id_to_token(id))
        return token if id in self._specials else self._parts.spell(token)

    def to_json(self) -> str:
        """Return the file's text; the same tokenizer always gives the same."""
        return str(self._library.to_str(pretty=True))

    def fingerprint(self) -> str:
        """Return a hash of the file's text, and of its roles where they stand in a file of their own."""
        roles = self.roles.to_json() if self.kind == IMPORTED else ""
        return hashlib.sha256((self.to_json() + roles).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all, and beside it the roles of an imported one."""
        from regard.data.text.tokenizer_file import save_tokenizer  # which builds tokenizers

        save_tokenizer(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Tokenizer":
        """Read a file that `save` wrote, with its roles if they stand beside it."""
        from regard.data.text.tokenizer_file import load_tokenizer

        return load_tokenizer(Path(path))


def _refuse_surrogates(texts: Iterable[str]) -> None:
    """Refuse text that no file could hold, which the library would call a wrong type."""
    for text in texts:
        if found := re.search("[\ud800-\udfff]", text):
            raise DataError(
                f"Half a surrogate pair, U+{ord(found[0]):04X}, stands at character {found.start()} of a text.",
                "Decode the text as UTF-8, or UTF-16, before it is encoded.",
            )
