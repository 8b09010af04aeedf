"""Axis labels: tokens as text that a picture can show. Every character has a glyph, nothing is read as a formula.

matplotlib warns for a character that no font has and draws whatever its font of last resort holds. Here fonts for more
scripts are used where the machine has them, also those that were installed after matplotlib made its list of fonts, and what
is still missing becomes a visible box. Colour fonts, as most for emoji are, have no outlines that could be drawn.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

# Tried in this order for what DejaVu Sans lacks; both it and STIX come with matplotlib.
_MORE_FONTS = (
    "STIXGeneral",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Emoji",
    "Symbola",
)
# Fonts without outlines of their own, and those whose every glyph is a box.
_COLOURED = re.compile(r"colou?r|twemoji|emojione|joypixels|blobmoji|last.?resort|adobe.?blank", re.IGNORECASE)
_MOST_SEARCHES = 4  # for characters of a page of 256 that no font has
_FOUND: list[str] = []  # fonts that were found for characters, in this process
_N_MISSING: dict[int, int] = {}
_BOX = "□"
_JOINERS = "\u200c\u200d"  # which say how the letters or emoji beside them are joined, and are not seen themselves
_WHITE_SPACE = {" ": "␣", "\n": "↵", "\r": "↵", "\t": "⇥"}


def safe_label(token: str, *, longest: int = 24) -> str:
    """Return the token as one line of characters that can be drawn, cut to `longest` of them.

    White space around a token is left out; a token of nothing else is made visible.
    """
    text = token.strip() or "".join(_WHITE_SPACE.get(character, character) for character in token)
    shown = "".join(_shown(character) for character in text) if text.strip(_JOINERS) else _BOX * len(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def without_glyph(texts: Iterable[str]) -> str:
    """The characters of texts that no font of this machine has, each once: what pictures show as boxes."""
    every = dict.fromkeys(character for text in texts for character in text)
    return "".join(one for one in every if one.isprintable() and one != _BOX and _shown(one) == _BOX)


def text_style(texts: Iterable[str] = ()) -> dict[str, Any]:
    """What every text that holds a user's words is drawn with: the fonts, and no mathematics between dollar signs.

    texts: what will be drawn, where that was not made by `safe_label` before, which finds the fonts
    """
    for character in dict.fromkeys(character for text in texts for character in text):
        _shown(character)
    return {"fontfamily": list(_fonts()), "parse_math": False}


def _fonts() -> tuple[str, ...]:
    """The fonts that are used: those that everybody knows, and those that were found for characters so far."""
    return (*_known_fonts(), *_FOUND)


@cache
def _known_fonts() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ("DejaVu Sans", *(name for name in _MORE_FONTS if name in installed))


@cache
def _shown(character: str) -> str:
    if character in _WHITE_SPACE:
        return character if character == " " else _WHITE_SPACE[character]
    if not character.isprintable() and character not in _JOINERS:
        return _BOX
    return character if any(_has(name, character) for name in _fonts()) or _find_font(character) else _BOX


def _has(name: str, character: str) -> bool:
    from matplotlib.font_manager import findfont, get_font

    return bool(get_font(findfont(name)).get_char_index(ord(character)))


def _find_font(character: str) -> bool:
    """Whether any other font of the machine has a character: it is used from now on."""
    page = ord(character) >> 8  # where some characters have no font, the others need not all be looked for
    if _N_MISSING.get(page, 0) >= _MOST_SEARCHES:
        return False
    from matplotlib.font_manager import get_font

    for name, path in _other_fonts():
        if name not in _FOUND and get_font(path).get_char_index(ord(character)):
            _FOUND.append(name)
            return True
    _N_MISSING[page] = _N_MISSING.get(page, 0) + 1
    return False


@cache
def _other_fonts() -> tuple[tuple[str, str], ...]:
    """All other fonts of the machine whose outlines can be drawn, each with its file; those without serifs first, as the
    known ones have none."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    listed = {entry.fname for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in listed:
            with suppress(Exception):  # whatever a font file does, it is no reason not to draw
                fontManager.addfont(path)
    regular = (entry for entry in fontManager.ttflist if (entry.style, entry.weight) == ("normal", 400))
    files = {entry.name: entry.fname for entry in regular if not _COLOURED.search(f"{entry.name} {entry.fname}")}
    return tuple(sorted(files.items(), key=lambda item: ("Sans" not in item[0], "Serif" in item[0], item[0])))
