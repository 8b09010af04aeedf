"""The rows of tables as captions of images: with a header or without, in splits or whole, every path inside the folder."""

import dataclasses
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.config import DataConfig
from regard.data.captions.rows import CaptionColumns, Captioned, choose_caption_columns
from regard.data.captions.source import CaptionSource
from regard.data.formats import Bad
from regard.errors import DataError


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.png"):
        (tmp_path / name).write_bytes(b"an image, for all that the table knows")
    (tmp_path / "images" / "more").mkdir(parents=True)
    for name in ("c.jpg", "more/d.jpg"):
        (tmp_path / "images" / name).write_bytes(b"another")
    return tmp_path


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def opened(file: str, **settings: Any) -> CaptionSource:
    source = CaptionSource(files=(file,), data=DataConfig(**settings))
    assert len(source.tables) == 1
    return source


def table(path: Path, content: str | bytes, **settings: Any) -> CaptionSource:
    return opened(write(path, content), **settings)


def read(source: CaptionSource, *splits: str) -> list[Captioned | Bad]:
    return list(dataclasses.replace(source, splits=splits).read())


def fault(path: Path, content: str | bytes, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read(table(path, content, **settings))
    return caught.value


# -- formats and headers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "image\tcaption\na.jpg\tA dog.\nb.png\tA cat.\n"),
        ("t.csv", "image,caption\na.jpg,A dog.\nb.png,A cat.\n"),
        ("t.csv", "image;caption\na.jpg;A dog.\nb.png; A cat. \n"),
        ("t.jsonl", '{"image": "a.jpg", "caption": "A dog."}\n{"caption": " A cat.", "image": "b.png"}\n'),
        ("t.tsv", "bild\tsatz\na.jpg\tA dog.\nb.png\tA cat.\n"),
        ("t.tsv", "source\ttext\na.jpg\tA dog.\nb.png\tA cat.\n"),  # a header for all that read tables
    ],
)
def test_a_table_with_a_header(images: Path, name: str, content: str) -> None:
    source = table(images / name, content)
    first = 2 - name.endswith(".jsonl")
    assert read(source) == [
        Captioned("A dog.", f"{images}/a.jpg", "", source.files[0], first),
        Captioned("A cat.", f"{images}/b.png", "", source.files[0], first + 1),
    ]


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("t.tsv", "a.jpg\tA dog.\nb.png\tA cat.\n", CaptionColumns("1", "2")),
        ("t.tsv", "A dog.\ta.jpg\nA cat.\tb.png\n", CaptionColumns("2", "1")),
        ("t.tsv", "train\ta.jpg\tA dog.\ntrain\tb.png\tA cat.\n", CaptionColumns("2", "3", "1")),
        ("t.csv", 'a.jpg,"A dog."\nb.png,A cat.\n', CaptionColumns("1", "2")),
    ],
)
def test_a_first_line_that_names_an_image_is_no_header(
    images: Path, name: str, content: str, columns: CaptionColumns
) -> None:
    source = table(images / name, content)
    assert source.tables[0].columns == columns
    found = [(one.text, one.line) for one in read(source) if isinstance(one, Captioned)]
    assert found == [("A dog.", 1), ("A cat.", 2)]


def test_columns_by_number_pass_over_the_header(images: Path) -> None:
    for name, content in (("t.tsv", "x\ty\tz\nA dog.\tno\ta.jpg\n"), ("t.csv", "x,y,z\nA dog.,no,a.jpg\n")):
        source = table(images / name, content, image="3", text="1")
        assert source.tables[0].columns == CaptionColumns("z", "x")
        assert len(read(source)) == 1


def test_a_packed_table(images: Path) -> None:
    source = table(images / "t.csv.gz", gzip.compress(b"image,caption\na.jpg,A dog.\n"))
    assert read(source) == [Captioned("A dog.", f"{images}/a.jpg", "", source.files[0], 2)]


def test_records_may_lack_keys(images: Path) -> None:
    records = [{}, {"image": "a.jpg"}, {"image": "a.jpg", "caption": "A dog."}, {"caption": "A cat."}]
    source = table(images / "t.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    file = source.files[0]
    assert read(source) == [
        Bad(file, 1, "no image", ""),
        Bad(file, 2, "no caption", "a.jpg"),
        Captioned("A dog.", f"{images}/a.jpg", "", file, 3),
        Bad(file, 4, "no image", "A cat."),
    ]


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "captions.txt", "image,caption\n")
    with pytest.raises(DataError) as caught:
        opened(file)
    assert caught.value.problem == f"{file}: captions are read from tables."
    assert caught.value.remedy == "Convert it to one: .csv, .tsv, .jsonl, .ndjson, .parquet."
    with pytest.raises(DataError, match="there is no such file"):
        opened(f"{tmp_path}/none.tsv")
    with pytest.raises(DataError, match="a file was expected, this is a folder"):
        opened(str(tmp_path))
    with pytest.raises(DataError, match="the file is empty"):
        opened(write(tmp_path / "t.tsv", ""))
    with pytest.raises(DataError, match="its first bytes say UTF-16"):
        opened(write(tmp_path / "t.tsv", "image\tcaption\n".encode("utf-16")))
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match="this is a pipe"):
        opened(f"{tmp_path}/pipe.tsv")


