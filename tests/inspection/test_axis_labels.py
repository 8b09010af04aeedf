"""Text that can be drawn, whatever the token."""

import pytest
from matplotlib import font_manager

from regard.inspection import axis_labels
from regard.inspection.axis_labels import safe_label, text_style


@pytest.fixture
def only_dejavu(monkeypatch):
    """The font that comes with matplotlib and no other, as on a bare machine."""
    monkeypatch.setattr(axis_labels, "_fonts", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(axis_labels, "_other_fonts", lambda: ())
    monkeypatch.setattr(axis_labels, "_N_MISSING", {})
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
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("\u200d", "□"),
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


def test_any_font_of_the_machine_is_found_for_what_the_others_lack(only_dejavu, monkeypatch):
    stix = font_manager.findfont("STIXGeneral")
    monkeypatch.setattr(axis_labels, "_FOUND", [])
    monkeypatch.setattr(axis_labels, "_known_fonts", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(axis_labels, "_fonts", lambda: ("DejaVu Sans", *axis_labels._FOUND))
    monkeypatch.setattr(axis_labels, "_other_fonts", lambda: (("STIXGeneral", stix),))
    assert text_style(["Ⓣ"])["fontfamily"] == ["DejaVu Sans", "STIXGeneral"]
    assert safe_label("Ⓣ") == "Ⓣ"


def test_a_font_that_is_newer_than_the_list_of_fonts_is_found(monkeypatch):
    """matplotlib keeps its list between runs: who installs a font, as the note says, would not see it."""
    path = font_manager.findfont("STIXGeneral")
    entries = [entry for entry in font_manager.fontManager.ttflist if entry.fname != path]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", entries)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [path, "/nothing/at/all.ttf"])
    assert ("STIXGeneral", path) in axis_labels._other_fonts.__wrapped__()


def test_where_many_have_no_font_not_every_character_is_looked_for(only_dejavu, monkeypatch):
    asked = []
    monkeypatch.setattr(axis_labels, "_other_fonts", lambda: asked.append(1) or ())
    assert safe_label("".join(chr(0x4E00 + number) for number in range(20))) == "□" * 20
    assert len(asked) == axis_labels._MOST_SEARCHES


@pytest.mark.parametrize("name", ["Noto Color Emoji", "/fonts/Twemoji.Mozilla.ttf", "LastResort", "Apple Color Emoji"])
def test_fonts_without_outlines_are_left_alone(name):
    assert axis_labels._COLOURED.search(name)
    assert not axis_labels._COLOURED.search("Noto Emoji")


def test_only_fonts_that_the_machine_has_are_asked_for():
    fonts = axis_labels._fonts()
    assert fonts[:2] == ("DejaVu Sans", "STIXGeneral")  # both come with matplotlib
    assert set(fonts) <= set(font_manager.fontManager.get_font_names())


@pytest.mark.usefixtures("only_dejavu")
def test_what_no_font_has_is_known() -> None:
    assert axis_labels.without_glyph(["a dog \u72d7", "ein Hund \u72d7\U00013000"]) == "\u72d7\U00013000"
