"""Trial steps: the gradients of a batch and of a tiny one, and an update, timed in this process or in several at once.

Several share the processors as they would in training, and sum their gradients (gloo, all-reduce) after each round.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

import torch
from torch import distributed, nn

from regard import runtime
from regard.config import RuntimeConfig, TrainingConfig
from regard.errors import RegardError
from regard.models.model_config import ModelConfig
from regard.models.presets import build_model
from regard.parts.dropout import seeded
from regard.training.batch_shape import AnyBatchShape
from regard.training.optimizer import Optimizer
from regard.training.synthetic_batch import synthetic_loss

LIMIT = 6.0  # seconds after which no further round begins
ROUNDS = 3
START_SECONDS = 120.0  # within which processes have found each other, or never will
_REMEDY = "Leave the measurement out, or plan for fewer processes."


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is timed."""

    config: ModelConfig
    optimizer: str
    batch: AnyBatchShape
    tiny: AnyBatchShape


class Timed(NamedTuple):
    """Seconds of a round."""

    gradient_seconds: float
    tiny_seconds: float
    update_seconds: float
    all_reduce_seconds: float = 0.0


def time_rounds(trial: Trial, machine: runtime.Machine, *, together: bool = False) -> list[Timed]:
    """Time some rounds; the first, which warms up, is left out. `together`: with the other processes of a group."""
    with runtime.denormals_as_zero():
        rounds = list(_rounds(trial, machine, together=together))
    return rounds[1:] or rounds


def _rounds(trial: Trial, machine: runtime.Machine, *, together: bool) -> Iterator[Timed]:
    model = build_model(trial.config).to(machine.device).train()
    optimizer = Optimizer(model, TrainingConfig(optimizer=trial.optimizer))
    gradients = torch.zeros(sum(parameter.numel() for parameter in model.parameters()) if together else 0)
    began, number = time.perf_counter(), 0
    while not number or (number <= ROUNDS and not _is_late(began, together=together)):
        own = _gradient_seconds(model, optimizer, trial.batch, machine)
        is_whole = trial.tiny == trial.batch
        small = own if is_whole else _gradient_seconds(model, optimizer, trial.tiny, machine)
        start = time.perf_counter()
        optimizer.update(0.0)  # which costs the same, and keeps the weights
        _wait(machine.device)
        update = time.perf_counter() - start
        yield Timed(own, small, update, _all_reduce_seconds(gradients) if together else 0.0)
        number += 1


def _is_late(began: float, *, together: bool) -> bool:
    """Whether no further round shall begin; of a group, all go by the slowest clock."""
    late = torch.tensor(float(time.perf_counter() - began >= LIMIT))
    if together:
        distributed.all_reduce(late, distributed.ReduceOp.MAX)
    return bool(late)


def _gradient_seconds(model: nn.Module, optimizer: Optimizer, batch: AnyBatchShape, machine: runtime.Machine) -> float:
    start = time.perf_counter()
    optimizer.zero_grad()
    with seeded(0, machine.device), machine.autocast():
        loss = synthetic_loss(model, batch, device=machine.device)
    loss.backward()
    _wait(machine.device)
    return time.perf_counter() - start


def _all_reduce_seconds(gradients: torch.Tensor) -> float:
    distributed.barrier()  # waiting for the others is no communication
    start = time.perf_counter()
    distributed.all_reduce(gradients)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize()


def time_together(trial: Trial, n_processes: int, *, precision: str) -> Timed:
    """Time a trial in so many processes at once: of each round the slowest process, and of those the median."""
    context = multiprocessing.get_context("spawn")
    threads = max(1, runtime.cores() // n_processes)
    with tempfile.TemporaryDirectory() as folder:
        readers, processes = [], []
        for rank in range(n_processes):
            reader, writer = context.Pipe(duplex=False)
            group = _Group(Path(folder) / "store", rank, n_processes, threads)
            processes.append(context.Process(target=_work, args=(trial, group, precision, writer), daemon=True))
            readers.append(reader)
            processes[-1].start()
            writer.close()  # so that the reader hears when the process has ended
        try:
            rounds = _collect(readers)
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.join()
    slowest = [[max(seconds) for seconds in zip(*alike, strict=True)] for alike in zip(*rounds, strict=True)]
    return Timed(*(statistics.median(column) for column in zip(*slowest, strict=True)))


@dataclass(frozen=True)
class _Group:
    """The processes of a trial: where they find each other, which one this is, of how many, with so many threads."""

    store: Path
    rank: int
    size: int
    threads: int


def _collect(readers: list[Connection]) -> list[list[Timed]]:
    found: dict[Connection, list[Timed]] = {}
    while len(found) < len(readers):
        for reader in wait([one for one in readers if one not in found]):
            assert isinstance(reader, Connection)
            try:
                found[reader] = reader.recv()
            except EOFError as error:
                rank = readers.index(reader)
                raise RegardError(f"Process {rank} of {len(readers)} ended while steps were timed.", _REMEDY) from error
    return [found[reader] for reader in readers]


def _work(trial: Trial, group: _Group, precision: str, writer: Connection) -> None:
    """What each process does."""
    from datetime import timedelta

    runtime.keep_freed_memory()
    machine = runtime.prepare(RuntimeConfig(device="cpu", threads=group.threads, precision=precision))
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{group.store}",
        rank=group.rank,
        world_size=group.size,
        timeout=timedelta(seconds=START_SECONDS),
    )
    try:
        writer.send(time_rounds(trial, machine, together=True))
        distributed.barrier()  # nobody leaves while another still sums
    finally:
        distributed.destroy_process_group()
