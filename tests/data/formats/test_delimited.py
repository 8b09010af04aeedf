"""TSV and CSV."""

import csv as standard_csv
import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.formats import delimited
from regard.data.formats.delimited import read_csv, read_tsv
from regard.data.formats.rows import Bad, Row
from regard.errors import DataError


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    return tmp_path / "a.tsv"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


@pytest.mark.parametrize(
    "header", ["en\tde", "EN\tDE", "en-US\tzh_Hant_TW", "Source\tTARGET", "src\ttgt", "text\tlabel"]
)
def test_a_first_line_of_plain_column_names_is_a_header(tsv: Path, header: str) -> None:
    tsv.write_text(f"{header}\nHello\tHallo\n")
    names = header.split("\t")
    assert list(read_tsv(str(tsv))) == [Row(str(tsv), 2, {names[0]: "Hello", names[1]: "Hallo"})]


@pytest.mark.parametrize("columns", [(), ("en", "de"), ("1", "2")])
def test_codes_above_short_words_are_words_too(tsv: Path, columns: tuple[str, ...]) -> None:
    tsv.write_text("it\tes\nhouse\tHaus\n\nhe\ter\n" + "x\ty\n" * 30)
    found = list(read_tsv(str(tsv), columns))
    assert found[:4] == [
        Row(str(tsv), 1, {"1": "it", "2": "es"}),
        Row(str(tsv), 2, {"1": "house", "2": "Haus"}),
        Bad(str(tsv), 3, "empty line", ""),
        Row(str(tsv), 4, {"1": "he", "2": "er"}),
    ]
    assert [row.line for row in found] == list(range(1, 35))


@pytest.mark.parametrize("columns", [("it", "es"), ("", "es")])
def test_codes_that_are_wanted_are_a_header_above_any_words(tsv: Path, columns: tuple[str, str]) -> None:
    tsv.write_text("it\tes\nsi\tsi\n")
    assert list(read_tsv(str(tsv), columns)) == [Row(str(tsv), 2, {"it": "si", "es": "si"})]


@pytest.mark.parametrize("line", ["Hi\tHallo", "Hi\tIt", "no\tno", "en-suite\tde", "en\tgerman", "xx\tde"])
def test_short_words_are_no_header(tsv: Path, line: str) -> None:
    tsv.write_text(f"{line}\n")
    first, second = line.split("\t")
    assert list(read_tsv(str(tsv))) == [Row(str(tsv), 1, {"1": first, "2": second})]


@pytest.mark.parametrize(
    "header", ["label\tcontent", "id\tSentence 1\tsentence_2\tgenre\tscore", "sequence\ttarget\tset"]
)
def test_the_names_of_a_text_and_a_label_are_a_header(tsv: Path, header: str) -> None:
    names = header.split("\t")
    tsv.write_text(f"{header}\n" + "\t".join("x" for _ in names) + "\n")
    assert list(read_tsv(str(tsv))) == [Row(str(tsv), 2, dict.fromkeys(names, "x"))]


@pytest.mark.parametrize("line", ["question\tWhat is it?", "label\tBeschriftung", "text\tTexte", "0\tsentence"])
def test_one_such_name_alone_is_no_header(tsv: Path, line: str) -> None:
    tsv.write_text(f"{line}\n")
    assert next(read_tsv(str(tsv))) == Row(str(tsv), 1, dict(zip(("1", "2"), line.split("\t"), strict=True)))


def test_a_csv_is_read_by_numbers_where_numbers_are_wanted(csv: Path) -> None:
    csv.write_text('3,"One, two"\n4,Three\n')
    found = [Row(str(csv), 1, {"1": "3", "2": "One, two"}), Row(str(csv), 2, {"1": "4", "2": "Three"})]
    assert list(read_csv(str(csv), ["2", "", "1"])) == found
    csv.write_text("label,text\n4,Three\n")
    assert list(read_csv(str(csv), ["2", "1"])) == found[1:]
    assert list(read_csv(str(csv), ["text", "1"])) == [Row(str(csv), 2, {"label": "4", "text": "Three"})]


