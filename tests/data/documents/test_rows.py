"""Running text as documents, whatever the size of files and lines."""

import gzip
import json
from pathlib import Path

import pytest

from regard.data.documents import rows
from regard.data.documents.rows import Piece, passages, read_documents
from regard.data.formats import Bad
from regard.errors import DataError


def write(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(*files: str, **options: str) -> list[Piece | Bad]:
    return list(read_documents(files, **options))


def test_a_file_is_one_document(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "One\n\ntwo\u2028three\r\nfour")
    assert read(file) == [
        Piece("One\n", file, 1, True),
        Piece("\n", file, 2, False),
        Piece("two\u2028three\n", file, 3, False),
        Piece("four", file, 4, False),
    ]


def test_a_separator_line_parts_documents(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "a\n<|end|>\n<|end|>\nb\nc\n <|end|> \n")
    assert [(part.text, part.begins) for part in read(file, separator="<|end|>")] == [  # type: ignore[union-attr]
        ("a\n", True),
        ("b\n", True),
        ("c\n", False),
    ]


def test_a_long_line_comes_in_pieces_of_whole_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PART_BYTES", 7)
    text = "äöü€𝄞" * 9
    file = write(tmp_path / "a.txt", "\ufeff" + text + "\r\nnext")
    pieces = read(file)
    assert "".join(piece.text for piece in pieces) == text + "\nnext"  # type: ignore[union-attr]
    assert {piece.line for piece in pieces} == {1, 2}


def test_bad_lines_are_told_apart(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", b"\xff\nok\nnul\0\n")
    assert [(type(one).__name__, one.line) for one in read(file)] == [("Bad", 1), ("Piece", 2), ("Bad", 3)]
    assert read(file)[1].begins  # type: ignore[union-attr]


def test_records_are_documents(tmp_path: Path) -> None:
    rows = [{"text": "a\nb", "id": "1"}, {"text": "c", "id": "2"}, {"id": "3"}]
    file = str(tmp_path / "a.jsonl.gz")
    with gzip.open(file, "wt") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows))
    found = read(file)
    assert [getattr(one, "text", one) for one in found[:2]] == ["a\nb", "c"]
    assert isinstance(found[2], Bad)
    assert found[2].reason == "no text"


@pytest.mark.parametrize(
    ("column", "problem"),
    [("", "which of its columns is the text: title, inside?"), ("insid", "there is no text under 'insid'.")],
)
def test_the_column_must_be_known(tmp_path: Path, column: str, problem: str) -> None:
    file = write(tmp_path / "a.csv", "title,inside\nx,y\n")
    with pytest.raises(DataError) as caught:
        read(file, column=column)
    assert caught.value.problem == f"{file}: {problem}"
    assert [one.text for one in read(file, column="inside")] == ["y"]  # type: ignore[union-attr]


def test_a_column_that_is_called_as_texts_are_is_the_text(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "label\tsentence\n1\ta dog\n")
    assert [one.text for one in read(file)] == ["a dog"]  # type: ignore[union-attr]
    two = write(tmp_path / "b.tsv", "question\tsentence\nwho?\ta dog\n")
    with pytest.raises(DataError, match=r"which of its columns is the text: question, sentence\?"):
        read(two)


def test_each_record_is_asked_for_its_text(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"id": "1", "title": "x"}\n{"text": "a", "title": "y"}\n{"text": "b"}\n')
    bad, *good = read(file)
    assert isinstance(bad, Bad)
    assert [one.text for one in good] == ["a", "b"]  # type: ignore[union-attr]
    only = write(tmp_path / "b.jsonl", '{"story": "a"}\n{"story": "b"}\n')
    assert [one.text for one in read(only)] == ["a", "b"]  # type: ignore[union-attr]
    mixed = write(tmp_path / "c.jsonl", '{"title": "a"}\n{"text": "b", "title": "c"}\n')
    with pytest.raises(DataError, match="this record has its text under 'text', those before it under 'title'"):
        read(mixed)
    with pytest.raises(DataError, match="there is no text under 'txt'") as caught:
        read(file, column="txt")
    assert caught.value.remedy == "Did you mean text?"


def test_missing_and_empty_files_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_documents([str(tmp_path / "none.txt")])
    with pytest.raises(DataError, match="the file is empty"):
        read_documents([write(tmp_path / "empty.txt", "")])
    with pytest.raises(DataError, match="No file was given"):
        read_documents([])


def test_passages_are_cut_where_lines_meet_simply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PASSAGE_CHARACTERS", 4)
    lines = ["abc\n", "def \n", "ghi\n", "\n", "jkl\n", " mno\n", "pqr\n", "stu\n"]
    pieces = [Piece(line, "f", number, number in (0, 7)) for number, line in enumerate(lines)]
    found = list(passages(pieces))
    assert [one.text for one in found] == ["abc\n", "def \nghi\n\njkl\n mno\n", "pqr\n", "stu\n"]
    assert [(one.line, one.begins) for one in found] == [(0, True), (1, False), (6, False), (7, True)]
