"""TSV and CSV."""

import gzip
from pathlib import Path

import pytest

from regard.data.formats.delimited import read_csv, read_tsv
from regard.data.formats.rows import Bad, Row
from regard.errors import DataError


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    return tmp_path / "a.tsv"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


def test_a_tsv_without_wanted_columns_has_no_header(tsv: Path) -> None:
    tsv.write_text("en\tde\nHello\tHallo\n")
    assert [row.fields for row in read_tsv(str(tsv)) if isinstance(row, Row)] == [
        {"1": "en", "2": "de"},
        {"1": "Hello", "2": "Hallo"},
    ]


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


def test_a_stray_quote_does_not_swallow_the_whole_file(csv: Path) -> None:
    csv.write_text('en,de\n"stray,b\n' + "Yes,Ja\n" * 40_000)
    first, *others = read_csv(str(csv))
    assert first == Bad(str(csv), 2, "not a CSV record", '"stray,b')
    assert len(others) > 20_000
    assert all(isinstance(row, Row) for row in others)
    assert others[-1].line == 40_002


def test_a_header_that_cannot_be_read(csv: Path) -> None:
    csv.write_bytes(b"\n\xffen,de\nYes,Ja\n")
    rows = read_csv(str(csv))
    assert next(rows) == Bad(str(csv), 1, "empty line", "")
    with pytest.raises(DataError) as caught:
        next(rows)
    assert caught.value.problem == f"{csv}:2: the header cannot be read (not UTF-8)."
    assert caught.value.remedy == "Save the file again as CSV in UTF-8."