# -- rows ---------------------------------------------------------------------------------------------------------------


def test_bad_rows(images: Path) -> None:
    content = b"image\tcaption\na.jpg\t \n\tA dog.\na.jpg\nb.png\tA\tcat\n\nx.jpg\tA fox.\nb.png\t\xff\na.jpg\tA dog.\n"
    source = table(images / "t.tsv", content)
    file = source.files[0]
    assert read(source) == [
        Bad(file, 2, "empty caption", "a.jpg"),
        Bad(file, 3, "empty image", "A dog."),
        Bad(file, 4, "2 columns expected, 1 found", "a.jpg"),
        Bad(file, 5, "2 columns expected, 3 found", "b.png\\tA\\tcat"),
        Bad(file, 6, "empty line", ""),
        Bad(file, 7, "no such image", f"{images}/x.jpg"),
        Bad(file, 8, "not UTF-8", "b.png\\t\\xff"),
        Captioned("A dog.", f"{images}/a.jpg", "", file, 9),
    ]


def test_a_table_without_a_good_row(images: Path) -> None:
    for content in ("image\tcaption\n", "image,caption\n"):
        assert read(table(images / ("t.tsv" if "\t" in content else "t.csv"), content)) == []
    assert read(table(images / "t.jsonl", "[]\n")) == [Bad(f"{images}/t.jsonl", 1, "not a JSON object", "[]")]
    assert "its records hold no text" in fault(images / "t.jsonl", "[]\n{}\n").problem


def test_null_in_a_record(images: Path) -> None:
    source = table(
        images / "t.jsonl", '{"image": "a.jpg\\u0000", "caption": "A dog."}\n{"image": null, "caption": 7}\n'
    )
    assert [one.reason for one in read(source) if isinstance(one, Bad)] == ["NUL byte", "empty image"]


# -- where images lie ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("a.jpg", "a.jpg"),
        ("./a.jpg", "a.jpg"),
        ("images/c.jpg", "images/c.jpg"),
        ("c.jpg", "images/c.jpg"),
        ("more/d.jpg", "images/more/d.jpg"),
        ("images/../a.jpg", "a.jpg"),
        ("x/../none.jpg", ""),
        ("images", ""),
        ("x" * 300 + ".jpg", ""),
    ],
)
def test_an_image_is_looked_for_beside_the_table(images: Path, cell: str, expected: str) -> None:
    source = table(images / "t.tsv", f"image\tcaption\n{cell}\tA dog.\n")
    [one] = read(source)
    if expected:
        assert isinstance(one, Captioned)
        assert one.image == f"{images}/{expected}"
    else:
        assert isinstance(one, Bad)
        assert one.reason == "no such image"


def test_a_folder_with_a_capital(tmp_path: Path) -> None:
    (tmp_path / "Images").mkdir()
    (tmp_path / "Images/a.jpg").write_bytes(b"x")
    [one] = read(table(tmp_path / "t.tsv", "image\tcaption\na.jpg\tA dog.\n"))
    assert isinstance(one, Captioned)
    assert Path(one.image).samefile(tmp_path / "Images/a.jpg")


def test_a_table_is_named_from_its_own_folder(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(images / "t.tsv", "image\tcaption\nc.jpg\tA dog.\n")
    monkeypatch.chdir(images)
    [one] = read(opened("t.tsv"))
    assert one == Captioned("A dog.", "./images/c.jpg", "", "t.tsv", 2)


@pytest.mark.parametrize("cell", ["../a.jpg", "images/../../a.jpg", ".."])
def test_a_path_that_leaves_the_folder_is_refused(images: Path, cell: str) -> None:
    error = fault(images / "t.tsv", f"image\tcaption\na.jpg\tA dog.\n{cell}\tA cat.\n")
    assert error.problem == f"{images}/t.tsv:3: the image '{cell}' lies outside of the folder of the table."
    assert error.remedy == "Put the images into that folder, or a link to them, and write paths from there."


def test_an_absolute_path_is_refused_wherever_it_leads(images: Path) -> None:
    for cell in ("/etc/passwd", f"{images}/a.jpg"):
        error = fault(images / "t.tsv", f"image\tcaption\na.jpg\tA dog.\n{cell}\tA cat.\n")
        assert error.problem.startswith(f"{images}/t.tsv:3: the image '{cell[:20]}")
        assert error.problem.endswith("' is named by an absolute path.")
        assert error.remedy == "Write its path from the folder of the table, so that the folder can be moved."


def test_a_link_in_the_folder_is_followed(images: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "e.jpg").write_bytes(b"x")
    (images / "linked").symlink_to(elsewhere)
    [one] = read(table(images / "t.tsv", "image\tcaption\nlinked/e.jpg\tA dog.\n"))
    assert isinstance(one, Captioned)


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("./a~\\ "), min_size=1, max_size=12))
def test_no_path_leaves_the_folder(tmp_path_factory: pytest.TempPathFactory, cell: str) -> None:
    folder = tmp_path_factory.mktemp("paths")
    source = table(folder / "t.jsonl", json.dumps({"image": cell, "caption": "x"}) + "\n")
    try:
        [one] = read(source)
    except DataError as error:
        assert "outside of the folder" in error.problem or "absolute path" in error.problem
    else:
        assert isinstance(one, Bad)


