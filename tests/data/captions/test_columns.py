"""Which columns are the image, the caption and the split."""

from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.captions.columns import CaptionColumns, choose_caption_columns
from regard.errors import DataError


def chosen(*names: str, cells: tuple[str, ...] = (), **settings: Any) -> CaptionColumns:
    fields = dict(zip(names, cells or [f"cell of {name}" for name in names], strict=True))
    return choose_caption_columns("a.csv", fields, DataConfig(**settings))


def fault(*names: str, cells: tuple[str, ...] = (), **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        chosen(*names, cells=cells, **settings)
    return caught.value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("image", "caption"), CaptionColumns("image", "caption")),
        (("split", "image", "caption"), CaptionColumns("image", "caption", "split")),
        (("file_name", "text"), CaptionColumns("file_name", "text")),  # the metadata of Hugging Face's image folders
        (("image_name", "comment_number", "comment"), CaptionColumns("image_name", "comment")),
        (("id", "Path", "Sentence", "subset"), CaptionColumns("Path", "Sentence", "subset")),
        (("img", "description", "photographer"), CaptionColumns("img", "description")),
    ],
)
def test_names_that_people_use_are_found(names: tuple[str, ...], expected: CaptionColumns) -> None:
    assert chosen(*names) == expected


def test_an_image_is_known_by_its_ending_too() -> None:
    cells = ("A dog.", "a/1.JPG", "someone")
    assert chosen("words", "picture of it", "who", cells=cells, text="words") == CaptionColumns(
        "picture of it", "words"
    )
    assert chosen("bild", "satz", cells=("1.png", "Ein Hund")) == CaptionColumns("bild", "satz")


def test_what_is_left_is_the_other() -> None:
    assert chosen("image", "satz") == CaptionColumns("image", "satz")
    assert chosen("", "image", "satz") == CaptionColumns("image", "satz")  # the index that pandas writes
    assert chosen("key", "caption") == CaptionColumns("key", "caption")


def test_without_a_header_the_first_row_tells() -> None:
    assert chosen("1", "2", cells=("a.jpg", "A dog.")) == CaptionColumns("1", "2")
    assert chosen("1", "2", cells=("A dog.", "a.jpg")) == CaptionColumns("2", "1")
    assert chosen("1", "2", "3", cells=("train", "a.jpg", "A dog.")) == CaptionColumns("2", "3", "1")
    assert chosen("1", "2", "3", cells=("a.jpg", "Dev", "A dog.")) == CaptionColumns("1", "3", "2")
    assert chosen("1", "2", cells=("a.jpg", "train")) == CaptionColumns("1", "2")  # of the railway


def test_a_cell_says_no_part_under_a_header() -> None:
    cells = ("a.jpg", "A locomotive.", "train")
    assert chosen("image", "caption", "vehicle", cells=cells) == CaptionColumns("image", "caption")


def test_columns_are_taken_as_asked() -> None:
    names = ("image", "thumbnail", "caption", "title", "split", "fold")
    asked = chosen(*names, source="thumbnail", text="Title", split_column="fold")
    assert asked == CaptionColumns("thumbnail", "title", "fold")
    assert chosen("1", "2", "3", source="3", text="1") == CaptionColumns("3", "1")


def test_an_unknown_column_gets_the_near_name() -> None:
    error = fault("image", "caption", text="captoin")
    assert (error.problem, error.remedy) == ("a.csv has no column 'captoin'.", "Did you mean caption?")
    assert fault("image", "caption", source="imagge").remedy == "Did you mean image?"
    assert fault("image", "caption", split_column="part").problem == "a.csv has no column 'part'."
    assert fault("1", "2", source="photo").remedy == "It has no header: count its columns, from 1 to 2."


def test_columns_that_cannot_be_told_are_listed() -> None:
    error = fault("a", "b", "c")
    assert error.problem == "a.csv holds 3 columns: a, b and c."
    assert error.remedy == "Say which are the image and the caption with --from and --text."
    assert fault("image", "file", "caption").remedy == "Say which is the image with --from."
    assert fault("image", "caption", "text").remedy == "Say which is the caption with --text."
    assert fault("image").problem == "a.csv holds 1 column: image."
    error = fault("1", "2", "3", cells=("a.jpg", "A dog.", "A cat."))
    assert error.problem == 'a.csv holds 3 columns: 1 ("a.jpg"), 2 ("A dog.") and 3 ("A cat.").'


def test_one_column_is_not_two() -> None:
    error = fault("image", "caption", source="caption", text="caption")
    assert error.problem == "a.csv: --from and --text name the same column, 'caption'."
    assert error.remedy == "Name different ones."


def test_the_choice_as_a_sentence() -> None:
    assert CaptionColumns("a", "b", "c").sentence() == "image 'a', caption 'b', split 'c'"
    assert CaptionColumns("a", "b").sentence() == "image 'a', caption 'b'"