def test_one_cell_is_no_header(tsv: Path) -> None:
    tsv.write_text("de\n")
    assert list(read_tsv(str(tsv))) == [Row(str(tsv), 1, {"1": "de"})]


@pytest.mark.parametrize("line", ["En-suite room\tZimmer mit Bad", "En-suite\tMit Bad", "de\tthe"])
def test_a_wanted_name_is_compared_with_whole_codes(tsv: Path, line: str) -> None:
    tsv.write_text(f"{line}\n")
    first, second = line.split("\t")
    assert list(read_tsv(str(tsv), ["en", "de"])) == [Row(str(tsv), 1, {"1": first, "2": second})]


def test_a_header_of_other_names_needs_every_name_that_is_wanted(tsv: Path) -> None:
    tsv.write_text("english\tDeutsch\nHello\tHallo\n")
    header = Row(str(tsv), 1, {"1": "english", "2": "Deutsch"})
    hello = {"english": "Hello", "Deutsch": "Hallo"}
    assert list(read_tsv(str(tsv), ["English", "deutsch"])) == [Row(str(tsv), 2, hello)]
    assert list(read_tsv(str(tsv), ["", "deutsch"])) == [Row(str(tsv), 2, hello)]
    assert next(read_tsv(str(tsv), ["english", "de"])) == header


def test_columns_wanted_by_number_keep_their_numbers_under_a_header(tsv: Path) -> None:
    tsv.write_text("en\tde\nHello\tHallo\n")
    assert list(read_tsv(str(tsv), ["2", "1"])) == [Row(str(tsv), 2, {"1": "Hello", "2": "Hallo"})]


def test_a_tsv_with_a_wanted_column_in_its_first_line_has_a_header(tsv: Path) -> None:
    tsv.write_text("id\ten-US\tde\n7\tHello\tHallo\n")
    assert list(read_tsv(str(tsv), ["en", "de"])) == [Row(str(tsv), 2, {"id": "7", "en-US": "Hello", "de": "Hallo"})]


def test_wanted_numbers_are_columns_without_a_header(tsv: Path) -> None:
    tsv.write_text("7\tHello\tHallo\n")
    assert list(read_tsv(str(tsv), ["2", "3"])) == [Row(str(tsv), 1, {"1": "7", "2": "Hello", "3": "Hallo"})]


def test_two_columns_stay_without_header_when_no_name_fits(tsv: Path) -> None:
    tsv.write_text("Hello\tHallo\n")
    assert list(read_tsv(str(tsv), ["en", "de"])) == [Row(str(tsv), 1, {"1": "Hello", "2": "Hallo"})]


def test_quotes_mean_nothing_in_a_tsv(tsv: Path) -> None:
    tsv.write_text('"Hello\t12" disc\n')
    assert list(read_tsv(str(tsv))) == [Row(str(tsv), 1, {"1": '"Hello', "2": '12" disc'})]


def test_bad_lines_of_a_tsv(tsv: Path) -> None:
    tsv.write_bytes(b"\na\tb\na\tb\tc\nalone\n\n\xff\tb\n")
    file = str(tsv)
    assert list(read_tsv(file)) == [
        Bad(file, 1, "empty line", ""),
        Row(file, 2, {"1": "a", "2": "b"}),
        Bad(file, 3, "2 columns expected, 3 found", "a\\tb\\tc"),
        Bad(file, 4, "2 columns expected, 1 found", "alone"),
        Bad(file, 5, "empty line", ""),
        Bad(file, 6, "not UTF-8", "\\xff\\tb"),
    ]


