"""Several processes that predict with one run: the option, what it does not go with, and the pool that is opened for it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.options import check_number
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.api.process_pool import ProcessPool

MOST_PROCESSES = 256
ProcessesOption = Annotated[
    int,
    Parameter(
        help="for large inputs: processes that share them, each with a model and --threads threads (1) of its own; the "
        "order stays. CTranslate2 has workers that share one model, --engine-workers: they come first (1)"
    ),
]


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """What each process loads, and how it predicts; see `regard.api.process_pool.PoolSetup`."""

    runs: Sequence[str]
    loading: Mapping[str, Any]
    settings: Mapping[str, Any]


def process_loading(processes: int, threads: int, loading: Mapping[str, Any]) -> dict[str, Any]:
    """How runs are loaded: where several processes compute, each has one thread, and one worker of another engine."""
    check_number("--processes", processes, most=MOST_PROCESSES)
    found = {"threads": threads, **loading}
    if processes > 1:
        alone = ("threads", "engine_workers", "engine_threads")
        found |= {name: found[name] or 1 for name in alone if name in found}
    return found


def refuse_processes(processes: int, remedy: str = "Leave it out.") -> None:
    """Refuse several processes where there is hardly anything to share."""
    if processes != 1:
        raise UsageError("--processes is for files and standard input.", remedy)


@contextmanager
def open_pool(processes: int, settings: PoolSettings) -> "Iterator[ProcessPool | None]":
    """Open a pool of processes, and close it in the end; None for one, which is this."""
    if processes == 1:
        yield None
        return
    from regard.api.process_pool import PoolSetup, ProcessPool

    setup = PoolSetup(runs=settings.runs, loading=settings.loading, settings=settings.settings)
    with ProcessPool(setup, processes) as pool:
        yield pool
