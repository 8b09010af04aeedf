"""Sentence splitting: text that is too long for a model, cut between sentences, else clauses, else words."""

import re
from collections.abc import Callable

# An end mark, closing quotes or brackets, then space before what may begin a sentence; or the full-width marks alone.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+(?=[\"'«„“‘(\[¿¡]*[^\W_a-z])|(?<=[。！？])")
_CLAUSE_END = re.compile(r"(?<=[,;:–—、，；])\s*")
_WORD_END = re.compile(r"(?<=\s)(?=\S)")


def split_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a text into as few parts as possible that fit: whole sentences where they do, else clauses, else words."""
    # A part keeps the space behind it until the end, but need not make room for it.
    parts = _split(text, lambda part: fits(part.strip()), [_SENTENCE_END, _CLAUSE_END, _WORD_END])
    return [part.strip() for part in parts if part.strip()]


def _split(text: str, fits: Callable[[str], bool], cuts: list[re.Pattern[str]]) -> list[str]:
    if fits(text):
        return [text]
    if not cuts:
        half = len(text) // 2  # one endless word
        return [text] if half == 0 else _split(text[:half], fits, []) + _split(text[half:], fits, [])
    parts: list[str] = []
    for piece in _cut(text, cuts[0]):
        joined = f"{parts[-1]}{piece}" if parts else piece
        if parts and fits(joined):
            parts[-1] = joined
        else:
            parts += _split(piece, fits, cuts[1:])
    return parts


def _cut(text: str, where: re.Pattern[str]) -> list[str]:
    """Cut behind each match; the parts joined are the text."""
    ends = [match.end() for match in where.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if start < end]
