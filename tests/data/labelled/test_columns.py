"""Which columns are the text and the label."""

from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.labelled.columns import Columns, choose_columns
from regard.errors import DataError


def chosen(*names: str, labelled: bool = True, by_split: bool = False, **settings: Any) -> Columns:
    fields = {name: f"cell of {name}" for name in names}
    return choose_columns("a.csv", fields, DataConfig(**settings), labelled=labelled, by_split=by_split)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("label", "sentence"), Columns("sentence", "", "label")),
        (("label", "content"), Columns("content", "", "label")),
        (("Review", "Sentiment"), Columns("Review", "", "Sentiment")),
        (("id", "text", "class"), Columns("text", "", "class")),
        (("sequence", "target"), Columns("sequence", "", "target")),
        (("premise", "hypothesis", "gold_label"), Columns("premise", "hypothesis", "gold_label")),
        (("idx", "Sentence 1", "sentence_2", "score", "genre"), Columns("Sentence 1", "sentence_2", "score")),
        (("question1", "question2", "is_duplicate"), Columns("question1", "question2", "is_duplicate")),
        (("question", "passage", "label"), Columns("question", "passage", "label")),
        (("text", "label", "label_text", "language"), Columns("text", "", "label")),
    ],
)
def test_names_that_people_use_are_found(names: tuple[str, ...], expected: Columns) -> None:
    assert chosen(*names) == expected


def test_what_is_left_beside_the_label_is_the_text() -> None:
    assert chosen("phrase", "category") == Columns("phrase", "", "category")
    assert chosen("", "phrase", "category") == Columns("phrase", "", "category")  # the index that pandas writes
    assert chosen("phrase", "polarity", label="polarity") == Columns("phrase", "", "polarity")


def test_what_is_left_beside_the_text_is_the_label() -> None:
    assert chosen("text", "spam") == Columns("text", "", "spam")
    assert chosen("phrase", "polarity", text="phrase") == Columns("phrase", "", "polarity")
    assert chosen("1", "2", text="2") == Columns("2", "", "1")


def test_the_column_of_the_part_is_not_in_the_way() -> None:
    assert chosen("phrase", "y", "set", split_column="set", by_split=True) == Columns("phrase", "", "y", "set")
    assert chosen("phrase", "y", "set", split_column="set") == Columns("phrase", "", "y", "set")
    assert chosen("phrase", "y", split_column="set") == Columns("phrase", "", "y")
    with pytest.raises(DataError, match=r"^a.csv has no column 'set'\.\nAvailable: phrase, y\.$"):
        chosen("phrase", "y", split_column="set", by_split=True)


def test_columns_are_taken_as_asked() -> None:
    assert chosen("text", "label", "title", "stars", text="title", label="Stars") == Columns("title", "", "stars")
    assert chosen("a", "b", "c", text="c", text_b="a", label="b") == Columns("c", "a", "b")
    assert chosen("premise", "hypothesis", "label", text="premise") == Columns("premise", "", "label")
    assert chosen("premise", "hypothesis", "label", text_b="hypothesis") == Columns("premise", "hypothesis", "label")


def test_numbers_count_columns() -> None:
    assert chosen("1", "2", "3", text="3", label="1") == Columns("3", "", "1")
    assert chosen("id", "phrase", "polarity", text="2", label="polarity") == Columns("phrase", "", "polarity")


def test_a_label_need_not_be_there_for_prediction() -> None:
    assert chosen("text", labelled=False) == Columns("text")
    assert chosen("text", "language", labelled=False) == Columns("text")
    assert chosen("phrase", labelled=False, label="stars") == Columns("phrase")
    assert chosen("text", "label", labelled=False) == Columns("text", "", "label")


def fault(*names: str, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        chosen(*names, **settings)
    return caught.value


def test_an_unknown_column_gets_the_near_name() -> None:
    error = fault("text", "label", text="txet")
    assert error.problem == "a.csv has no column 'txet'."
    assert error.remedy == "Did you mean text?"
    assert fault("text", "label", label="3").remedy == "Available: label, text."


def test_without_a_header_the_near_name_may_stand_in_the_first_row() -> None:
    fields = {"1": "polarity", "2": "phrase"}
    with pytest.raises(DataError) as caught:
        choose_columns("a.tsv", fields, DataConfig(text="phrases"), labelled=True, by_split=False)
    assert caught.value.remedy == "Did you mean phrase?"
    assert fault("1", "2", text="sentence").remedy == "It has no header: count its columns, from 1 to 2."
    assert fault("1", "2", text="3").remedy == "It has no header: count its columns, from 1 to 2."


def test_columns_that_cannot_be_told_are_listed() -> None:
    error = fault("a", "b", "c")
    assert error.problem == "a.csv holds 3 columns: a, b and c."
    assert error.remedy == (
        "Say which are the text and the label with --text and --label. "
        "If these are no names but a first row, write a header above it."
    )
    assert fault("text", "label", "class").remedy == "Say which is the label with --label."
    assert fault("text", "review", "label").remedy == "Say which is the text with --text."
    assert fault("a", "b", labelled=False).remedy == "Say which is the text with --text."
    error = fault("1", "2")
    assert error.problem == 'a.csv holds 2 columns: 1 ("cell of 1") and 2 ("cell of 2").'
    assert fault("text").problem == "a.csv holds 1 column: text."


def test_one_column_is_not_two() -> None:
    error = fault("text", "label", text="text", label="TEXT")
    assert error.problem == "a.csv: --text and --label name the same column, 'text'."
    assert error.remedy == "Name different ones."


def test_the_choice_as_a_sentence() -> None:
    assert Columns("a", "b", "c", "d").sentence() == "text 'a', second text 'b', label 'c', split 'd'"
    assert Columns("a").sentence() == "text 'a'"
