"""Tables written again with further columns: what was there stays."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.data.formats.registry import read_rows, row_writer
from regard.data.formats.rows import Row
from regard.errors import DataError, UsageError

ADDED = ("prediction", "probability")


def written(file: Path, values: Sequence[Sequence[str | float]], wanted: Sequence[str] = ()) -> list[str]:
    table = row_writer(str(file), ADDED, columns=wanted)
    rows = [row for row in read_rows(file, columns=wanted, scalars=True) if isinstance(row, Row)]
    return [*table.heading(), *(table.line(row, own) for row, own in zip(rows, values, strict=True))]


def test_a_csv_keeps_its_cells_and_its_quotes(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('id,text\n7,"good, very good"\n8,"a ""quoted""\nword"\n')
    assert written(file, [("yes", 0.51234567), ("no", 1.0)]) == [
        "id,text,prediction,probability",
        '7,"good, very good",yes,0.51234567',
        '8,"a ""quoted""\nword",no,1',
    ]


def test_a_csv_with_semicolons_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id;text\n7;gut, sehr gut\n")
    assert written(file, [("ja", 0.5)]) == ["id;text;prediction;probability", "7;gut, sehr gut;ja;0.5"]


def test_a_csv_without_a_header_gets_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("7,good\n8,bad\n")
    assert written(file, [("yes", 1.0), ("no", 1.0)], wanted=["2"]) == ["7,good,yes,1", "8,bad,no,1"]


def test_a_tsv_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('text\tlabel\n"odd\t1\n')
    assert written(file, [("two\twords", 0.25)]) == ["text\tlabel\tprediction\tprobability", '"odd\t1\ttwo words\t0.25']
    file.write_text("something\telse\n")
    assert written(file, [("yes", 0.5)]) == ["something\telse\tyes\t0.5"]


def test_json_lines_keep_whatever_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    record = {"text": "größer", "n": 3, "more": [1, {"a": None}]}
    file.write_text(json.dumps(record) + "\n")
    [line] = written(file, [("yes", 0.5)])
    assert json.loads(line) == {**record, "prediction": "yes", "probability": 0.5}
    assert "größer" in line


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,prediction\na,b\n"),
        ("a.tsv", "text\tlabel\tprediction\na\tb\tc\n"),
        ("a.jsonl", '{"text": "a", "prediction": 1}\n'),
    ],
)
def test_a_column_is_not_written_over(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        written(tmp_path / name, [("yes", 1.0)])
    assert caught.value.problem == f"{tmp_path / name} has a column 'prediction' already."
    assert caught.value.remedy == "Rename it: the new column has that name."


def test_text_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(UsageError) as caught:
        row_writer(str(tmp_path / "a.txt"), ADDED)
    assert caught.value.problem.startswith(f"{tmp_path / 'a.txt'} is no table that columns can be added to")
    assert "regard predict RUN < FILE" in caught.value.remedy
