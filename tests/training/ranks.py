"""Processes of one launch, without torchrun: started with its environment, waited for, ended where they hang."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

PATIENCE = 300  # seconds


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(
    arguments: Sequence[str],
    *,
    size: int,
    environment: Mapping[str, str] | None = None,
    ranks: Sequence[int] | None = None,
    others: Mapping[int, Sequence[str]] | None = None,
) -> list[subprocess.Popen[str]]:
    """Start `python ARGUMENTS` in so many processes, or only in those of some ranks; some with `others`."""
    place = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    started = []
    for rank in range(size) if ranks is None else ranks:
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
        started.append(
            subprocess.Popen(
                [sys.executable, *(others or {}).get(rank, arguments)],
                env={**os.environ, **place, **own, **(environment or {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return started


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Wait for all; return their exit codes, and what they wrote on standard error."""
    try:
        said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]
