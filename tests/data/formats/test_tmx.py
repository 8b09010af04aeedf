"""Translation memories."""

from pathlib import Path

from regard.data.formats.rows import Row
from regard.data.formats.tmx import read_tmx


def fields_of(folder: Path, body: str, root: str = "<tmx version='1.4'>") -> list[dict[str, str]]:
    file = folder / "a.tmx"
    file.write_text(f"{root}<header srclang='en'><note>not text</note></header><body>{body}</body></tmx>")
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
