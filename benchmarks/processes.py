"""Two processes of one thread against one process of two threads: updates on the same global batches, in turns.

    python -m benchmarks.processes              transformer-tiny and gpt-mini
    python -m benchmarks.processes --quick

Beside the time: which share of it the two processes waited for one another, and which they added up gradients. The second
process follows the first, which alone answers.
"""

import argparse
import os
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any

from benchmarks.corpora import MULTI30K, SHAKESPEARE, find_running_text, find_text, run_config
from benchmarks.rounds import (
    BUILD,
    REPOSITORY,
    Answer,
    Contender,
    options,
    ratio,
    report,
    serve,
    started,
    table,
    take_turns,
)

from regard import runtime
from regard.config import RunConfig, from_tables
from regard.models.presets import build_model, model_config
from regard.tasks import find_task
from regard.training.distributed import World, joined
from regard.training.loop import Trainer, updates
from regard.training.session import make_trainer
from regard.training.state import Cursor

MODELS = ("transformer-tiny", "gpt-mini")
PATIENCE = 1e6  # seconds: a contender is frozen while the others run


def main() -> None:
    parser = options("Two processes of one thread against one of two threads.", rounds=7)
    parser.add_argument("--updates", type=int, default=20, help="updates a round")
    parser.add_argument("--contender", choices=("one", "two", "follower"), help=argparse.SUPPRESS)
    parser.add_argument("--model", choices=MODELS, help="only one of the models")
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    n_updates = 2 if arguments.quick else arguments.updates
    if arguments.contender:
        be(arguments.contender, arguments.model, n_updates)
        return
    rows, found = [], {}
    for model in [arguments.model] if arguments.model else MODELS:
        found[model] = compare(model, n_updates, rounds=1 if arguments.quick else arguments.rounds)
        rows.append(row(model, found[model]))
    header = ("model", "1 x 2 threads", "2 x 1 thread", "ratio", "waiting", "adding up")
    report("processes", table(header, rows), {"models": found}, quick=arguments.quick)


def compare(model: str, n_updates: int, *, rounds: int) -> dict[str, list[Answer]]:
    """Let both take turns."""
    common = ["--model", model, "--updates", str(n_updates)]
    contenders = [
        Contender("one", "benchmarks.processes", [*common, "--contender", "one"], {"OMP_NUM_THREADS": "2"}),
        Contender("two", "benchmarks.processes", [*common, "--contender", "two"], {"OMP_NUM_THREADS": "1"}),
    ]
    with started(contenders) as children:
        return take_turns(children, "updates", rounds=rounds)


def row(model: str, answers: dict[str, list[Answer]]) -> list[str]:
    """Medians; the ratio is that of the times of two processes to those of one, round by round."""
    seconds = {name: [answer["seconds"] for answer in found] for name, found in answers.items()}
    shares = [answers["two"][-1][key] for key in ("waiting", "adding_up")]
    times = [f"{1000 * median(seconds[name]) / answers[name][0]['updates']:.1f} ms" for name in ("one", "two")]
    return [model, *times, f"{ratio(seconds['two'], seconds['one']):.2f}", *(f"{share:.1%}" for share in shares)]


# --- the children -----------------------------------------------------------------------------------------------------


def be(contender: str, model: str, n_updates: int) -> None:
    """Be one process; the first of two starts the other."""
    if contender == "one":
        work(contender, model, n_updates, World())
        return
    follower = None
    if contender == "two":
        place = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
        }
        os.environ.update(place)
        command = [sys.executable, "-m", "benchmarks.processes", "--contender", "follower", "--model", model]
        second = {**os.environ, "RANK": "1", "LOCAL_RANK": "1"}
        follower = subprocess.Popen([*command, "--updates", str(n_updates)], cwd=REPOSITORY, env=second)
        os.environ.update(RANK="0", LOCAL_RANK="0")
    with joined({}, timeout=PATIENCE) as world:
        work(contender, model, n_updates, world)
    if follower is not None:
        follower.wait()


def work(contender: str, model: str, n_updates: int, world: World) -> None:
    """Make updates: those that are asked for, or all that the leader makes."""
    runtime.keep_freed_memory()
    with runtime.denormals_as_zero():
        trainer = make(config_of(model, threads=2 if contender == "one" else 1), world)
        endless = updates(trainer, Cursor())
        if contender == "follower":
            for _ in endless:
                pass
            return

        def some(number: int) -> dict[str, Any]:
            weight = sum(update.weight for update in islice(endless, n_updates))
            waited, exchanged = world.waiting()
            return {"updates": n_updates, "weight": weight, "waiting": waited, "adding_up": exchanged}

        serve({"updates": some})


def make(config: RunConfig, world: World) -> Trainer:
    """Prepare the data and the network of a run."""
    machine = runtime.prepare(config.runtime)
    prepared = find_task(config.task).prepare(config, vocabulary=None, progress=lambda what, done: None)
    sizes = model_config(config.model, origin="benchmark", **prepared.task.model_fields())
    network = build_model(sizes, seed=config.seed).to(machine.device)
    network.train()
    trainer = make_trainer(config, prepared, network, machine, lr_factors={}, world=world)
    return replace(trainer, total=10**6)


def config_of(model: str, *, threads: int) -> RunConfig:
    """A run of a preset at its defaults."""
    if model == "transformer-tiny":
        return run_config(find_text(MULTI30K), threads=threads)
    tables: dict[str, Any] = {"data": {"train": [find_running_text(SHAKESPEARE)]}, "model": {"preset": model}}
    return from_tables(
        {"task": "language", **tables, "runtime": {"device": "cpu", "threads": threads}}, origin="benchmark"
    )


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    main()
