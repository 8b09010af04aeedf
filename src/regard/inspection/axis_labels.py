"""Axis labels: tokens as text that a picture can show. Every character has a glyph, nothing is read as a formula.

matplotlib warns for a character that no font has and draws whatever its font of last resort holds. Here fonts for more
scripts are used where the machine has them, and what is still missing becomes a visible box.
"""

from collections.abc import Iterable
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
)
_BOX = "□"
_WHITE_SPACE = {" ": "␣", "\n": "↵", "\r": "↵", "\t": "⇥"}


def safe_label(token: str, *, longest: int = 24) -> str:
    """Return the token as one line of characters that can be drawn, cut to `longest` of them.

    White space around a token is left out; a token of nothing else is made visible.
    """
    text = token.strip() or "".join(_WHITE_SPACE.get(character, character) for character in token)
    shown = "".join(_shown(character) for character in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def without_glyph(texts: Iterable[str]) -> str:
    """The characters of texts that no font of this machine has, each once: what pictures show as boxes."""
    every = dict.fromkeys(character for text in texts for character in text)
    return "".join(one for one in every if one.isprintable() and one != _BOX and _shown(one) == _BOX)


def text_style() -> dict[str, Any]:
    """What every text that holds a user's words is drawn with: the fonts, and no mathematics between dollar signs."""
    return {"fontfamily": list(_fonts()), "parse_math": False}


@cache
def _fonts() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ("DejaVu Sans", *(name for name in _MORE_FONTS if name in installed))


@cache
def _shown(character: str) -> str:
    from matplotlib.font_manager import findfont, get_font

    if character in _WHITE_SPACE:
        return character if character == " " else _WHITE_SPACE[character]
    fonts = (get_font(findfont(name)) for name in _fonts())
    drawable = character.isprintable() and any(font.get_char_index(ord(character)) for font in fonts)
    return character if drawable else _BOX