def test_a_column_name_that_stands_twice(tsv: Path, csv: Path) -> None:
    tsv.write_text("en\tde\ten\n")
    csv.write_text("en,de,en\n")
    for file, rows in ((tsv, read_tsv(str(tsv), ["en"])), (csv, read_csv(str(csv)))):
        with pytest.raises(DataError) as caught:
            list(rows)
        assert caught.value.problem == f"{file}:1: the header names the column 'en' twice."
        assert caught.value.remedy == "Rename one of them."


def test_a_csv_with_quotes_and_line_ends_inside(csv: Path) -> None:
    csv.write_bytes(b'\xef\xbb\xbfen,de\r\n"Hello, ""you""","Hallo\r\nDu"\r\nYes,Ja\r\n')
    assert list(read_csv(str(csv))) == [
        Row(str(csv), 2, {"en": 'Hello, "you"', "de": "Hallo\nDu"}),
        Row(str(csv), 4, {"en": "Yes", "de": "Ja"}),
    ]


def test_a_csv_with_semicolons_and_gzip(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(b"en;de\nYes, please;Ja, bitte\n"))
    assert list(read_csv(str(file))) == [Row(str(file), 2, {"en": "Yes, please", "de": "Ja, bitte"})]


def test_bad_records_of_a_csv(csv: Path) -> None:
    csv.write_bytes(
        b'en,de\na,b,c\n\nM\xfcnchen,"Mun\nich"\n"text"after,b\nYes,Ja\n'
        b'alone\n"quoted\n\xfe",b\nNo,Nein\n"never closed,b\n'
    )
    file = str(csv)
    assert list(read_csv(file)) == [
        Bad(file, 2, "2 columns expected, 3 found", "a\\tb\\tc"),
        Bad(file, 3, "empty line", ""),
        Bad(file, 4, "not UTF-8", 'M\\xfcnchen,"Mun'),
        Bad(file, 6, "not a CSV record", '"text"after,b'),
        Row(file, 7, {"en": "Yes", "de": "Ja"}),
        Bad(file, 8, "2 columns expected, 1 found", "alone"),
        Bad(file, 9, "not UTF-8", '"quoted'),
        Row(file, 11, {"en": "No", "de": "Nein"}),
        Bad(file, 12, "not a CSV record", '"never closed,b'),
    ]


def test_no_line_behind_a_stray_quote_counts_as_a_row(csv: Path) -> None:
    csv.write_text('en,de\nNo,Nein\n"stray,b\n' + "Yes,Ja\n" * 40_000)
    file = str(csv)
    row, first, *others = read_csv(file)
    assert row == Row(file, 2, {"en": "No", "de": "Nein"})
    assert first == Bad(file, 3, "not a CSV record", '"stray,b')
    assert others == [Bad(file, line, "not a CSV record") for line in range(4, 40_004)]


@pytest.mark.parametrize("stray", ['"stray,b', 'a,"stray', '"stray', '"a, b","stray'])
@pytest.mark.parametrize("after", ['"A, a",B', 'A,"B, b"', '"""A""",B'])
def test_reading_goes_on_behind_the_line_where_csv_fails(csv: Path, stray: str, after: str) -> None:
    good = "Yes,Ja\n" * 30
    csv.write_text(f"en,de\n{good}{stray}\n{good}{after}\n{good}")
    rows = list(read_csv(str(csv)))
    assert [row.line for row in rows if isinstance(row, Bad)] == list(range(32, 64))
    assert [row.line for row in rows] == list(range(2, 94))


