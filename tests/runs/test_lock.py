import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.errors import LockedError, RunError
from regard.runs.folder import RunFolder
from regard.runs.lock import holder, locked

HOLD = """
import sys, time
from pathlib import Path
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
with locked(RunFolder(Path(sys.argv[1]))):
    sys.stdout.write("held\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def test_a_run_that_another_process_trains_names_it_and_is_free_after_sigkill(run: RunFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run.path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        try:
            with pytest.raises(LockedError) as caught, locked(run):
                pytest.fail("two processes hold one lock")
        finally:
            other.send_signal(signal.SIGKILL)
    assert caught.value.problem == f"{run.path} is being trained by process {other.pid} on {socket.gethostname()}."
    assert caught.value.remedy == f"Wait until it ends, or stop it there with: kill {other.pid} (it saves first)."
    with locked(run):
        assert run.lock_file.read_text() == f"{os.getpid()} {socket.gethostname()}\n"


def test_the_lock_is_free_after_its_block(run: RunFolder) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), locked(run):
            raise KeyError


def test_a_holder_that_has_not_written_its_name_yet(run: RunFolder) -> None:
    with run.lock_file.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LockedError) as caught, locked(run):
            pass
    assert caught.value.problem == f"{run.path} is being trained by another process."
    assert caught.value.remedy == "Wait until it ends."


def test_a_run_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught, locked(RunFolder(tmp_path / "none")):
        pass
    assert caught.value.problem == f"{tmp_path}/none/lock cannot be opened: No such file or directory."
    assert caught.value.remedy == "Check the folder and its permissions."


def test_a_file_system_without_locks(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RunError) as caught, locked(run):
        pass
    assert caught.value.problem == f"{run.path}/lock cannot be locked: No locks available."
    assert caught.value.remedy == "Keep the run on a file system with flock."


def test_the_holder_can_be_asked_for(run: RunFolder) -> None:
    assert holder(run) == ""
    with locked(run):
        assert holder(run) == f"{os.getpid()} {socket.gethostname()}"
    assert holder(run) == ""


def test_asking_who_trains_keeps_nobody_from_training(run: RunFolder) -> None:
    run.lock_file.touch()
    asking = threading.Event()

    def ask() -> None:
        while not asking.is_set():
            holder(run)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(100):
            with locked(run):
                pass
    finally:
        asking.set()
        thread.join()


def test_a_lock_that_is_a_hard_link_is_not_written(run: RunFolder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    run.lock_file.hardlink_to(other)
    with pytest.raises(RunError) as caught, locked(run):
        pass
    assert caught.value.problem == (
        f"{run.lock_file} cannot be opened: it is a hard link: another file would be written through it."
    )
    assert other.read_text() == "precious"


@pytest.mark.parametrize("target", ["victim", "none"])
def test_a_lock_that_is_a_link_is_not_followed(run: RunFolder, tmp_path: Path, target: str) -> None:
    (tmp_path / "victim").write_text("precious")
    run.lock_file.symlink_to(tmp_path / target)
    with pytest.raises(RunError) as caught, locked(run):
        pass
    assert caught.value.problem == f"{run.lock_file} cannot be opened: it is a link, not a file."
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "none").exists()
    assert holder(run) == ""


def test_a_lock_that_is_a_pipe_makes_nobody_wait(run: RunFolder) -> None:
    os.mkfifo(run.lock_file)
    with pytest.raises(RunError) as caught, locked(run):
        pass
    assert caught.value.problem == f"{run.lock_file} cannot be opened: it is a pipe, not a file."
    assert holder(run) == ""


def test_what_a_lock_says_that_regard_did_not_write(run: RunFolder) -> None:
    run.lock_file.write_bytes(b"\xff-9 x" * 10_000)
    with run.lock_file.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(holder(run)) <= 300
        with pytest.raises(LockedError) as caught, locked(run):
            pass
    assert caught.value.problem == f"{run.path} is being trained by another process."
