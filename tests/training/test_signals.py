"""Ctrl-C and `kill` let a run save first."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from regard.training.signals import StopSignal, catch_stop_signals


@pytest.fixture
def arrived() -> Iterator[list[int]]:
    """The signals that reached the handlers which stood before."""
    numbers: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: numbers.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_caught_and_the_second_has_its_usual_effect(number: int, arrived: list[int]) -> None:
    with catch_stop_signals() as stop:
        assert stop.number == 0
        os.kill(os.getpid(), number)
        assert stop.number == number
        assert arrived == []
        os.kill(os.getpid(), number)
        assert arrived == [number]


def test_the_handlers_of_before_come_back(arrived: list[int]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyError), catch_stop_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
        raise KeyError
    assert signal.getsignal(signal.SIGTERM) is before
    os.kill(os.getpid(), signal.SIGTERM)
    assert arrived == [signal.SIGTERM]


def test_another_thread_sets_no_handlers() -> None:
    seen: list[StopSignal] = []
    before = signal.getsignal(signal.SIGINT)

    def elsewhere() -> None:
        with catch_stop_signals() as stop:
            assert signal.getsignal(signal.SIGINT) is before
            seen.append(stop)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [stop.number for stop in seen] == [0]
