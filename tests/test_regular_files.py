import os
import socket
from pathlib import Path

import pytest

from regard.regular_files import open_regular, open_to_read, read_any, read_regular


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    return path


def reason(path: Path, *, most: int = 5) -> str:
    with pytest.raises(OSError) as caught:
        read_regular(path, most=most)
    return caught.value.strerror


def test_a_regular_file_is_read_up_to_its_bound(file: Path) -> None:
    assert read_regular(file, most=5) == b"12345"
    assert reason(file, most=4) == "it has more than 0 MB"
    with open_to_read(file) as stream:
        assert stream.read() == b"12345"


def test_what_is_no_regular_file_is_named_and_nothing_waits(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        assert reason(tmp_path / "socket") == "it is a socket, not a file"
    assert reason(tmp_path / "link") == "it is a link, not a file"
    assert reason(tmp_path / "circle") == "it is a link, not a file"
    assert reason(tmp_path / "pipe") == "it is a pipe, not a file"
    assert reason(tmp_path) == "it is a folder, not a file"
    assert reason(Path("/dev/zero")) == "it is a device, not a file"
    assert reason(tmp_path / "none") == "No such file or directory"


def test_a_file_to_write_is_not_sought_behind_a_link_and_not_emptied(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "new").symlink_to(tmp_path / "elsewhere")
    for name in ("link", "new"):
        with pytest.raises(OSError, match="it is a link"):
            open_regular(tmp_path / name, os.O_RDWR | os.O_CREAT)
    assert file.read_bytes() == b"12345"
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_somebody_names_may_be_a_link_but_has_an_end(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert read_any(tmp_path / "link", most=5) == b"12345"
    with pytest.raises(OSError, match="more than 1 MB"):
        read_any(Path("/dev/zero"), most=1_000_000)