def test_a_record_of_many_characters_began_with_a_stray_quote(csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MAX_RECORD_CHARACTERS", 100)
    csv.write_text('en,de\n"stray,b\n' + "Yes,Ja\n" * 100)
    reasons = [row.reason if isinstance(row, Bad) else "" for row in read_csv(str(csv))]
    assert reasons == ["not a CSV record"] * 15 + [""] * 86


def test_a_record_of_many_lines_and_another_number_of_cells_costs_them_all(csv: Path) -> None:
    csv.write_text('en,de\n"a\nA,B\nC"\nYes,Ja\n')
    file = str(csv)
    assert list(read_csv(file)) == [
        Bad(file, 2, "2 columns expected, 1 found", "a\\nA,B\\nC"),
        Bad(file, 3, "2 columns expected, 1 found"),
        Bad(file, 4, "2 columns expected, 1 found"),
        Row(file, 5, {"en": "Yes", "de": "Ja"}),
    ]


@pytest.mark.parametrize(
    "cells",
    [
        ("Dear Sir,\nI came, saw\nand went, too", "Sehr geehrter Herr"),
        ("1,5 kg\nflour", "Mehl"),
        ("roses,red\n\nviolets,blue", "Rosen,rot\nVeilchen,blau"),
        ("x\n" * 300, "y"),
        ("one", "a,b\n" * 300),
        ("stray,b\nA,B\nC,D\nE", "F"),
        ("x" * 200_000, "longer than csv takes by itself"),
    ],
)
def test_line_ends_that_are_meant_stay(csv: Path, cells: tuple[str, str]) -> None:
    csv.write_text('en,de\n"{}","{}"\nYes,Ja\n'.format(*cells))
    line = 3 + sum(cell.count("\n") for cell in cells)
    assert list(read_csv(str(csv))) == [
        Row(str(csv), 2, dict(zip(("en", "de"), cells, strict=True))),
        Row(str(csv), line, {"en": "Yes", "de": "Ja"}),
    ]


prose = st.lists(st.sampled_from(["a", "ä ", '"', "\n", ",", ", ", ";", "\t"]), max_size=8).map("".join)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(prose, prose), min_size=1, max_size=6), st.booleans())
def test_what_the_standard_library_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], quote_all: bool
) -> None:
    file = tmp_path_factory.mktemp("csv") / "a.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = standard_csv.writer(out, quoting=standard_csv.QUOTE_ALL if quote_all else standard_csv.QUOTE_MINIMAL)
        writer.writerows([("en", "de"), *rows])
    assert [row.fields for row in read_csv(str(file)) if isinstance(row, Row)] == [
        {"en": english, "de": german} for english, german in rows
    ]


@pytest.mark.parametrize("line", ["a\rb,c", '"a",b\rc'])
def test_a_carriage_return_outside_of_quotes(csv: Path, line: str) -> None:
    csv.write_text(f"en,de\n{line}\nYes,Ja\n", newline="")
    file = str(csv)
    assert list(read_csv(file)) == [
        Bad(file, 2, "not a CSV record", line.replace("\r", "\\r")),
        Row(file, 3, {"en": "Yes", "de": "Ja"}),
    ]


def test_lines_of_one_column_are_no_sign_of_a_stray_quote(csv: Path) -> None:
    csv.write_text('text\n"one\ntwo\nthree"\n')
    assert list(read_csv(str(csv))) == [Row(str(csv), 2, {"text": "one\ntwo\nthree"})]


def test_a_header_that_cannot_be_read(csv: Path) -> None:
    csv.write_bytes(b"\n\xffen,de\nYes,Ja\n")
    rows = read_csv(str(csv))
    assert next(rows) == Bad(str(csv), 1, "empty line", "")
    with pytest.raises(DataError) as caught:
        next(rows)
    assert caught.value.problem == f"{csv}:2: the header cannot be read (not UTF-8)."
    assert caught.value.remedy == "Save the file again as CSV in UTF-8."


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_header_of_very_many_columns_takes_no_longer_than_its_length_asks(tmp_path: Path, separator: str) -> None:
    file = tmp_path / "a.csv"
    names = [f"column{number}" for number in range(30_000)]
    file.write_text(f"{separator.join(names)}\n{separator.join('x' for _ in names)}\n")
    began = time.perf_counter()
    [row] = (read_csv if separator == "," else read_tsv)(str(file), names)
    assert row == Row(str(file), 2, dict.fromkeys(names, "x"))
    assert time.perf_counter() - began < 5
