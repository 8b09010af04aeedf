"""Files that are not there, not files, empty, gzipped, damaged."""

import gzip
import os
import socket
from pathlib import Path

import pytest

from regard.data.formats.files import check_file, check_regular, open_file, open_packed, open_seekable
from regard.data.pipeline.hashes import content_hash
from regard.errors import DataError


def error_of(file: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        check_file(str(file))
    return caught.value


def test_a_missing_file_gets_the_near_name(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text("a\n")
    error = error_of(tmp_path / "trian.en")
    assert error.problem == f"{tmp_path}/trian.en: there is no such file."
    assert error.remedy == f"Did you mean {tmp_path}/train.en?"


def test_a_missing_file_without_a_near_name(tmp_path: Path) -> None:
    assert error_of(tmp_path / "train.en").remedy == f"No file in {tmp_path} has a similar name."


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    error = error_of(tmp_path / "nowhere" / "train.en")
    assert error.remedy == f"The folder {tmp_path}/nowhere does not exist either."


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    error = error_of(tmp_path)
    assert error.problem == f"{tmp_path}: a file was expected, this is a folder."
    assert error.remedy == "Name the files inside it."


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.en").touch()
    error = error_of(tmp_path / "train.en")
    assert error.problem == f"{tmp_path}/train.en: the file is empty."
    assert error.remedy == "Check the step that wrote it."


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.en"
    file.write_text("a\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    for opened in (open_file, open_packed):
        with pytest.raises(DataError) as caught, opened(str(file)):
            pass
        assert caught.value.problem == f"{file}: cannot be read (Permission denied)."
        assert caught.value.remedy == "Check its permissions."


def test_a_folder_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    error = error_of(tmp_path / "train.en")
    assert error.problem == f"{tmp_path}/train.en: cannot be read (Permission denied)."
    assert error.remedy == "Check its permissions."


def test_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert error_of(tmp_path / "train.en").remedy == f"No file in {tmp_path} has a similar name."


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    assert error_of(tmp_path / "a\0b").problem == f"{tmp_path}/a\0b: there is no such file."
    (tmp_path / "a.en").write_text("a\n")
    assert error_of(tmp_path / "a.en" / "b").problem == f"{tmp_path}/a.en/b: there is no such file."
    long = tmp_path / ("x" * 300)
    assert error_of(long).problem == f"{long}: cannot be read (File name too long)."
    assert error_of(long).remedy == "Check its name and its disk."
    assert error_of("x" * 20_000).problem == f"{'x' * 1000}…: cannot be read (File name too long)."


def test_a_regular_file_is_opened_as_it_lies_there(tmp_path: Path) -> None:
    file = tmp_path / "a.en.gz"
    file.write_bytes(gzip.compress(b"one\n"))
    check_regular(str(file))
    with open_packed(str(file)) as stream:
        assert stream.read() == file.read_bytes()


def test_what_can_be_read_once_only_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    pipe, end = tmp_path / "pipe.en", tmp_path / "s"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(end))
        for file, kind in ((pipe, "a pipe"), (Path("/dev/null"), "a device"), (end, "a socket")):
            for refuse in (check_regular, content_hash):
                with pytest.raises(DataError) as caught:
                    refuse(str(file))
                assert caught.value.problem == f"{file}: this is {kind}, and the file is read several times."
                assert caught.value.remedy == "Write it to a file first."


def test_missing_and_empty_files_are_not_regular_either(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        check_regular(str(tmp_path / "a.en"))
    (tmp_path / "a.en").touch()
    with pytest.raises(DataError, match="the file is empty"):
        check_regular(str(tmp_path / "a.en"))


def test_gzip_is_transparent(tmp_path: Path) -> None:
    plain, zipped = tmp_path / "a.en", tmp_path / "b.en.gz"
    plain.write_bytes(b"one\ntwo\n")
    zipped.write_bytes(gzip.compress(b"one\ntwo\n"))
    for file in (plain, zipped):
        with open_file(str(file)) as stream:
            assert stream.read() == b"one\ntwo\n"
        with open_seekable(str(file)) as stream:
            stream.seek(4)
            assert stream.read() == b"two\n"


def test_a_damaged_gzip_for_a_reader_that_jumps(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet.gz"
    file.write_bytes(gzip.compress(bytes(range(256)) * 40)[:-12])
    with pytest.raises(DataError) as caught, open_seekable(str(file)):
        pass
    assert caught.value.problem == f"{file}: damaged or incomplete gzip data."
    assert caught.value.remedy == f"Copy it again; `gzip -t {file}` tells when it is whole."
