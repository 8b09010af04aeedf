"""Regular files of bounded size: how a file that somebody else may have written is opened and read.

People share run folders. A link there may lead anywhere, a pipe waits for ever, a device never ends, and a file may be
larger than the memory. Each is refused with an OSError whose `strerror` says what stands in the place of the file.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

MEGABYTE = 1_000_000
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; a link is not followed, and nothing else is waited for."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_regular(path, os.lstat(path).st_mode) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(path, mode)
    return descriptor


def open_to_read(path: Path) -> BufferedReader:
    """Open a regular file for reading its bytes."""
    return os.fdopen(open_regular(path), "rb")


def read_regular(path: Path, *, most: int) -> bytes:
    """Return the bytes of a regular file, of which there may be `most`."""
    with open_to_read(path) as file:
        return _read(file, path, most)


def read_any(path: Path, *, most: int) -> bytes:
    """Return the bytes of what somebody names as a file, a link or a pipe too, of which there may be `most`."""
    with path.open("rb") as file:
        return _read(file, path, most)


def _read(file: BinaryIO, path: Path, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most // MEGABYTE:,} MB", str(path))
    return content


def _not_regular(path: Path, mode: int) -> OSError:
    return OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file", str(path))
