"""Texts with blanks, as "The [MASK] barks.": how they are encoded, and how they are filled in."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from regard.data.formats.rows import excerpt
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import IMPORTED
from regard.data.text.tokenizer_training import SPACED
from regard.errors import UsageError
from regard.tasks.offers import max_length
from regard.tasks.results import Result, one_line

BLANK = "[MASK]"
_BLANKS = re.compile(r"\[MASK\]|<mask>")
_WITH_SPACE = (
    *SPACED,
    "tiktoken",
    "words",
    IMPORTED,
)  # kinds in which a space belongs to the token behind it, or to none


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What may stand in a blank, with the space in front of it, if any, and how likely the model holds it."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Filled(Result):
    """A text with blanks, the text with the best guess in each of them, and for each its guesses, best first.

    ids: all tokens that a decoder wrote, the end token among them; an encoder writes none
    cut: whether only what stands around the blanks was read, as the text is longer than the model's positions
    """

    source: str
    text: str
    guesses: tuple[tuple[Guess, ...], ...]
    ids: tuple[int, ...] = ()
    cut: bool = False

    @property
    def truncation(self) -> str:
        return "read around the blanks" if self.cut else ""

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
        return {"filled": self.text, "blanks": blanks, "cut": self.cut}


@dataclass(frozen=True)
class Blanks:
    """A text cut at its blanks: one part more than there are blanks, and the ids of each part."""

    text: str
    parts: tuple[str, ...]
    ids: tuple[list[int], ...]
    tokenizer: Tokenizer

    @property
    def count(self) -> int:
        return len(self.ids) - 1

    def row(self, blanks: Sequence[int]) -> list[int]:
        """The ids of the whole text, with these in the blanks."""
        ids = list(self.ids[0])
        for blank, part in zip(blanks, self.ids[1:], strict=True):
            ids += [blank, *part]
        return ids

    def windows(self, most: int | None) -> "list[Window]":
        """The text as a model reads it that takes so many tokens (None: any number): whole, or what is around its blanks.

        Blanks that are far apart have windows of their own; in each they stand in the inner half.
        """
        places = [sum(map(len, self.ids[: n + 1])) + n for n in range(self.count)]
        length = len(self.row([0] * self.count))
        if most is None or length <= most:
            return [Window(self, slice(0, self.count), cut=False)]
        found, first = [], 0
        while first < self.count:
            last = max(n for n in range(first, self.count) if n == first or places[n] - places[first] < most // 2)
            around = most - (places[last] - places[first] + 1)
            end = min(length, max(0, places[first] - around // 2) + most)
            begin = max(0, end - most)
            before = sum(place < begin for place in places)
            found.append(Window(self._between(begin, end), slice(first - before, last - before + 1), cut=True))
            first = last + 1
        return found

    def _between(self, begin: int, end: int) -> "Blanks":
        """What stands from one place of the whole row to another."""
        ids, place = [], 0  # of each part, and where it begins
        for part in self.ids:
            if place + len(part) >= begin and place <= end:
                ids.append(part[max(0, begin - place) : max(0, end - place)])
            place += len(part) + 1
        return Blanks(self.text, (), tuple(ids), self.tokenizer)

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


@dataclass(frozen=True)
class Window:
    """What is read at once of a text: all of it, or a stretch (`cut`); of its blanks, its own are filled there."""

    blanks: Blanks
    own: slice
    cut: bool


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


def most_tokens(model: object, *, n_specials: int) -> int | None:
    """How many tokens of a text the model's positions leave room for beside so many special ones; None: any number."""
    limit = max_length(model)
    return None if limit is None else max(1, limit - n_specials)


def only_window(blanks: Blanks, most: int | None) -> Blanks:
    """What is read of a text of which a picture is drawn; UsageError where that is more than one stretch."""
    first, *others = blanks.windows(most)
    if others:
        raise UsageError(
            f"The text was read around its blanks in {len(others) + 1} parts, and a picture shows one.",
            "Give a shorter text.",
        )
    return first.blanks


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
    if not text or not tokenizer.spaced or tokenizer.kind == IMPORTED:
        return tokenizer.continuing.encode(text) if text else []
    # A character of another kind, so that no token spans it and the text.
    pieces = tokenizer.pieces(("(" if text[0].isalnum() else "a") + text)
    return [piece.id for piece in pieces if piece.start > 0]
