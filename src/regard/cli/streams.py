"""The standard streams, made fit for use: closed ones, other encodings, full disks, readers that leave.

Standard output carries results: where it takes no more, the command has failed. Standard error carries what people read
on the way: where nobody can be told, silence is no failure.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

NOWHERE = Path(os.devnull)


class OutputError(OSError):
    """Standard output takes no more.

    Not a BrokenPipeError: rich would end the process at one, in the middle of whatever it is doing.
    """

    @property
    def reader_left(self) -> bool:
        """Whether nobody reads any more, which is no fault: `regard runs | head -3`."""
        return self.errno == errno.EPIPE


class Stream:
    """A standard stream that falls silent at the first write that fails; an essential one raises an OutputError then."""

    def __init__(self, stream: TextIO, *, essential: bool) -> None:
        self._stream = stream
        self._essential = essential

    def write(self, text: str) -> int:
        with self._silent_after_failure():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._silent_after_failure():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _silent_after_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            silence(self._stream)
            if self._essential:
                raise OutputError(error.errno, error.strerror) from error


def silence(stream: TextIO) -> None:
    """Send all that follows nowhere, and what the stream still holds: Python tries to write that at its exit."""
    with suppress(io.UnsupportedOperation), NOWHERE.open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def standard_streams() -> Iterator[None]:
    """Put streams that can be relied on in the place of the standard ones.

    All of them exist: Python has None for a stream that the shell closed (`>&-`). Text is UTF-8, whatever the locale
    says. A name that is no UTF-8 comes out of standard output as the bytes it is.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    with ExitStack() as opened:
        # In this order: each takes the lowest free number, that of the stream which was closed.
        stdin = before[0] or opened.enter_context(NOWHERE.open(encoding="utf-8"))
        stdout, stderr = (stream or opened.enter_context(NOWHERE.open("w", encoding="utf-8")) for stream in before[1:])
        use_utf8(stdout, errors="surrogateescape")
        use_utf8(stderr, errors="replace")
        sys.stdin = stdin
        sys.stdout = cast(TextIO, Stream(stdout, essential=True))
        sys.stderr = cast(TextIO, Stream(stderr, essential=False))
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def use_utf8(stream: TextIO, *, errors: str) -> None:
    """Let a stream write UTF-8."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors=errors)
