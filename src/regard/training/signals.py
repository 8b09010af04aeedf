"""Stop signals: Ctrl-C and `kill` let the update in hand finish, so that the run is saved before it stops."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopSignal:
    """Whether somebody asked the run to stop, and by which signal: 0 if nobody did."""

    number: int = 0


@contextlib.contextmanager
def catch_stop_signals() -> Iterator[StopSignal]:
    """Catch SIGINT and SIGTERM inside the block; a second one has its usual effect, for those who cannot wait."""
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers; elsewhere the caller stops by not asking for more
        return
    # None stands for a handler that was not set from Python, and cannot be put back.
    previous = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}

    def remember(number: int, frame: FrameType | None) -> None:
        stop.number = number
        signal.signal(number, previous[signal.Signals(number)])

    for number in previous:
        signal.signal(number, remember)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
