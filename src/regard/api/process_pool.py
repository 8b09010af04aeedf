"""A pool of processes that predict with one run: each has a model and an engine of its own; what comes out keeps its order.

Inputs go to the processes in chunks, each a call of its own, so that the predictions are those of one process that is given
the same chunks. No more chunks are read than there are processes to take them: memory does not grow with the input.
"""

import multiprocessing
import os
import queue
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from regard.errors import RegardError
from regard.tasks.options import Count, no_count
from regard.tasks.results import Result

AHEAD = 2  # chunks for each process: the one it predicts, and the next
PATIENCE = 5.0  # seconds that a process has to end by itself


@dataclass(frozen=True, kw_only=True)
class PoolSetup:
    """What each process loads.

    runs:      the run, and others for an ensemble with it
    loading:   how, as `regard.load` takes it
    settings:  of predictions by name, as the task's options take them
    """

    runs: Sequence[str]
    loading: Mapping[str, Any]
    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Inputs that are predicted together; `fields` are those of the options that belong to them.

    context: whatever whoever made the chunk wants to find again beside its predictions
    """

    inputs: Sequence[Any]
    fields: Mapping[str, Any] = field(default_factory=dict)
    context: Any = None


class ProcessPool:
    """Processes that predict; to be closed, which ends them."""

    def __init__(self, setup: PoolSetup, n_processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        try:
            with _deaf_to_interrupts():  # which the processes inherit: Ctrl-C is this process's to answer
                for number in range(n_processes):
                    own, other = context.Pipe()
                    process = context.Process(target=_serve, args=(setup, other), daemon=True)
                    process.start()
                    other.close()  # so that this end hears when the process has ended
                    self._workers.append(_Worker(f"Process {number + 1} of {n_processes}", process, own))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes: at once where they wait, and without mercy where they do not."""
        for worker in self._workers:
            worker.connection.close()  # at which the process ends itself
        for worker in self._workers:
            worker.process.join(PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers.clear()

    def predict(
        self, chunks: Iterable[Chunk], *, stream: Any = None, progress: Count = no_count
    ) -> Iterator[tuple[Chunk, list[Result]]]:
        """Yield each chunk with its predictions, in order; an error comes after the predictions of what stands before it.

        stream: what the chunks are read from, if reading may wait: predictions that are there do not wait with it
        """
        job = _Job(self._workers, iter(chunks), progress)
        while not job.is_done:
            if job.first_is_answered:
                yield job.take_first()
            elif job.wants_more and (job.is_empty or stream is None or _is_readable(stream)):
                job.read()
            else:
                job.listen(stream if job.wants_more else None)


@dataclass(eq=False)
class _Worker:
    """A process, as this one sees it; `load`: how many chunks it has been given and not answered."""

    name: str
    process: Any
    connection: Connection
    load: int = 0


@dataclass(eq=False)
class _Pending:
    """A chunk that was read: who predicts it, how much of it is done, and what came out, or why nothing."""

    chunk: Chunk
    worker: _Worker | None
    first: int  # the number of its first input, from 1
    done: int = 0
    results: list[Result] | None = None
    error: Exception | None = None


class _Job:
    """One stream of chunks through a pool."""

    def __init__(self, workers: Sequence[_Worker], chunks: Iterator[Chunk], progress: Count) -> None:
        self._workers = list(workers)  # that have not ended
        self._chunks: Iterator[Chunk] | None = chunks
        self._progress = progress
        self._pending: deque[_Pending] = deque()
        self._n_read = self._n_done = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing that was read waits for its predictions."""
        return not self._pending

    @property
    def is_done(self) -> bool:
        return self.is_empty and self._chunks is None

    @property
    def first_is_answered(self) -> bool:
        return bool(self._pending) and (self._pending[0].results is not None or self._pending[0].error is not None)

    @property
    def wants_more(self) -> bool:
        """Whether a further chunk shall be read; none while others stand before it that are not yielded."""
        return self._chunks is not None and len(self._pending) < AHEAD * len(self._workers)

    def take_first(self) -> tuple[Chunk, list[Result]]:
        """Return the first chunk with its predictions, or raise its error."""
        first = self._pending.popleft()
        if first.error is not None:
            raise first.error
        assert first.results is not None
        self._n_done += len(first.chunk.inputs)
        return first.chunk, first.results

    def read(self) -> None:
        """Read a chunk, and give it to the process with the least to do."""
        assert self._chunks is not None
        try:
            chunk = next(self._chunks, None)
        except Exception as error:  # which waits until all before it is answered
            self._chunks = None
            self._pending.append(_Pending(Chunk(inputs=()), None, self._n_read + 1, error=error))
            return
        if chunk is None:
            self._chunks = None
            return
        pending = _Pending(chunk, None, self._n_read + 1)
        self._pending.append(pending)
        if not chunk.inputs:
            pending.results = []
            return
        pending.worker = worker = min(self._workers, key=lambda one: one.load)
        worker.load += 1
        with suppress(OSError):  # it has ended, which is heard when its answer is due
            worker.connection.send((self._n_read, list(chunk.inputs), dict(chunk.fields)))
        self._n_read += len(chunk.inputs)

    def listen(self, stream: Any) -> None:
        """Wait until a process says something, or there is more to read."""
        heard = {worker.connection: worker for worker in self._workers}
        for one in wait([*heard, *([stream] if stream is not None else [])]):
            if one is not stream:
                self._hear(heard[one])  # type: ignore[index]

    def _hear(self, worker: _Worker) -> None:
        waiting = [one for one in self._pending if one.worker is worker and one.results is None and one.error is None]
        try:
            what, found = worker.connection.recv()
        except (EOFError, OSError):
            what, found = "error", _death(worker, waiting)
        if what == "error":
            self._fail(worker, waiting, _rebuilt(found))
        elif what == "progress":
            waiting[0].done = found
            self._progress(self._n_done + sum(one.done for one in self._pending))
        else:
            waiting[0].results, waiting[0].done = found, len(waiting[0].chunk.inputs)
            worker.load -= 1

    def _fail(self, worker: _Worker, waiting: Sequence[_Pending], error: RegardError) -> None:
        """Read nothing more; the error is raised in the place of the first chunk that the process has not answered."""
        self._workers.remove(worker)
        self._chunks = None
        if not waiting:
            waiting = [_Pending(Chunk(inputs=()), worker, self._n_read + 1)]
            self._pending.extend(waiting)
        for one in waiting:
            one.error = error


def _death(worker: _Worker, waiting: Sequence[_Pending]) -> tuple[str, str, int]:
    """What is said of a process that has ended: its signal or code, and what it was doing."""
    worker.process.join(PATIENCE)
    code = worker.process.exitcode
    how = (
        f"was killed by signal {-code} ({_signal_name(-code)})"
        if code is not None and code < 0
        else f"ended with {code}"
    )
    at = "while it loaded the run"
    if waiting:
        last = waiting[0].first + len(waiting[0].chunk.inputs) - 1
        at = f"at input {last:,}" if last == waiting[0].first else f"at inputs {waiting[0].first:,} to {last:,}"
    return f"{worker.name} {how} {at}.", "If memory ran out, give fewer --processes: each holds the model.", 1


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _rebuilt(found: tuple[str, str, int]) -> RegardError:
    """An error as it was raised in a process."""
    problem, remedy, exit_code = found
    error = RegardError(problem, remedy)
    error.exit_code = exit_code
    return error


def _is_readable(stream: Any) -> bool:
    """Whether reading returns at once; what cannot be asked is taken to."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):
        return True


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    resource_tracker.ensure_running()  # which would let them through again where it is started with the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in each process ----------------------------------------------------------------------------------------------------


def _serve(setup: PoolSetup, connection: Connection) -> None:
    """Predict chunk after chunk, until the other end is closed: then this process ends at once, whatever it does."""
    chunks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, chunks), daemon=True).start()
    try:
        predict = _load(setup)
        while True:
            before, inputs, fields = chunks.get()
            found = predict(inputs, before, fields, lambda done: connection.send(("progress", done)))
            connection.send(("results", found))
    except RegardError as error:
        _say(connection, (error.problem, error.remedy, error.exit_code))
    except Exception as error:
        _say(
            connection, (f"A process failed: {type(error).__name__}: {error}.", "Without --processes it says where.", 1)
        )


def _receive(connection: Connection, chunks: "queue.SimpleQueue[Any]") -> None:
    with suppress(EOFError, OSError):
        while True:
            chunks.put(connection.recv())
    os._exit(0)  # nobody is there to be answered


def _say(connection: Connection, error: tuple[str, str, int]) -> None:
    with suppress(OSError):
        connection.send(("error", error))


def _load(setup: PoolSetup) -> Callable[[Sequence[Any], int, Mapping[str, Any], Count], list[Result]]:
    from regard.api.run import load
    from regard.runtime import keep_freed_memory

    keep_freed_memory()
    run, *others = (load(name, **setup.loading) for name in setup.runs)
    options = run.options({**setup.settings, **({"ensemble": others} if others else {})})

    def predict(inputs: Sequence[Any], before: int, fields: Mapping[str, Any], progress: Count) -> list[Result]:
        asked = replace(options.after(before), progress=lambda what, done: progress(done), **fields)
        return list(run.predict_with(inputs, asked))

    return predict
