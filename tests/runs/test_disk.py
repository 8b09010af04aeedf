import errno
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import SafetensorError

from regard.errors import TrainingError
from regard.runs import disk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writing_replaces_the_whole_content_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    disk.write_atomically(file, b"the first, longer content")
    disk.write_atomically(file, b"the second")
    assert file.read_bytes() == b"the second"
    assert names(tmp_path) == ["config.toml"]


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(disk, "sync", lambda path: synced.append((path.name, names(tmp_path))))
    disk.write_atomically(tmp_path / "task.json", b"{}")
    temporary = disk.temporary_name(tmp_path / "task.json").name
    assert synced == [(temporary, [temporary]), (tmp_path.name, ["task.json"])]


@pytest.mark.parametrize("stage", ["fsync", "replace"])
def test_a_failed_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, stage, fail)
    with pytest.raises(TrainingError) as caught:
        disk.write_atomically(file, b"new")
    assert caught.value.problem == f"{tmp_path} cannot be written: Input/output error."
    assert caught.value.remedy == "Check the folder's permissions and the disk. What was written before is intact."
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["config.toml"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_says_how_much_is_needed_and_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_999_999))
    with pytest.raises(TrainingError) as caught, disk.disk_errors(tmp_path, needed=12_000_001):
        raise error
    assert caught.value.problem == f"The disk is full: 13 MB needed, 3 MB free in {tmp_path}."
    assert caught.value.remedy == "Free some space, then go on with `regard resume`: what was written before is intact."


def test_another_error_of_safetensors_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as caught, disk.disk_errors(tmp_path, needed=1):
        raise SafetensorError("I/O error: Permission denied (os error 13)")
    assert caught.value.problem == f"{tmp_path} cannot be written: I/O error: Permission denied (os error 13)."


def test_space_is_enough_at_the_very_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    disk.require_space(tmp_path, needed=100)
    with pytest.raises(TrainingError, match="The disk is full: 1 MB needed, 0 MB free"):
        disk.require_space(tmp_path, needed=101)


def test_json_has_no_nan_and_keeps_every_other_bit() -> None:
    value = {"loss": float("nan"), "best": [float("inf"), 0.1 + 0.2], "text": "größer", "pair": (1, -float("inf"))}
    written = disk.as_json(value)
    assert json.loads(written) == {"loss": None, "best": [None, 0.1 + 0.2], "text": "größer", "pair": [1, None]}
    assert "größer".encode() in written


def test_leftovers_go_and_real_names_stay(tmp_path: Path) -> None:
    (tmp_path / ".tmp-new-step-00000001-7").mkdir()
    (tmp_path / ".tmp-new-step-00000001-7" / "model.safetensors").touch()
    (tmp_path / ".tmp-new-task.json-7").touch()
    (tmp_path / "task.json").touch()
    (tmp_path / ".gitignore").touch()
    disk.remove_leftovers(tmp_path)
    assert names(tmp_path) == [".gitignore", "task.json"]


def test_a_deletion_that_is_cut_short_leaves_no_half_under_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "step-00000001"
    folder.mkdir()
    (folder / "model.safetensors").touch()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        disk.discard(folder)
    assert not folder.exists()
    assert [path.name.startswith(disk.TEMPORARY) for path in tmp_path.iterdir()] == [True]


def test_a_link_in_the_place_of_what_is_being_written_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file = tmp_path / "run" / "config.toml"
    file.parent.mkdir()
    disk.temporary_name(file).symlink_to(victim)
    disk.write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert victim.read_text() == "precious"
    assert names(file.parent) == ["config.toml"]


def test_leftovers_behind_links_stay(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    (outside / ".tmp-mine").mkdir(parents=True)
    (outside / ".tmp-file").touch()
    run.mkdir()
    (run / ".tmp-new-step-00000001-7").mkdir()
    (run / ".tmp-new-step-00000001-7" / "link").symlink_to(outside)
    (run / ".tmp-task.json-7").touch()
    (run / ".tmp-link").symlink_to(outside)
    (run / "checkpoints").symlink_to(outside)
    disk.remove_leftovers(run)
    disk.remove_leftovers(run / "checkpoints")
    assert names(run) == [".tmp-link", "checkpoints"]
    assert names(outside) == [".tmp-file", ".tmp-mine"]


def test_folders_in_folders_deeper_than_the_stack_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / ".tmp-gone-step-00000001-7"
    path.mkdir()
    descriptor = os.open(path, os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("a", dir_fd=descriptor)
        inner = os.open("a", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    disk.remove_leftovers(tmp_path)
    subprocess.run(["rm", "-rf", path], check=True)  # which pytest cannot


def test_a_folder_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as caught:
        disk.write_atomically(tmp_path / "run" / "config.toml", b"new")
    assert caught.value.problem == f"{tmp_path}/run was moved or deleted while it was being trained."
    assert names(tmp_path) == []
