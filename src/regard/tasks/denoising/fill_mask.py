"""Texts with blanks, as "The [MASK] barks.": how they are encoded, and how they are filled in."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from regard.data.formats.rows import excerpt
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import SPACED
from regard.errors import UsageError
from regard.tasks.offers import max_length
from regard.tasks.results import Result, one_line

BLANK = "[MASK]"
_BLANKS = re.compile(r"\[MASK\]|<mask>")
_WITH_SPACE = (*SPACED, "tiktoken", "words")  # kinds in which a space belongs to the token behind it, or to none


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What may stand in a blank, with the space in front of it, if any, and how likely the model holds it."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Filled(Result):
    """A text with blanks, the text with the best guess in each of them, and for each its guesses, best first.

    ids: all tokens that a decoder wrote, the end token among them; an encoder writes none
    """

    source: str
    text: str
    guesses: tuple[tuple[Guess, ...], ...]
    ids: tuple[int, ...] = ()

    def lines(self, *, top: int = 0) -> list[str]:
        guesses = [
            f"{number}\t{one_line(guess.text).strip()}\t{guess.probability:.4f}"
            for number, own in enumerate(self.guesses if top else (), start=1)
            for guess in own
        ]
        return [one_line(self.text), *guesses]

    def cells(self, *, top: int = 0) -> dict[str, Any]:
        return {"text": self.source, "filled": self.text}

    def to_json(self, *, top: int = 0) -> dict[str, Any]:
        blanks = [[{"text": one.text, "probability": one.probability} for one in own] for own in self.guesses]
        return {"filled": self.text, "blanks": blanks}


@dataclass(frozen=True)
class Blanks:
    """A text cut at its blanks: one part more than there are blanks, and the ids of each part."""

    text: str
    parts: tuple[str, ...]
    ids: tuple[list[int], ...]
    tokenizer: Tokenizer

    @property
    def count(self) -> int:
        return len(self.parts) - 1

    def row(self, blanks: Sequence[int]) -> list[int]:
        """The ids of the whole text, with these in the blanks."""
        ids = list(self.ids[0])
        for blank, part in zip(blanks, self.ids[1:], strict=True):
            ids += [blank, *part]
        return ids

    def guesses(self, fillings: Sequence[Sequence[int]]) -> list[str]:
        """What ids in the blanks mean there, spaces among it."""
        texts: list[str] = []
        ids = list(self.ids[0])
        for filling, part in zip(fillings, self.ids[1:], strict=True):
            # Decoded with what stands before: only at its beginning has a text a space that it does not show.
            before = self.tokenizer.decode(ids)
            texts.append(self.tokenizer.decode([*ids, *filling])[len(before) :])
            ids += [*filling, *part]
        return texts

    def filled(self, texts: Sequence[str]) -> str:
        """The text with these in its blanks."""
        return "".join(one for pair in zip_longest(self.parts, texts, fillvalue="") for one in pair)


def has_blank(text: str) -> bool:
    """Tell whether something is to be guessed in a text."""
    return _BLANKS.search(text) is not None


def find_blanks(text: str, tokenizer: Tokenizer) -> Blanks:
    """Cut a text at its blanks and encode the parts, so that a blank may be any token that could stand there.

    A space in front of a blank is part of what is hidden, as it is part of a word's token.
    """
    *before, last = _BLANKS.split(text)
    if not before:
        raise UsageError(
            f"There is no {BLANK} in '{excerpt(text)}'.", f"Write {BLANK} in the place of what is to be guessed."
        )
    if tokenizer.kind in _WITH_SPACE:
        before = [part.removesuffix(" ") for part in before]
    first, *others = parts = (*before, last)
    ids = tokenizer.encode(first) if first else [], *(_encode_behind(part, tokenizer) for part in others)
    return Blanks(text, parts, ids, tokenizer)


def check_fits(model: object, texts: Sequence[str], lengths: Sequence[int]) -> None:
    """Refuse a text of more tokens than the model has positions for."""
    limit = max_length(model)
    for text, length in zip(texts, lengths, strict=True):
        if limit is not None and length > limit:
            raise UsageError(
                f"The text '{excerpt(text)}' has {length:,} tokens, and the model reads at most {limit:,}.",
                "Leave out what stands far from the blanks.",
            )


def show_blanks(ids: Sequence[int], blanks: Collection[int], tokenizer: Tokenizer) -> str:
    """The text of ids, of which some are blanks."""
    specials = {*tokenizer.specials.values()}
    # Some token in front of all, so that no space is taken away behind a blank that begins the text.
    front = [id for id in ids if id not in specials][:1]
    shown, text = "", tokenizer.decode(front)
    for place, id in enumerate(ids):
        if id in blanks:
            before = tokenizer.decode([*front, *ids[:place]])
            shown += before[len(text) :] + (" " if tokenizer.kind in _WITH_SPACE else "") + BLANK
            text = before
    return (shown + tokenizer.decode([*front, *ids])[len(text) :]).removeprefix(" ")


def list_texts(texts: Iterable[str]) -> str:
    """What was hidden in several blanks, for people."""
    return " | ".join(text.strip() or text for text in texts)


def _encode_behind(text: str, tokenizer: Tokenizer) -> list[int]:
    """Encode text that goes on behind something, and so gets no space in front."""
    if not text or not tokenizer.spaced:
        return tokenizer.encode(text) if text else []
    # A character of another kind, so that no token spans it and the text.
    pieces = tokenizer.pieces(("(" if text[0].isalnum() else "a") + text)
    return [piece.id for piece in pieces if piece.start > 0]