def test_an_image_is_looked_for_once(images: Path) -> None:
    source = table(images / "t.tsv", "image\tcaption\n" + "a.jpg\tA dog.\n" * 2)
    assert len(read(source)) == 2
    (images / "a.jpg").unlink()
    assert all(isinstance(one, Captioned) for one in read(source))


# -- splits -------------------------------------------------------------------------------------------------------------

DIVIDED = "split\timage\tcaption\ntrain\ta.jpg\tone\nval\tb.png\ttwo\nTest\tnone.jpg\tthree\nlater\ta.jpg\tfour\n"


def test_rows_of_a_split(images: Path) -> None:
    source = table(images / "t.tsv", DIVIDED)
    unknown = Bad(source.files[0], 5, "unknown split", "later")
    train = Captioned("one", f"{images}/a.jpg", "train", source.files[0], 2)
    valid = Captioned("two", f"{images}/b.png", "valid", source.files[0], 3)
    assert read(source, "train") == [train, unknown]
    assert read(source, "train", "valid") == [train, valid, unknown]
    assert [one.reason for one in read(source, "test") if isinstance(one, Bad)] == ["no such image", "unknown split"]
    assert len(read(source)) == 4


def test_a_table_that_is_not_divided_is_of_the_first_split(images: Path) -> None:
    source = table(images / "t.tsv", "image\tcaption\na.jpg\tone\n")
    assert [one.split for one in read(source, "valid", "test") if isinstance(one, Captioned)] == ["valid"]


def test_all_images_that_rows_name(images: Path) -> None:
    source = table(images / "t.tsv", DIVIDED)
    assert set(source.named()) >= {f"{images}/{name}" for name in ("a.jpg", "b.png", "none.jpg", "images/none.jpg")}


def test_parquet(images: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"file_name": ["a.jpg"], "text": ["A dog."]}), images / "t.parquet")
    file = f"{images}/t.parquet"
    assert read(opened(file)) == [Captioned("A dog.", f"{images}/a.jpg", "", file, 1)]


def test_images_need_not_be_known_by_their_ending(images: Path) -> None:
    Image.new("RGB", (2, 2)).save(images / "0017", format="PNG")
    [one] = read(table(images / "t.tsv", "image\tcaption\n0017\tA dog.\n"))
    assert isinstance(one, Captioned)


# -- which columns are meant ---------------------------------------------------------------------------------------------


def chosen(*names: str, cells: tuple[str, ...] = (), **settings: Any) -> CaptionColumns:
    fields = dict(zip(names, cells or [f"cell of {name}" for name in names], strict=True))
    return choose_caption_columns("a.csv", fields, DataConfig(**settings))


def choice_fault(*names: str, cells: tuple[str, ...] = (), **settings: Any) -> DataError:
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


def test_a_cell_says_no_split_under_a_header() -> None:
    cells = ("a.jpg", "A locomotive.", "train")
    assert chosen("image", "caption", "vehicle", cells=cells) == CaptionColumns("image", "caption")


def test_columns_are_taken_as_asked() -> None:
    names = ("image", "thumbnail", "caption", "title", "split", "fold")
    asked = chosen(*names, image="thumbnail", text="Title", split_column="fold")
    assert asked == CaptionColumns("thumbnail", "title", "fold")
    assert chosen("1", "2", "3", image="3", text="1") == CaptionColumns("3", "1")


def test_columns_that_cannot_be_told_are_listed() -> None:
    error = choice_fault("a", "b", "c")
    assert error.problem == "a.csv holds 3 columns: a, b and c."
    assert error.remedy == "Say which are the image and the caption with --image and --text."
    assert choice_fault("image", "file", "caption").remedy == "Say which is the image with --image."
    assert choice_fault("image", "caption", "text").remedy == "Say which is the caption with --text."
    assert choice_fault("image").problem == "a.csv holds 1 column: image."
    error = choice_fault("1", "2", "3", cells=("a.jpg", "A dog.", "A cat."))
    assert error.problem == 'a.csv holds 3 columns: 1 ("a.jpg"), 2 ("A dog.") and 3 ("A cat.").'


def test_the_choice_as_a_sentence() -> None:
    assert CaptionColumns("a", "b", "c").sentence() == "image 'a', caption 'b', split 'c'"
    assert CaptionColumns("a", "b").sentence() == "image 'a', caption 'b'"
