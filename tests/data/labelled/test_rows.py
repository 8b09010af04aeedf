"""Rows of tables as labelled texts."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.formats import Bad
from regard.data.formats.splits import split_of
from regard.data.formats.tables import MAX_WAITING
from regard.data.labelled.rows import LabelColumns, Labelled, choose_label_columns, find_columns, read_labelled
from regard.errors import DataError, UsageError


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def rows(*files: str, split: str = "", labelled: bool = True, **settings: Any) -> list[Labelled | Bad]:
    return list(read_labelled(files, DataConfig(**settings), splits=(split,) if split else (), labelled=labelled))


def contents(found: Sequence[Labelled | Bad]) -> list[tuple[str, str, str]]:
    assert all(isinstance(one, Labelled) for one in found), found
    return [(one.text, one.text_b, one.label) for one in found if isinstance(one, Labelled)]


def reasons(found: Sequence[Labelled | Bad]) -> list[tuple[int, str]]:
    return [(one.line, one.reason) for one in found if isinstance(one, Bad)]


def test_the_columns_are_found_in_each_file_by_itself(tmp_path: Path) -> None:
    train = write(tmp_path / "train.tsv", "label\tsentence\n0\t dull \n1\tfine , really\n")
    dev = write(tmp_path / "dev.tsv.gz", gzip.compress(b"label\tcontent\n1\tgood\n"))
    assert contents(rows(train, dev)) == [("dull", "", "0"), ("fine , really", "", "1"), ("good", "", "1")]
    assert [(one.file, one.line) for one in rows(train, dev)] == [(train, 2), (train, 3), (dev, 2)]
    assert find_columns(dev, DataConfig()) == LabelColumns("content", "", "label")


def test_a_table_without_a_header_is_taken_by_numbers(tmp_path: Path) -> None:
    tsv = write(tmp_path / "a.tsv", "HUM\tWho was it ?\nLOC\tWhere is it ?\n")
    expected = [("Who was it ?", "", "HUM"), ("Where is it ?", "", "LOC")]
    assert contents(rows(tsv, text="2", label="1")) == expected
    csv = write(tmp_path / "a.csv", '"HUM","Who was it ?"\n"LOC","Where is it ?"\n')
    assert contents(rows(csv, text="2", label="1")) == expected
    headed = write(tmp_path / "b.csv", "label,text\nHUM,Who was it ?\nLOC,Where is it ?\n")
    assert contents(rows(headed, text="2", label="1")) == expected
    with pytest.raises(DataError) as caught:
        rows(tsv)
    assert caught.value.problem == f'{tsv} holds 2 columns: 1 ("HUM") and 2 ("Who was it ?").'


def test_labels_of_json_may_be_numbers_and_booleans(tmp_path: Path) -> None:
    records = [{"text": "a", "label": 1}, {"text": "b", "label": True}, {"text": "c", "label": 0.5}]
    file = write(tmp_path / "a.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    assert contents(rows(file)) == [("a", "", "1"), ("b", "", "true"), ("c", "", "0.5")]


def test_records_may_lack_keys(tmp_path: Path) -> None:
    records = [{"text": "a"}, {"text": "b", "label": None}, {"label": "x"}, {"text": "c", "label": ["x"]}]
    records.append({"text": "d", "label": "x"})
    file = write(tmp_path / "a.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    found = rows(file, label="label")
    assert reasons(found) == [(1, "no label"), (2, "empty label"), (3, "no text"), (4, "neither text nor number")]
    assert contents(found[-1:]) == [("d", "", "x")]


def test_records_that_never_tell_are_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"a": "x", "b": "y"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl holds 2 columns: a and b"):
        rows(file)
    for empty in ("{}\n{}\n", '{"a": ["x"]}\n'):
        file = write(tmp_path / "c.jsonl", empty)
        for labelled in (True, False):
            with pytest.raises(DataError) as caught:
                list(read_labelled([file], DataConfig(), labelled=labelled))
            assert caught.value.problem == f"{file}: its records hold no text, no number and no truth value."
            assert caught.value.remedy == 'Write them as {"name": "…"}, a text or a number under each name.'
    many = write(tmp_path / "b.jsonl", '{"a": "x", "b": "y"}\n' * MAX_WAITING + '{"text": "x", "label": "y"}\n')
    with pytest.raises(DataError, match=r"b\.jsonl holds 2 columns: a and b"):
        rows(many)


def test_labels_of_parquet_may_be_numbers(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"sentence": ["a", "b", "c"], "label": [1, 0, None], "idx": [7, 8, 9]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = rows(str(tmp_path / "a.parquet"))
    assert contents(found[:2]) == [("a", "", "1"), ("b", "", "0")]
    assert reasons(found) == [(3, "empty label")]


def test_two_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'premise,hypothesis,label\nIt rains.,"It is wet, outside.",yes\nIt rains.,,no\n')
    found = rows(file)
    assert contents(found[:1]) == [("It rains.", "It is wet, outside.", "yes")]
    assert found[1] == Bad(file, 3, "empty second text", "It rains.")


def test_bad_rows_say_why(tmp_path: Path) -> None:
    lines = [b"label\ttext", b"0\tgood", b"\tno label", b"1\t ", b"1\ta\tb", b"1\t\xff", b"1\ta\0b", b"", b"1\tfine"]
    found = rows(write(tmp_path / "a.tsv", b"\n".join(lines) + b"\n"))
    assert reasons(found) == [
        (3, "empty label"),
        (4, "empty text"),
        (5, "2 columns expected, 3 found"),
        (6, "not UTF-8"),
        (7, "NUL byte"),
        (8, "empty line"),
    ]
    assert contents([found[0], found[-1]]) == [("good", "", "0"), ("fine", "", "1")]
    escaped = write(tmp_path / "a.jsonl", '{"text": "a\\u0000b", "label": "x"}\n')
    assert reasons(rows(escaped)) == [(1, "NUL byte")]


SPLIT = "text,label,set\na,x,train\nb,y,Val\nc,,test\nd,x,extra\ne,y,TRAIN\nf,x,dev\n"


def test_the_rows_of_a_split(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", SPLIT)
    train = rows(file, split_column="set", split="train")
    assert contents(train[::2]) == [("a", "", "x"), ("e", "", "y")]
    assert train[1] == Bad(file, 5, "unknown split", "extra")
    valid = rows(file, split_column="set", split="valid")
    assert contents([valid[0], valid[2]]) == [("b", "", "y"), ("f", "", "x")]
    assert [one.reason for one in rows(file, split_column="set", split="test") if isinstance(one, Bad)] == [
        "empty label",
        "unknown split",
    ]
    assert len(rows(file, split_column="set")) == 6
    assert len(rows(file, split="train")) == 6  # without a column that says it, every row is of the split


def test_a_split_without_rows_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "text,label,set\na,x,train\n")
    with pytest.raises(DataError) as caught:
        rows(file, split_column="set", split="test")
    assert caught.value.problem == f"{file}: in no good row does the column 'set' say 'test' or 'testing'."
    assert "name another column with --split-column" in caught.value.remedy
    with pytest.raises(UsageError) as other:
        rows(file, split_column="set", split="tset")
    assert str(other.value) == "The split must be train, valid or test, not 'tset'.\nDid you mean test?"


def test_spellings_of_parts() -> None:
    assert [split_of(one) for one in ("train", " Training ", "DEV", "val", "validation", "test", "x", "")] == [
        "train",
        "train",
        "valid",
        "valid",
        "valid",
        "test",
        "",
        "",
    ]


def test_texts_without_labels(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", "text\na\n \nb\n")
    found = rows(table, labelled=False)
    assert contents([found[0], found[2]]) == [("a", "", ""), ("b", "", "")]
    assert reasons(found) == [(3, "empty text")]
    lines = write(tmp_path / "a.txt", "a b\nc\td\n")
    assert contents(rows(lines, labelled=False)) == [("a b", "", ""), ("c\td", "", "")]
    labels = write(tmp_path / "b.csv", "text,label\na,x\nb,\n")
    assert contents(rows(labels, labelled=False)) == [("a", "", ""), ("b", "", "")]


def test_files_of_other_kinds_are_refused_at_once(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "a b\n")
    with pytest.raises(DataError) as caught:
        read_labelled([file], DataConfig())
    assert caught.value.problem == f"{file}: labelled texts are read from tables."
    assert caught.value.remedy == "Convert it to one: .csv, .tsv, .jsonl, .ndjson, .parquet."
    with pytest.raises(DataError, match="labelled texts are read from tables"):
        read_labelled([write(tmp_path / "a.tmx", "<tmx/>")], DataConfig(), labelled=False)
    with pytest.raises(DataError, match="there is no such file"):
        read_labelled([str(tmp_path / "b.csv")], DataConfig())
    with pytest.raises(DataError, match="No file was given"):
        read_labelled([], DataConfig())


def test_a_file_without_rows_has_no_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.csv: no row can be read") as caught:
        find_columns(write(tmp_path / "a.csv", "text,label\n"), DataConfig())
    assert caught.value.remedy == "Check that it is the right file."


# -- which columns are meant ---------------------------------------------------------------------------------------------


def chosen(*names: str, labelled: bool = True, by_split: bool = False, **settings: Any) -> LabelColumns:
    fields = {name: f"cell of {name}" for name in names}
    return choose_label_columns("a.csv", fields, DataConfig(**settings), labelled=labelled, by_split=by_split)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("label", "sentence"), LabelColumns("sentence", "", "label")),
        (("label", "content"), LabelColumns("content", "", "label")),
        (("Review", "Sentiment"), LabelColumns("Review", "", "Sentiment")),
        (("id", "text", "class"), LabelColumns("text", "", "class")),
        (("sequence", "target"), LabelColumns("sequence", "", "target")),
        (("premise", "hypothesis", "gold_label"), LabelColumns("premise", "hypothesis", "gold_label")),
        (("idx", "Sentence 1", "sentence_2", "score", "genre"), LabelColumns("Sentence 1", "sentence_2", "score")),
        (("question1", "question2", "is_duplicate"), LabelColumns("question1", "question2", "is_duplicate")),
        (("text", "text_b", "label"), LabelColumns("text", "text_b", "label")),
        (("text_a", "text_b", "label"), LabelColumns("text_a", "text_b", "label")),
        (("Text 1", "Text 2", "score"), LabelColumns("Text 1", "Text 2", "score")),
        (("pair_ID", "sentence_A", "sentence_B", "score"), LabelColumns("sentence_A", "sentence_B", "score")),
        (("sentence", "sentence2", "score"), LabelColumns("sentence", "sentence2", "score")),
        (("question", "passage", "label"), LabelColumns("question", "passage", "label")),
        (("text", "label", "label_text", "language"), LabelColumns("text", "", "label")),
    ],
)
def test_names_that_people_use_are_found(names: tuple[str, ...], expected: LabelColumns) -> None:
    assert chosen(*names) == expected


def test_what_is_left_beside_the_label_is_the_text() -> None:
    assert chosen("phrase", "category") == LabelColumns("phrase", "", "category")
    assert chosen("", "phrase", "category") == LabelColumns("phrase", "", "category")  # the index that pandas writes
    assert chosen("phrase", "polarity", label="polarity") == LabelColumns("phrase", "", "polarity")


def test_what_is_left_beside_the_text_is_the_label() -> None:
    assert chosen("text", "spam") == LabelColumns("text", "", "spam")
    assert chosen("phrase", "polarity", text="phrase") == LabelColumns("phrase", "", "polarity")
    assert chosen("1", "2", text="2") == LabelColumns("2", "", "1")


def test_the_column_of_the_split_is_not_in_the_way() -> None:
    assert chosen("phrase", "y", "set", split_column="set", by_split=True) == LabelColumns("phrase", "", "y", "set")
    assert chosen("phrase", "y", "set", split_column="set") == LabelColumns("phrase", "", "y", "set")
    assert chosen("phrase", "y", split_column="set") == LabelColumns("phrase", "", "y")
    with pytest.raises(DataError, match=r"^a.csv has no column 'set'\.\nAvailable: phrase, y\.$"):
        chosen("phrase", "y", split_column="set", by_split=True)


def test_columns_are_taken_as_asked() -> None:
    assert chosen("text", "label", "title", "stars", text="title", label="Stars") == LabelColumns("title", "", "stars")
    assert chosen("a", "b", "c", text="c", text_b="a", label="b") == LabelColumns("c", "a", "b")
    assert chosen("premise", "hypothesis", "label", text="premise") == LabelColumns("premise", "", "label")
    assert chosen("premise", "hypothesis", "label", text_b="hypothesis") == LabelColumns(
        "premise", "hypothesis", "label"
    )


def test_numbers_count_columns() -> None:
    assert chosen("1", "2", "3", text="3", label="1") == LabelColumns("3", "", "1")
    assert chosen("id", "phrase", "polarity", text="2", label="polarity") == LabelColumns("phrase", "", "polarity")


def test_a_label_need_not_be_there_for_prediction() -> None:
    assert chosen("text", labelled=False) == LabelColumns("text")
    assert chosen("text", "language", labelled=False) == LabelColumns("text")
    assert chosen("phrase", labelled=False, label="stars") == LabelColumns("phrase")
    assert chosen("text", "label", labelled=False) == LabelColumns("text", "", "label")


def choice_fault(*names: str, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        chosen(*names, **settings)
    return caught.value


def test_columns_that_cannot_be_told_are_listed() -> None:
    error = choice_fault("a", "b", "c")
    assert error.problem == "a.csv holds 3 columns: a, b and c."
    assert error.remedy == (
        "Say which are the text and the label with --text and --label. "
        "If these are no names but a first row, write a header above it."
    )
    assert choice_fault("text", "label", "class").remedy == "Say which is the label with --label."
    assert choice_fault("text", "review", "label").remedy == "Say which is the text with --text."
    assert choice_fault("a", "b", labelled=False).remedy == "Say which is the text with --text."
    error = choice_fault("1", "2")
    assert error.problem == 'a.csv holds 2 columns: 1 ("cell of 1") and 2 ("cell of 2").'
    assert choice_fault("text").problem == "a.csv holds 1 column: text."


def test_the_choice_as_a_sentence() -> None:
    assert LabelColumns("a", "b", "c", "d").sentence() == "text 'a', second text 'b', label 'c', split 'd'"
    assert LabelColumns("a").sentence() == "text 'a'"
