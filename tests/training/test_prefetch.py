"""Prefetching: the same batches in the same order as in line, never many at once, and no thread left behind."""

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice

import pytest

from regard.training.prefetch import PREFETCH_FACTOR, prefetch


def readers() -> list[threading.Thread]:
    """The threads that prefetch at this moment."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def square(number: int) -> int:
    time.sleep(0.002 * (number % 3))  # so that later ones are done before earlier ones
    return number**2


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_order_is_the_one_that_was_wanted(workers: int) -> None:
    with prefetch(square, range(20), workers=workers) as squares:
        assert list(squares) == [number**2 for number in range(20)]


def test_without_workers_nothing_is_read_before_it_is_asked_for() -> None:
    read: list[int] = []
    with prefetch(read.append, count(), workers=0) as batches:
        assert read == []
        list(islice(batches, 3))
        assert read == [0, 1, 2]
        assert readers() == []


@pytest.mark.parametrize("workers", [1, 3])
def test_a_few_are_read_ahead_by_so_many_threads_and_no_more(workers: int) -> None:
    asked: list[int] = []
    threads: set[int] = set()

    def wanted() -> Iterator[int]:
        for number in count():
            asked.append(number)
            yield number

    def read(number: int) -> int:
        threads.add(threading.get_ident())
        time.sleep(0.001)
        return number

    with prefetch(read, wanted(), workers=workers) as batches:
        assert list(islice(batches, 5)) == list(range(5))
        assert len(asked) == 5 + PREFETCH_FACTOR * workers
        assert len(readers()) <= workers
    assert len(threads) <= workers
    assert threading.get_ident() not in threads


def test_what_was_handed_out_is_not_kept() -> None:
    tracemalloc.start()
    try:
        with prefetch(lambda number: bytearray(1_000_000), count(), workers=2) as batches:
            for _ in islice(batches, 30):
                pass
            assert tracemalloc.get_traced_memory()[1] < 1_000_000 * (2 + 2 * PREFETCH_FACTOR) + 500_000
    finally:
        tracemalloc.stop()


class BadBatchError(Exception):
    """What a reader raises."""


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_where_its_batch_would_have_come(workers: int) -> None:
    error = BadBatchError("at 3")

    def read(number: int) -> int:
        if number == 3:
            raise error
        return number

    with pytest.raises(BadBatchError) as caught, prefetch(read, count(), workers=workers) as batches:
        assert [next(batches), next(batches), next(batches)] == [0, 1, 2]
        next(batches)
    assert caught.value is error
    assert readers() == []


def leave_quietly() -> None:
    pass


def leave_by_error() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("leave", [leave_quietly, leave_by_error])
def test_no_thread_is_left_and_what_nobody_began_to_read_stays_unread(leave: Callable[[], None]) -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def read(number: int) -> None:
        begun.append(number)
        if number:
            go_on.wait(5)

    try:
        with prefetch(read, count(), workers=1) as batches:
            next(batches)
            threading.Timer(0.05, go_on.set).start()
            leave()
    except KeyboardInterrupt:
        pass
    assert readers() == []
    assert len(begun) <= 2
