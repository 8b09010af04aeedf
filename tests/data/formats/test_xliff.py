"""XLIFF 1.2 and 2.0."""

from pathlib import Path

import pytest

from regard.data.formats.rows import Bad, Row
from regard.data.formats.xliff import read_xliff


def rows_of(folder: Path, content: str, columns: tuple[str, ...] = ()) -> list[Row | Bad]:
    (folder / "a.xliff").write_text(content)
    return list(read_xliff(str(folder / "a.xliff"), columns))


def old(units: str, languages: str = 'source-language="en-US" target-language="de"') -> str:
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="a" datatype="plaintext" {languages}><body>\n{units}</body></file></xliff>'
    )


def new(segments: str, languages: str = 'srcLang="en" trgLang="de-DE"') -> str:
    return (
        f'<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" {languages}>'
        f'<file id="f"><unit id="u">\n{segments}</unit></file></xliff>'
    )


def test_a_unit_of_1_2_without_its_codes_and_suggestions(tmp_path: Path) -> None:
    unit = (
        '<trans-unit id="1"><source>Press <g id="1">Save</g><x id="2"/> <ph id="3">{0}</ph>'
        "<mrk mtype='x'>now</mrk></source>\n"
        "<seg-source>not this</seg-source><target>Jetzt <g id='1'>speichern</g><bpt id='4'>&lt;b&gt;</bpt></target>\n"
        "<alt-trans><source>neither</source><target>auch nicht</target></alt-trans></trans-unit>\n"
    )
    assert rows_of(tmp_path, old(unit)) == [
        Row(f"{tmp_path}/a.xliff", 3, {"en-US": "Press Save now", "de": "Jetzt speichern"})
    ]


def test_segments_of_2_0(tmp_path: Path) -> None:
    segments = (
        '<segment><source>Press <pc id="1">Save</pc><ph id="2"/>.</source>'
        '<target>Auf <pc id="1">Speichern</pc>.</target></segment>\n'
        "<ignorable><source> </source><target> </target></ignorable>\n"
        '<segment state="final"><source>Yes</source><target>Ja</target></segment>\n'
    )
    file = f"{tmp_path}/a.xliff"
    assert rows_of(tmp_path, new(segments)) == [
        Row(file, 2, {"en": "Press Save.", "de-DE": "Auf Speichern."}),
        Row(file, 4, {"en": "Yes", "de-DE": "Ja"}),
    ]


def test_what_is_not_translated_is_left_out(tmp_path: Path) -> None:
    units = (
        "<trans-unit><source>a</source></trans-unit>"
        "<trans-unit><source>b</source><target/></trans-unit>"
        "<trans-unit><source>c</source><target state='needs-translation'>c</target></trans-unit>"
        "<trans-unit><source>d</source><target state='translated'>D</target></trans-unit>"
    )
    (row,) = rows_of(tmp_path, old(units))
    assert isinstance(row, Row)
    assert row.fields == {"en-US": "d", "de": "D"}
    assert rows_of(tmp_path, new('<segment state="initial"><source>a</source><target>a</target></segment>')) == []


def test_an_empty_source_is_kept_for_the_report(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, old("<trans-unit><source/><target>D</target></trans-unit>"))
    assert isinstance(row, Row)
    assert row.fields == {"en-US": "", "de": "D"}


def test_without_languages_the_fields_are_source_and_target(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, old("<trans-unit><source>d</source><target>D</target></trans-unit>", languages=""))
    assert isinstance(row, Row)
    assert row.fields == {"source": "d", "target": "D"}


@pytest.mark.parametrize(
    ("languages", "given", "names"),
    [
        ("", ("en", "de"), ["en", "de"]),
        ("", ("", "de"), ["source", "de"]),
        ('source-language="en"', ("en", "de"), ["en", "de"]),
        ('source-language="en"', ("de", "en"), ["en", "de"]),
        ('target-language="de"', ("de", "en"), ["en", "de"]),
        ('source-language="en" target-language="fr"', ("en", "de"), ["en", "fr"]),
    ],
)
def test_a_language_that_the_file_lacks_is_called_as_it_is_wanted(
    tmp_path: Path, languages: str, given: tuple[str, str], names: list[str]
) -> None:
    unit = "<trans-unit><source>d</source><target>D</target></trans-unit>"
    (row,) = rows_of(tmp_path, old(unit, languages=languages), given)
    assert isinstance(row, Row)
    assert list(row.fields.items()) == list(zip(names, ["d", "D"], strict=True))


def test_codes_that_stand_alone_and_line_breaks_are_spaces(tmp_path: Path) -> None:
    unit = (
        '<trans-unit><source>Hello<x id="1"/>World\n   again</source>'
        "<target>CO<g id='2'>2</g>, H<bx id='3'/>2<ex id='3'/>O<ph id='4'/>da</target></trans-unit>"
    )
    (row,) = rows_of(tmp_path, old(unit))
    assert isinstance(row, Row)
    assert row.fields == {"en-US": "Hello World again", "de": "CO2, H2O da"}


def test_a_language_is_spelt_as_the_document_spells_it_first(tmp_path: Path) -> None:
    unit = "<trans-unit><source>d</source><target>D</target></trans-unit>"
    files = "".join(
        f'<file source-language="{source}" target-language="{target}"><body>{unit}</body></file>'
        for source, target in (("en-US", "de"), ("EN-us", "DE"))
    )
    rows = rows_of(tmp_path, f'<xliff version="1.2">{files}</xliff>')
    assert [row.fields for row in rows if isinstance(row, Row)] == [{"en-US": "d", "de": "D"}] * 2
