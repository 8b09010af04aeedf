"""Text that can be drawn, whatever the token."""

import pytest
from matplotlib import font_manager

from regard.inspection import axis_labels
from regard.inspection.axis_labels import safe_label, text_style


@pytest.fixture
def only_dejavu(monkeypatch):
    """The font that comes with matplotlib and no other, as on a bare machine."""
    monkeypatch.setattr(axis_labels, "_fonts", lambda: ("DejaVu Sans",))
    axis_labels._shown.cache_clear()
    yield
    axis_labels._shown.cache_clear()


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("Straße", "Straße"),
        (" dog", "dog"),
        ("▁dog", "▁dog"),
        (" ", "␣"),
        ("\n", "↵"),
        ("\t ", "⇥␣"),
        ("two\nlines", "two↵lines"),
        ("", ""),
        ("你好 👍", "□□ □"),
        ("\x00\u200b\ud800", "□□□"),
        ("x" * 25, "x" * 23 + "…"),
        ("x" * 24, "x" * 24),
    ],
)
def test_tokens_become_one_line_of_glyphs(token, shown, only_dejavu):
    assert safe_label(token) == shown


def test_another_font_is_used_for_what_the_first_lacks(only_dejavu, monkeypatch):
    assert safe_label("Ⓣ") == "□"
    axis_labels._shown.cache_clear()
    monkeypatch.setattr(axis_labels, "_fonts", lambda: ("DejaVu Sans", "STIXGeneral"))
    assert safe_label("Ⓣ") == "Ⓣ"
    assert text_style() == {"fontfamily": ["DejaVu Sans", "STIXGeneral"], "parse_math": False}


def test_only_fonts_that_the_machine_has_are_asked_for():
    fonts = axis_labels._fonts()
    assert fonts[:2] == ("DejaVu Sans", "STIXGeneral")  # both come with matplotlib
    assert set(fonts) <= set(font_manager.fontManager.get_font_names())


@pytest.mark.usefixtures("only_dejavu")
def test_what_no_font_has_is_known() -> None:
    assert axis_labels.without_glyph(["a dog \u72d7", "ein Hund \u72d7\U00013000"]) == "\u72d7\U00013000"
