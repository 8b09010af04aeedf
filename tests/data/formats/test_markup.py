"""What holds for every XML file: safety, places, encodings."""

import gzip
from pathlib import Path

import pytest

from regard.data.formats import markup
from regard.data.formats.rows import Row
from regard.data.formats.tmx import read_tmx
from regard.errors import DataError

UNIT = '<tu>\n<tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'


def document(*units: str, prolog: str = "") -> str:
    return f"{prolog}<tmx version='1.4'><header/><body>\n{''.join(units)}</body></tmx>\n"


def error_of(file: Path, content: str | bytes) -> DataError:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as caught:
        list(read_tmx(str(file)))
    return caught.value


def test_entities_that_expand_are_refused_before_they_do(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1};" * 10}">\n' for n in range(1, 30))
    prolog = f'<!DOCTYPE tmx [\n<!ENTITY lol0 "lol">\n{laughs}]>\n'
    error = error_of(tmp_path / "a.tmx", document(UNIT.format("&lol29;", "x"), prolog=prolog))
    assert error.problem == f"{tmp_path}/a.tmx:2: the entity 'lol0' is declared; entities are not expanded."
    assert error.remedy == "Write the file again without a DTD of its own."


@pytest.mark.parametrize("declaration", ['x SYSTEM "file:///etc/hostname"', '% x SYSTEM "file:///etc/hostname"'])
def test_entities_from_files_are_refused(tmp_path: Path, declaration: str) -> None:
    prolog = f"<!DOCTYPE tmx [<!ENTITY {declaration}>]>"
    error = error_of(tmp_path / "a.tmx", document(UNIT.format("&x;", "x"), prolog=prolog))
    assert error.problem.endswith("a.tmx:1: the entity 'x' is declared; entities are not expanded.")


def test_a_harmless_doctype_is_accepted_and_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "tmx14.dtd").write_text("<!ENTITY x 'y'> not even a DTD <")
    file = tmp_path / "a.tmx"
    file.write_text(document(UNIT.format("Yes &amp; no", "Ja"), prolog='<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'))
    assert list(read_tmx(str(file))) == [Row(str(file), 3, {"en": "Yes & no", "de": "Ja"})]


def test_an_entity_that_is_not_defined_is_not_dropped(tmp_path: Path) -> None:
    content = document(UNIT.format("caf&eacute;", "x"), prolog='<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n')
    error = error_of(tmp_path / "a.tmx", content)
    assert error.problem == f"{tmp_path}/a.tmx:4: the entity &eacute; is not defined."
    assert error.remedy == "Write the character itself."


def test_malformed_xml_names_the_line(tmp_path: Path) -> None:
    error = error_of(tmp_path / "a.tmx", document(UNIT.format("one", "eins"), UNIT.format("<b>two", "zwei")))
    assert error.problem == f"{tmp_path}/a.tmx:5: not well-formed XML (mismatched tag)."
    assert error.remedy == "Export the file again, or repair that line."
    error = error_of(tmp_path / "a.tmx", document(UNIT.format("one", "eins")).encode() + b"\xff")
    assert error.problem == f"{tmp_path}/a.tmx:5: not well-formed XML (not well-formed (invalid token))."


def test_another_root_is_another_format(tmp_path: Path) -> None:
    error = error_of(tmp_path / "a.tmx", "<html><body/></html>")
    assert error.problem == f"{tmp_path}/a.tmx: TMX begins with <tmx>, this file with <html>."
    assert error.remedy == "Check the file's ending."


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252", "utf-8-sig"])
def test_the_encoding_is_what_the_file_says(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.tmx"
    declared = encoding.removesuffix("-sig")
    content = document(UNIT.format("Munich", "München"), prolog=f"<?xml version='1.0' encoding='{declared}'?>\n")
    file.write_bytes(content.encode(encoding))
    assert list(read_tmx(str(file))) == [Row(str(file), 3, {"en": "Munich", "de": "München"})]


@pytest.mark.parametrize("encoding", ["GB2312", "foo", "base64", "idna", "cp037", "x" * 5000])
def test_an_encoding_that_cannot_be_read(tmp_path: Path, encoding: str) -> None:
    content = document(UNIT.format("one", "eins"), prolog=f"<?xml version='1.0' encoding='{encoding}'?>\n")
    error = error_of(tmp_path / "a.tmx", content)
    shown = encoding if len(encoding) < 20 else f"{encoding[:20]}…"
    assert error.problem == f"{tmp_path}/a.tmx:1: XML in the encoding {shown} cannot be read."
    assert error.remedy == "Convert it to UTF-8."


def test_a_fault_of_ours_is_not_taken_for_an_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(markup.Units, "characters", fail)
    file = tmp_path / "a.tmx"
    file.write_text(document(UNIT.format("one", "eins"), prolog="<?xml version='1.0' encoding='UTF-8'?>\n"))
    with pytest.raises(ValueError, match="a fault of ours"):
        list(read_tmx(str(file)))


def test_units_longer_than_a_chunk_and_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "CHUNK_BYTES", 7)
    file = tmp_path / "a.tmx.gz"
    file.write_bytes(gzip.compress(document(*(UNIT.format(f"one {n}", f"eins ä {n}") for n in range(20))).encode()))
    assert list(read_tmx(str(file))) == [
        Row(str(file), 2 + 2 * n, {"en": f"one {n}", "de": f"eins ä {n}"}) for n in range(20)
    ]


def test_a_damaged_gzip_names_the_line_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "CHUNK_BYTES", 64)
    content = document(*(UNIT.format(f"one {n}", f"eins {n}") for n in range(50))).encode()
    error = error_of(tmp_path / "a.tmx.gz", gzip.compress(content)[:-4])
    assert error.problem == f"{tmp_path}/a.tmx.gz: damaged or incomplete gzip data after line 101."
