"""`--processes N`: the same command in N processes of this machine, started and watched by torchrun's own agent.

The command line is parsed and refused here first, so that most errors come before anything is started. A signal goes on to
all processes, of which the first saves; when one is killed the others are ended, and this says which.
"""

import logging
import os
import sys
from collections.abc import Mapping, Sequence

from regard.cli.options import flag
from regard.cli.terminal import busy, note
from regard.cli.train_options import RunOptions
from regard.errors import RegardError, TrainingError, UsageError

MOST = 1024
_KILLED_BY = {9: "SIGKILL; perhaps there was not enough memory", 7: "SIGBUS", 11: "SIGSEGV", 6: "SIGABRT", 4: "SIGILL"}
_RESUME = "Go on from the last checkpoint: regard resume RUN"


def refuse_before_launch(where: RunOptions) -> None:
    """Refuse options that several processes do not take."""
    if where.seeds:
        raise UsageError("--seeds does not go with several processes.", "Train one seed at a time, with --seed.")


def is_launched() -> bool:
    """Whether torchrun has started this process among others."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def launch(processes: int, further: Sequence[str] = ()) -> int:
    """Run this very command, and `further` arguments, in so many processes; return its exit code."""
    if not 1 <= processes <= MOST:
        raise UsageError(f"--processes must be from 1 to {MOST:,}, not {processes}.", "Give one per core, or per GPU.")
    with busy("starting"):
        from torch.distributed.elastic.multiprocessing import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        from regard.runtime import LAUNCHER, cores
    if is_launched():
        raise UsageError(
            "--processes starts processes of its own, and torchrun has started this one.", "Leave --processes out."
        )
    if processes > cores():
        note(
            f"{processes:,} processes share {cores():,} core{'s' * (cores() > 1)}: more than one per core only slows down."
        )
    logging.disable(logging.CRITICAL)  # what torch's agent logs of a process that ends is said here in two lines
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores() // processes)))
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ[LAUNCHER] = str(os.getpid())
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id="regard",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # a free port
        max_restarts=0,
    )
    command = ["-m", "regard", *without_processes(sys.argv[1:]), *further]
    try:
        elastic_launch(config, sys.executable)(*command)
    except SignalException as error:
        return 128 + int(error.sigval)
    except ChildFailedError as error:
        return outcome({rank: failure.exitcode for rank, failure in error.failures.items()})
    except OSError as error:
        raise TrainingError(f"The processes cannot be started: {error.strerror or error}.", "Try fewer.") from error
    return 0


def outcome(codes: Mapping[int, int]) -> int:
    """Return the exit code of a launch by those of processes that failed; say which was killed, where one was."""
    killed = {rank: -code for rank, code in codes.items() if code < 0}
    if not killed:
        return max(codes.values())  # who ended by itself has said why
    rank, number = next(iter(killed.items()))
    signal = _KILLED_BY.get(number, f"signal {number}")
    raise RegardError(f"Rank {rank} was killed by {signal}: the run cannot go on without it.", _RESUME)


def without_processes(arguments: Sequence[str]) -> list[str]:
    """Leave the option and its value out of a command line."""
    option = flag("processes")
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if not (skip or argument == option or argument.startswith(f"{option}=")):
            kept.append(argument)
        skip = argument == option
    return kept
