"""The pool's own promises, with made-up processes: order, errors in their place, and how much is read ahead."""

from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from regard.api import process_pool
from regard.api.process_pool import AHEAD, Chunk, ProcessPool, _Worker
from regard.errors import DataError, RegardError, UsageError


class Ended:
    """A process that is no more."""

    exitcode = 3

    def join(self, seconds: float) -> None:
        pass

    def is_alive(self) -> bool:
        return False


class Pool(ProcessPool):
    """Two processes whose ends of the pipes the test holds."""

    def __init__(self) -> None:
        pairs = [Pipe() for _ in range(2)]
        self.ends: list[Connection] = [other for _, other in pairs]
        self._workers = [_Worker(f"Process {n}", Ended(), own) for n, (own, _) in enumerate(pairs, start=1)]


def chunks(number: int, read: list[int] | None = None) -> Iterator[Chunk]:
    for n in range(number):
        if read is not None:
            read.append(n)
        yield Chunk(inputs=[2 * n, 2 * n + 1], context=n)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    with Pool() as made:
        yield made


def answering(pool: Pool, monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], None]) -> None:
    """Call `answer` with a number that grows whenever the pool waits."""
    heard = process_pool.wait
    calls = iter(range(1000))

    def listen(connections: Any) -> Any:
        answer(next(calls))
        return heard(connections, timeout=5)

    monkeypatch.setattr(process_pool, "wait", listen)


def reply(end: Connection) -> None:
    before, inputs, _ = end.recv()
    end.send(("results", [before, *inputs]))


def test_order_is_that_of_the_chunks(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    # The second process answers all of its chunks before the first answers any.
    def answer(call: int) -> None:
        end = next(end for end in reversed(pool.ends) if end.poll())
        reply(end)

    answering(pool, monkeypatch, answer)
    found = list(pool.predict(chunks(6)))
    assert [chunk.context for chunk, _ in found] == list(range(6))
    assert [results for _, results in found] == [[2 * n, 2 * n, 2 * n + 1] for n in range(6)]


def test_no_more_is_read_than_can_be_given_away(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    most = []

    def answer(call: int) -> None:
        most.append(len(read) - call)
        reply(next(end for end in pool.ends if end.poll()))

    answering(pool, monkeypatch, answer)
    for number, (chunk, _) in enumerate(pool.predict(chunks(50, read))):
        assert chunk.context == number
        assert len(read) <= number + 1 + 2 * AHEAD
    assert max(most) <= 2 * AHEAD
    assert len(read) == 50


def test_progress_is_of_all_processes(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def answer(call: int) -> None:
        if call == 0:
            pool.ends[1].send(("progress", 1))
        else:
            reply(next(end for end in pool.ends if end.poll()))

    answering(pool, monkeypatch, answer)
    assert len(list(pool.predict(chunks(2), progress=done.append))) == 2
    assert done == [1]


def test_chunks_without_inputs_are_nobodys(pool: Pool) -> None:
    empty = [Chunk(inputs=[], context=n) for n in range(3)]
    assert list(pool.predict(empty)) == [(one, []) for one in empty]


def test_an_error_of_reading_comes_after_what_was_read(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Chunk]:
        yield from chunks(2)
        raise DataError("bad line", "Correct it.")

    answering(pool, monkeypatch, lambda call: reply(next(end for end in pool.ends if end.poll())))
    found = pool.predict(broken())
    assert [next(found)[0].context, next(found)[0].context] == [0, 1]
    with pytest.raises(DataError) as raised:
        next(found)
    assert raised.value.remedy == "Correct it."


def test_an_error_of_a_process_comes_in_its_place(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(call: int) -> None:
        if call == 0:
            pool.ends[1].send(("error", ("too long", "Cut it.", UsageError.exit_code)))
        else:
            reply(pool.ends[0])

    answering(pool, monkeypatch, answer)
    found = pool.predict(chunks(9))
    assert next(found)[0].context == 0
    with pytest.raises(RegardError) as raised:
        next(found)
    assert (raised.value.problem, raised.value.remedy, raised.value.exit_code) == ("too long", "Cut it.", 2)


@pytest.mark.parametrize(
    ("code", "how"),
    [(3, "ended with 3"), (-9, "was killed by signal 9 (SIGKILL)"), (-200, "was killed by signal 200 (unknown)")],
)
def test_a_process_that_ends_is_named_with_what_it_did(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, code: int, how: str
) -> None:
    monkeypatch.setattr(Ended, "exitcode", code)
    answering(pool, monkeypatch, lambda call: pool.ends[0].close())
    with pytest.raises(RegardError) as raised:
        list(pool.predict(chunks(9)))
    assert raised.value.problem == f"Process 1 {how} at inputs 1 to 2."
    assert raised.value.remedy == "If memory ran out, give fewer --processes: each holds the model."


def test_a_process_that_never_began_is_named(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(call: int) -> None:
        if call == 0:
            pool.ends[1].close()
        else:
            reply(pool.ends[0])

    answering(pool, monkeypatch, answer)
    found = pool.predict(chunks(1))
    assert next(found)[0].context == 0
    with pytest.raises(RegardError) as raised:
        next(found)
    assert raised.value.problem == "Process 2 ended with 3 while it loaded the run."
