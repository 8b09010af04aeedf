"""gettext's catalogues."""

import gzip
import sys
from pathlib import Path

import pytest

from regard.data.formats.po import read_po
from regard.data.formats.rows import Row
from regard.errors import DataError, MissingExtraError

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: {}\\n"\n\n'
CATALOGUE = HEADER.format("de") + (
    'msgid "Yes\u2028or no"\nmsgstr "Ja\u2028oder nein"\n\n'
    '#, fuzzy\nmsgid "maybe"\nmsgstr "vielleicht nicht"\n\n'
    'msgid "later"\nmsgstr ""\n\n'
    'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"\n\n'
    'msgid ""\n"two "\n"lines\\n"\nmsgstr ""\n"zwei "\n"Zeilen\\n"\n\n'
    '#~ msgid "gone"\n#~ msgstr "weg"\n'
)


@pytest.mark.parametrize("name", ["a.po", "a.po.gz"])
def test_translated_messages_are_rows(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    content = b"\xef\xbb\xbf" + CATALOGUE.replace("\n", "\r\n").encode()
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert list(read_po(str(file))) == [
        Row(str(file), 6, {"en": "Yes\u2028or no", "de": "Ja\u2028oder nein"}),
        Row(str(file), 16, {"en": "%d file", "de": "%d Datei"}),
        Row(str(file), 16, {"en": "%d files", "de": "%d Dateien"}),
        Row(str(file), 21, {"en": "two lines\n", "de": "zwei Zeilen\n"}),
    ]


@pytest.mark.parametrize("language", ["", "en", "de or fr"])
def test_a_language_that_says_nothing_is_the_target(tmp_path: Path, language: str) -> None:
    file = tmp_path / "a.po"
    file.write_text(HEADER.format(language) + 'msgid "color"\nmsgstr "colour"\n')
    assert list(read_po(str(file))) == [Row(str(file), 6, {"en": "color", "target": "colour"})]


@pytest.mark.parametrize(
    ("given", "name"),
    [(("en", "de"), "de"), (("", "de"), "de"), (("de", "en"), "de"), (("de", ""), "de"), (("en-GB", ""), "target")],
)
def test_a_language_that_the_header_lacks_is_called_as_it_is_wanted(
    tmp_path: Path, given: tuple[str, str], name: str
) -> None:
    file = tmp_path / "a.po"
    file.write_text('msgid "Yes"\nmsgstr "Ja"\n')
    assert list(read_po(str(file), given)) == [Row(str(file), 1, {"en": "Yes", name: "Ja"})]


@pytest.mark.parametrize(
    ("forms", "rows"),
    [
        ({0: "a"}, [("one", "a")]),
        ({0: "a", 1: "b"}, [("one", "a"), ("many", "b")]),
        ({1: "b"}, [("many", "b")]),
        ({0: "a", 1: "b", 2: "c"}, [("one", "a")]),
        ({1: "b", 2: "c"}, []),
        ({0: "a", 1: "b", 2: "c", 3: "d", 4: "e", 5: "f"}, []),
    ],
)
def test_forms_of_the_plural(tmp_path: Path, forms: dict[int, str], rows: list[tuple[str, str]]) -> None:
    file = tmp_path / "a.po"
    lines = "".join(f'msgstr[{number}] "{text}"\n' for number, text in forms.items())
    file.write_text(HEADER.format("de") + f'msgid "one"\nmsgid_plural "many"\n{lines}')
    assert list(read_po(str(file))) == [Row(str(file), 6, {"en": english, "de": german}) for english, german in rows]


def test_wrong_syntax_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "a.po"
    file.write_text('msgid "a"\nmsgstr "b"\nnonsense here\n')
    with pytest.raises(DataError) as caught:
        list(read_po(str(file)))
    assert caught.value.problem == f"{file}:3: not the syntax of PO."
    assert caught.value.remedy == f"`msgfmt --check {file}` says more."


def test_another_encoding_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "a.po"
    file.write_bytes('msgid "Munich"\nmsgstr "München"\n'.encode("latin-1"))
    with pytest.raises(DataError) as caught:
        list(read_po(str(file)))
    assert caught.value.problem == f"{file}:2: not UTF-8."
    assert caught.value.remedy == f"Convert it: msgconv --to-code=UTF-8 {file}"


def test_without_polib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polib", None)
    with pytest.raises(MissingExtraError) as caught:
        list(read_po(str(tmp_path / "a.po")))
    assert caught.value.problem == "Reading PO files needs the package 'polib', which is not installed."
    assert caught.value.remedy == "Install it with: pip install 'regard[formats]'"
