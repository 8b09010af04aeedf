"""Ctrl-C and `kill` as a wish to stop after the update in hand, so that the run is saved first."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Wish:
    """Whether somebody asked the run to stop, and by which signal."""

    signal: int = 0


@contextlib.contextmanager
def stop_wishes() -> Iterator[Wish]:
    """Catch SIGINT and SIGTERM inside the block; a second one has its usual effect, for those who cannot wait."""
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish  # only the main thread may set handlers; elsewhere the caller stops by not asking for more
        return
    # None stands for a handler that was not set from Python, and cannot be put back.
    previous = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, frame: FrameType | None) -> None:
        wish.signal = number
        signal.signal(number, previous[signal.Signals(number)])

    for number in previous:
        signal.signal(number, remember)
    try:
        yield wish
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
