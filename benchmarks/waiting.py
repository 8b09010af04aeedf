"""How OpenMP's threads wait for each other: training tokens/s by how long a waiting thread spins before it sleeps.

Spinning is quicker while every core is one's own. But beside one busy process the spinning thread holds the core that the
thread it waits for would need. So each way is measured on an idle machine and beside a process that keeps one core busy.
With a single thread there is nothing to wait for and nothing to see.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from benchmarks.corpora import MULTI30K, find_text
from benchmarks.rounds import BUILD, Contender, options, report, started, table, take_turns, threads_of
from benchmarks.training import prepare_batches

WAYS = {
    "default": {},
    "spin 10,000": {"GOMP_SPINCOUNT": "10000"},
    "spin 1,000": {"GOMP_SPINCOUNT": "1000"},
    "passive": {"OMP_WAIT_POLICY": "passive"},
}


def main() -> None:
    arguments = options("How waiting threads wait.", rounds=5).parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    n_batches, n_rounds = (1, 1) if arguments.quick else (4, arguments.rounds)
    prepare_batches(find_text(MULTI30K), threads=threads, n=1)
    flags = ["--contender", "regard", "--threads", str(threads), "--batches", str(n_batches)]
    contenders = [
        Contender(way, "benchmarks.training", flags, {"OMP_NUM_THREADS": str(threads), **settings})
        for way, settings in WAYS.items()
    ]
    answers = {}
    with started(contenders) as children:
        answers["idle machine"] = take_turns(children, "train", rounds=n_rounds)
        with busy_neighbour():
            answers["beside a busy process"] = take_turns(children, "train", rounds=n_rounds)
    speeds = {
        place: {name: median(one["tokens"] / one["seconds"] for one in own) for name, own in found.items()}
        for place, found in answers.items()
    }
    rows = [[place, *(f"{own[way]:,.0f}" for way in WAYS)] for place, own in speeds.items()]
    title = f"Training tokens/s by how threads wait; {threads} threads, medians of {n_rounds} rounds of {n_batches} updates."
    text = f"{title}\n\n{table(['', *WAYS], rows)}"
    report("waiting", text, {"threads": threads, "tokens_per_second": speeds}, quick=arguments.quick)


@contextlib.contextmanager
def busy_neighbour() -> Iterator[None]:
    """A process that keeps one core busy inside the block."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


if __name__ == "__main__":
    main()
