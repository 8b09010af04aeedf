"""The lock of a run: one process trains it at a time. Reading needs no lock.

The lock is an flock on the run's `lock` file: the system frees it when its holder ends, even by SIGKILL, so a lock
never has to be removed by hand. The file's text only says who holds it.
"""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from regard.errors import LockedError, RunError
from regard.regular_files import open_regular
from regard.runs.disk import disk_errors
from regard.runs.folder import RunFolder

ATTEMPTS, PAUSE = 10, 0.05  # seconds
LONGEST = 300  # bytes of its text


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Hold the run's lock, or raise a LockedError that names the process that has it."""
    with opened(run, os.O_RDWR | os.O_CREAT) as descriptor:
        try:
            acquire(descriptor)
        except BlockingIOError as error:
            raise locked_error(run, text_of(descriptor)) from error
        except OSError as error:
            raise RunError(
                f"{run.lock_file} cannot be locked: {error.strerror}.", "Keep the run on a file system with flock."
            ) from error
        with disk_errors(run.path, needed=0):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        yield


@contextmanager
def opened(run: RunFolder, flags: int) -> Iterator[int]:
    """Open the lock file, which stays: deleting it would let two processes lock two files of one name."""
    try:
        descriptor = open_regular(run.lock_file, flags)
        if os.fstat(descriptor).st_nlink > 1:
            os.close(descriptor)
            raise OSError(errno.EMLINK, "it is a hard link: another file would be written through it")
    except OSError as error:
        raise RunError(
            f"{run.lock_file} cannot be opened: {error.strerror}.", "Check the folder and its permissions."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def acquire(descriptor: int) -> None:
    """Take the lock; wait a moment for one who only asks who has it, which takes it for an instant."""
    for _ in range(ATTEMPTS - 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(PAUSE)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def holder(run: RunFolder) -> str:
    """Return who trains the run, as "PROCESS HOST"; empty where nobody does, or the lock cannot be asked."""
    try:
        with opened(run, os.O_RDONLY) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return text_of(descriptor).strip() or "another process"
    except (OSError, RunError):
        pass
    return ""


def text_of(descriptor: int) -> str:
    """Return what the holder wrote of itself."""
    return os.pread(descriptor, LONGEST, 0).decode(errors="replace")


def locked_error(run: RunFolder, text: str) -> LockedError:
    """Return the error for a run that another process holds, by the text of its lock file."""
    process, _, host = text.strip().partition(" ")
    if not process.isdigit():
        # The other one has the lock, and has not written its name yet.
        return LockedError(f"{run} is being trained by another process.", "Wait until it ends.")
    return LockedError(
        f"{run} is being trained by process {process} on {host}.",
        f"Wait until it ends, or stop it there with: kill {process} (it saves first).",
    )
