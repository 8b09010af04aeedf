"""Reading ahead: threads put coming batches together while the model learns from the one in hand.

Threads and not processes, since most of the work is done outside of the interpreter: files mapped into memory are read,
arrays copied. A batch is a function of its examples alone, and the order is the caller's: the number of threads changes
neither the batches nor what is learned from them.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

AHEAD = 2  # batches for each thread: one in hand, one that is ready

Wanted = TypeVar("Wanted")
Batch = TypeVar("Batch")


@contextlib.contextmanager
def reading_ahead(
    read: Callable[[Wanted], Batch], wanted: Iterable[Wanted], *, workers: int
) -> Iterator[Iterator[Batch]]:
    """Hand out what `read` makes of all that is wanted, in order; so many threads read a little ahead, until the block ends.

    What a thread raises is raised where its batch would have come. Without workers each is read when it is asked for.
    """
    if not workers:
        yield map(read, wanted)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="reading-ahead")
    try:
        yield _in_order(pool, read, iter(wanted), n_ahead=AHEAD * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor, read: Callable[[Wanted], Batch], wanted: Iterator[Wanted], *, n_ahead: int
) -> Iterator[Batch]:
    waiting: deque[Future[Batch]] = deque(pool.submit(read, one) for one in islice(wanted, n_ahead))
    while waiting:
        first = waiting.popleft()
        waiting.extend(pool.submit(read, one) for one in islice(wanted, 1))
        yield first.result()
