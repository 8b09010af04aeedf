"""The table of formats."""

from pathlib import Path

import pytest

from regard.data.formats import Row, read_rows
from regard.data.formats.registry import FORMATS, TEXT, format_of
from regard.errors import DataError


def test_every_ending_works_in_capitals_and_gzipped() -> None:
    for ending, known in FORMATS.items():
        assert format_of(f"data.v2/train{ending}") is known
        assert format_of(f"train{ending.upper()}.GZ") is known


@pytest.mark.parametrize("name", ["train.en", "train.txt", "train.lc.norm.tok.de", "train", "train.en.gz", "tsv"])
def test_whatever_is_unknown_is_text(name: str) -> None:
    assert format_of(name) is TEXT


def test_read_rows_chooses_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("en,de\nYes,Ja\n")
    (tmp_path / "a.en").write_text("en,de\n")
    assert list(read_rows(tmp_path / "a.csv")) == [Row(str(tmp_path / "a.csv"), 2, {"en": "Yes", "de": "Ja"})]
    assert list(read_rows(tmp_path / "a.en")) == [Row(str(tmp_path / "a.en"), 1, {"text": "en,de"})]


def test_a_missing_file_is_an_error_before_the_first_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_rows(tmp_path / "a.csv")


def test_numbers_may_be_texts_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na,1\n")
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": 1}\n')
    for name in ("a.csv", "a.jsonl"):
        [row] = read_rows(tmp_path / name, scalars=True)
        assert isinstance(row, Row)
        assert row.fields == {"text": "a", "label": "1"}
