"""Translation memories."""

from pathlib import Path

import pytest

from regard.data.formats import markup
from regard.data.formats.rows import Row
from regard.data.formats.tmx import read_tmx
from regard.errors import DataError


def fields_of(
    folder: Path, body: str, *, root: str = "<tmx version='1.4'>", srclang: str = "en"
) -> list[dict[str, str]]:
    file = folder / "a.tmx"
    file.write_text(f"{root}<header srclang='{srclang}'><note>not text</note></header><body>{body}</body></tmx>")
    rows = list(read_tmx(str(file)))
    assert all(isinstance(row, Row) for row in rows)
    return [row.fields for row in rows if isinstance(row, Row)]


def test_native_code_is_dropped_and_highlighted_text_kept(tmp_path: Path) -> None:
    segment = (
        'Press <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept>, '
        '<hi type="x">not <it pos="begin">{i}</it>Quit</hi>'
        "<ph>{0}<sub>nested</sub></ph>!<ut>x</ut>"
    )
    body = f'<tu><tuv xml:lang="en"><prop>p</prop><seg>{segment}</seg></tuv></tu>'
    assert fields_of(tmp_path, body) == [{"en": "Press Save, not Quit!"}]


def unit(**segments: str) -> str:
    return (
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in segments.items()) + "</tu>"
    )


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("Hello<ph>&lt;br/&gt;</ph>World", "Hello World"),
        ("Hello<it pos='end'>x</it><ph/>World", "Hello World"),
        ("Done.<ph>&lt;br/&gt;</ph>World", "Done. World"),
        ("Hello <ph>{0}</ph>, you<ut>x</ut>!", "Hello , you!"),
        ("CO<bpt i='1'>&lt;sub&gt;</bpt>2<ept i='1'>&lt;/sub&gt;</ept>", "CO2"),
        ("Hello<bpt i='1'>x</bpt><ph/><ept i='1'>y</ept>World", "Hello World"),
    ],
)
def test_a_code_that_stands_alone_parts_two_words(tmp_path: Path, segment: str, text: str) -> None:
    assert fields_of(tmp_path, unit(en=segment)) == [{"en": text}]


def test_a_line_break_in_a_segment_is_a_space(tmp_path: Path) -> None:
    body = unit(en="Hello\n      world,\r\n\t\n and<ph/>\n  all  of <hi>you\n</hi>")
    assert fields_of(tmp_path, body) == [{"en": "Hello world, and all  of you"}]


def test_the_source_language_of_the_header_comes_first(tmp_path: Path) -> None:
    body = unit(de="Ja", fr="Oui", en="Yes")
    for srclang, languages in (
        ("en", ["en", "de", "fr"]),
        ("FR", ["fr", "de", "en"]),
        ("en-US", ["en", "de", "fr"]),
        ("en_GB", ["en", "de", "fr"]),
        ("*all*", ["de", "fr", "en"]),
        ("", ["de", "fr", "en"]),
        ("it", ["de", "fr", "en"]),
    ):
        (fields,) = fields_of(tmp_path, body, srclang=srclang)
        assert list(fields) == languages
        assert fields == {"de": "Ja", "fr": "Oui", "en": "Yes"}


def test_a_source_language_with_regions(tmp_path: Path) -> None:
    units = [{"de": "Ja", "en-US": "Yes"}, {"de": "Ja", "en-US": "Yes", "en-GB": "Aye"}]
    one, several = fields_of(tmp_path, "".join(unit(**texts) for texts in units))
    assert list(one) == ["en-US", "de"]
    assert list(several) == ["de", "en-US", "en-GB"]


def test_a_unit_may_have_a_source_language_of_its_own(tmp_path: Path) -> None:
    body = unit(de="Ja", en="Yes").replace("<tu>", "<tu srclang='de'>") + unit(de="Ja", en="Yes")
    assert [list(fields) for fields in fields_of(tmp_path, body)] == [["de", "en"], ["en", "de"]]


def test_a_language_is_spelt_as_the_file_spells_it_first(tmp_path: Path) -> None:
    units = [{"en-US": "Yes"}, {"EN-US": "No", "DE": "Nein"}, {"en_us": "Hi", "de": "Hallo"}]
    assert fields_of(tmp_path, "".join(unit(**texts) for texts in units)) == [
        {"en-US": "Yes"},
        {"en-US": "No", "DE": "Nein"},
        {"en-US": "Hi", "DE": "Hallo"},
    ]


def test_layout_around_a_segment_is_not_text(tmp_path: Path) -> None:
    assert fields_of(tmp_path, '<tu><tuv xml:lang="en">\n<seg>\n  one  two\n</seg>\n</tuv></tu>') == [
        {"en": "one  two"}
    ]


def test_a_unit_holds_what_it_holds(tmp_path: Path) -> None:
    body = (
        '<tu><tuv xml:lang="en-US"><seg>Yes</seg></tuv><tuv lang="de"><seg/></tuv></tu>'
        '<tu><tuv xml:lang="fr"><seg>Oui</seg></tuv><tuv xml:lang="fr"><seg>Si</seg></tuv>'
        "<tuv><seg>no language</seg></tuv></tu>"
    )
    assert fields_of(tmp_path, body) == [{"en-US": "Yes", "de": ""}, {"fr": "Oui"}]


def test_a_namespace_changes_nothing(tmp_path: Path) -> None:
    body = '<tu><tuv xml:lang="en"><seg>Yes</seg></tuv></tu>'
    assert fields_of(tmp_path, body, root='<tmx xmlns="http://www.lisa.org/tmx14">') == [{"en": "Yes"}]


def test_too_many_languages_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "MAX_LANGUAGES", 3)
    assert len(fields_of(tmp_path, unit(en="Yes", de="Ja", fr="Oui"))) == 1
    with pytest.raises(DataError) as caught:
        fields_of(tmp_path, unit(en="Yes", de="Ja", fr="Oui", es="Sí"))
    assert caught.value.problem == f"{tmp_path / 'a.tmx'}: more than 3 languages are in it, such as 'es'."
    assert caught.value.remedy == "Check the step that wrote it: a language is a code such as en or pt-BR."
