"""Tables: the columns that are meant, and the rows of splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.data.formats.registry import FORMATS, TABLES, WRITABLE, Format
from regard.data.formats.rows import Bad, Row
from regard.data.formats.tables import MAX_WAITING, Table, check_tables, open_table, rows_of_splits
from regard.errors import DataError


@dataclass(frozen=True)
class Columns:
    name: str
    split: str = ""


def choose(fields: Mapping[str, str]) -> Columns:
    if "name" not in fields:
        raise DataError("which?", "say it")
    return Columns("name", "split" if "split" in fields else "")


def opened(path: Path, content: str) -> Table[Columns]:
    path.write_text(content)
    return open_table(str(path), choose, wanted=())


def test_the_columns_of_a_table_are_told_by_its_first_row(tmp_path: Path) -> None:
    assert opened(tmp_path / "a.csv", "id,name\n1,x\n").columns == Columns("name")
    assert opened(tmp_path / "b.csv", "id,name\n").columns is None
    with pytest.raises(DataError, match="which"):
        opened(tmp_path / "c.csv", "id,title\n1,x\n")


def test_keys_may_come_later(tmp_path: Path) -> None:
    early = '{"id": "1"}\n' * (MAX_WAITING - 1)
    assert opened(tmp_path / "a.jsonl", early + '{"name": "x"}\n').columns == Columns("name")
    with pytest.raises(DataError, match="which"):
        opened(tmp_path / "b.jsonl", early + '{"id": "1"}\n{"name": "x"}\n')


def test_among_very_many_keys_the_columns_are_looked_for_a_few_times(tmp_path: Path) -> None:
    tries: list[int] = []

    def counted(fields: Mapping[str, str]) -> Columns:
        tries.append(len(fields))
        return choose(fields)

    file = tmp_path / "a.jsonl"
    file.write_text("".join(f'{{"key{number}": "x"}}\n' for number in range(600)) + '{"name": "x"}\n')
    assert open_table(str(file), counted, wanted=()).columns == Columns("name")
    assert tries == [*range(1, 101), 128, 256, 512, 601]


def rows(table: Table[Columns], *splits: str) -> list[tuple[str, str] | str]:
    found = rows_of_splits([table], splits)
    return [one.reason if isinstance(one, Bad) else (one[1].fields["name"], one[2]) for one in found]


def test_the_rows_of_splits(tmp_path: Path) -> None:
    table = opened(tmp_path / "a.csv", "name,split\na,train\nb,dev\nc,later\nd,train\n")
    assert rows(table, "train") == [("a", "train"), "unknown split", ("d", "train")]
    assert rows(table, "train", "valid") == [("a", "train"), ("b", "valid"), "unknown split", ("d", "train")]
    assert rows(table) == [(name, "") for name in "abcd"]
    with pytest.raises(DataError, match="in no good row does the column 'split' say 'test'"):
        rows(table, "test")
    assert rows(opened(tmp_path / "b.csv", "id,name\n1,a\n"), "valid", "test") == [("a", "valid")]


def test_only_tables_are_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^No file was given\.\nName one or more tables: \.csv, \.tsv"):
        check_tables([], "captions")
    (tmp_path / "a.tmx").write_text("x")
    with pytest.raises(DataError, match=r"a\.tmx: captions are read from tables\."):
        check_tables([str(tmp_path / "a.tmx")], "captions")


def test_what_is_a_table_follows_from_the_registry() -> None:
    assert TABLES == (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
    assert WRITABLE == (".csv", ".tsv", ".jsonl", ".ndjson")


def test_a_new_format_is_one_line_in_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For pairs, for labelled text and for captions."""
    from regard.config import DataConfig
    from regard.data.labelled.rows import read_labelled
    from regard.data.pairs.rows import read_pairs

    def read(file: str, columns: object) -> list[Row]:
        cells = [line.split("|") for line in Path(file).read_text().splitlines()]
        return [
            Row(file, number, dict(zip(cells[0], row, strict=True))) for number, row in enumerate(cells[1:], start=2)
        ]

    monkeypatch.setitem(FORMATS, ".bar", Format(lambda file, columns: iter(read(file, columns))))
    monkeypatch.setattr("regard.data.formats.registry.TABLES", (*TABLES, ".bar"))
    (tmp_path / "a.bar").write_text("text|label\ngood|yes\n")
    [one] = read_labelled([str(tmp_path / "a.bar")], DataConfig())
    assert not isinstance(one, Bad)
    assert (one.text, one.label) == ("good", "yes")
    (tmp_path / "b.bar").write_text("en|de\nyes|ja\n")
    [pair] = read_pairs([str(tmp_path / "b.bar")])
    assert not isinstance(pair, Bad)
    assert (pair.source, pair.target) == ("yes", "ja")
