"""Prefetching: threads put upcoming batches together while the model trains on the present one.

Threads and not processes, since most of the work is done outside of the interpreter: files mapped into memory are read,
arrays copied. A batch is a function of its examples alone, and the order is the caller's: the number of workers changes
neither the batches nor what is learned from them.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

PREFETCH_FACTOR = 2  # batches per worker: one in work, one that is ready

Wanted = TypeVar("Wanted")
Batch = TypeVar("Batch")


@contextlib.contextmanager
def prefetch(
    collate: Callable[[Wanted], Batch], wanted: Iterable[Wanted], *, workers: int
) -> Iterator[Iterator[Batch]]:
    """Hand out what `collate` makes of all that is wanted, in order; the workers run a little ahead, until the block ends.

    What a thread raises is raised where its batch would have come. Without workers each is made when it is asked for.
    """
    if not workers:
        yield map(collate, wanted)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="prefetch")
    try:
        yield _in_order(pool, collate, iter(wanted), n_ahead=PREFETCH_FACTOR * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor, collate: Callable[[Wanted], Batch], wanted: Iterator[Wanted], *, n_ahead: int
) -> Iterator[Batch]:
    waiting: deque[Future[Batch]] = deque(pool.submit(collate, one) for one in islice(wanted, n_ahead))
    while waiting:
        first = waiting.popleft()
        waiting.extend(pool.submit(collate, one) for one in islice(wanted, 1))
        yield first.result()
