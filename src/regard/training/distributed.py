"""Ranks: data-parallel training over the processes of one launch (torchrun); the one file of the loop that knows of them.

Every update's batches are those of one process. Each rank takes its share of every batch, by cost; the gradients of the sums
are added up over all ranks and divided by the total weight, so that nothing depends on how many there are but the order of
sums. The leader (rank 0) decides: before each update it tells the others to make one, or that training has ended. So they
need no clock, no run folder and no validation, and may wait while it saves. Alone (`World`), a process leads nobody.

Gradients go through a plain `all_reduce` in buckets, not through DDP: DDP wraps a forward that tasks do not call (they ask a
model for states, and compute its output layer in chunks), divides by the number of ranks where we divide by tokens, and
expects every rank to have examples.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard import runtime
from regard.errors import RegardError, TrainingError
from regard.parts.convolution import BatchNorm
from regard.runtime import Ranks
from regard.tasks.task import Examples, Indices
from regard.training.rank_store import BEAT, LostError, RankStore

BUCKET = 32 << 20  # bytes of gradients that are added up at once
_UPDATE, _END = 1.0, 0.0  # what the leader says


class World:
    """All the processes that train one run: this one alone."""

    ranks = Ranks()
    signal = 0  # which ended the leader's training

    @property
    def leads(self) -> bool:
        """Whether this process validates, saves and shows."""
        return self.ranks.rank == 0

    def share(self, indices: Indices, examples: Examples) -> Indices:
        """Return the examples of a batch that this rank learns from."""
        return indices

    def seed(self, number: int) -> int:
        """Return the seed of this rank's random draws, from that of the only one."""
        return number

    def begin_update(self, seconds: float) -> float | None:
        """Begin an update, the run having taken so many seconds: return those by the leader's clock, None for its end."""
        return seconds

    def add_up(self, parameters: Sequence[nn.Parameter], loss: float, weight: float) -> tuple[float, float]:
        """Add up gradients, losses and weights over all ranks."""
        return loss, weight

    def waiting(self) -> tuple[float, float]:
        """Which shares of the time of updates all ranks have waited for one another, and exchanged gradients."""
        return 0.0, 0.0

    def send(self, facts: Mapping[str, Any]) -> None:
        """Give the others what they begin with."""

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Give these tensors the leader's values, on every rank."""

    def end(self, signal: int = 0) -> None:
        """Tell the others that training has ended, by this signal."""

    def synchronise(self, model: nn.Module, examples: Examples) -> None:
        """Let batch norms take their statistics over all ranks."""


class ManyRanks(World):
    """The world of a process among others, connected by gloo; gradients between GPUs go by NCCL."""

    def __init__(self, ranks: Ranks, store: RankStore) -> None:
        self.ranks = ranks
        self.store = store
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        # How long is waited is decided in `_finish`: torch cannot know that the leader validates, or saves.
        dist.init_process_group(
            backend, store=store.store, rank=ranks.rank, world_size=ranks.size, timeout=timedelta(days=7)
        )
        self.ended = False
        self._seconds = [0.0, 0.0, 0.0]  # of the last update: waiting for the others, exchanging gradients, in all
        self._totals = np.zeros(3)  # the sums over ranks and updates
        self._began = 0.0

    def share(self, indices: Indices, examples: Examples) -> Indices:
        return share_by_cost(indices, examples, rank=self.ranks.rank, size=self.ranks.size)

    def seed(self, number: int) -> int:
        return runtime.mix(number, self.ranks.rank) if self.ranks.rank else number

    def begin_update(self, seconds: float) -> float | None:
        word = torch.tensor([_UPDATE, seconds], dtype=torch.float64)
        self._broadcast(word)
        what, value = word.tolist()
        self._began = time.perf_counter()
        if what == _UPDATE:
            return float(value)
        self.ended, self.signal = True, int(value)
        return None

    def add_up(self, parameters: Sequence[nn.Parameter], loss: float, weight: float) -> tuple[float, float]:
        """The same, bit for bit, on every rank. A parameter has a gradient where it has one on any rank."""
        began = time.perf_counter()
        own = [loss, weight, *self._seconds, *(parameter.grad is not None for parameter in parameters)]
        header = torch.tensor(own, dtype=torch.float64)
        self._finish(_all_reduce(header), leader_only=False)
        loss, weight, *found = header.tolist()
        arrived = time.perf_counter()
        self._add_up([gradient_of(one) for one, has in zip(parameters, found[3:], strict=True) if has])
        done = time.perf_counter()
        self._totals += np.array(found[:3])
        if self._began:  # not where the time of a step is tried
            self._seconds = [arrived - began, done - arrived, done - self._began]
        self.store.updates += 1
        return loss, weight

    def waiting(self) -> tuple[float, float]:
        waited, exchanged, total = self._totals
        return (float(waited / total), float(exchanged / total)) if total else (0.0, 0.0)

    def send(self, facts: Mapping[str, Any]) -> None:
        content = torch.frombuffer(bytearray(json.dumps(facts).encode()), dtype=torch.uint8)
        self._broadcast(torch.tensor([len(content)]))
        self._broadcast(content)

    def receive(self) -> dict[str, Any]:
        """Wait for what the leader sends."""
        length = torch.zeros(1, dtype=torch.int64)
        self._broadcast(length)
        content = torch.empty(int(length), dtype=torch.uint8)
        self._broadcast(content)
        facts: dict[str, Any] = json.loads(content.numpy().tobytes())
        return facts

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for tensor in tensors:
                values = tensor.detach().contiguous().cpu()
                self._broadcast(values)
                tensor.copy_(values)

    def end(self, signal: int = 0) -> None:
        """Tell the others, or wait to be told, that training has ended."""
        if not self.ended:
            self.ended = True
            self._broadcast(torch.tensor([_END, signal], dtype=torch.float64))

    def synchronise(self, model: nn.Module, examples: Examples) -> None:
        norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
        of_torch = [name for name, one in model.named_modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
        if of_torch:
            raise TrainingError(
                f"{of_torch[0]} is a batch norm of torch, whose statistics would be those of each process alone.",
                "Use regard.parts.convolution.BatchNorm or another norm, or train with one process.",
            )
        smallest = min(map(len, examples.order(0)), default=0)
        if norms and smallest < self.ranks.size:
            raise TrainingError(
                f"Batch norm needs an image in each of {self.ranks.size:,} processes, and a batch has {smallest:,}.",
                "Use larger batches or fewer processes, or model.norm = none.",
            )
        for norm in norms:
            norm.total = self.total

    def total(self, x: Tensor) -> Tensor:
        """Add a tensor up over all ranks, so that gradients pass."""
        summed: Tensor = _Total.apply(x, self)  # type: ignore[no-untyped-call]
        return summed

    def close(self) -> None:
        """Leave; whoever waits for this process is told at once."""
        with contextlib.suppress(RuntimeError, ValueError):
            dist.destroy_process_group()

    def _broadcast(self, tensor: Tensor) -> None:
        """Give all the leader's values; the others wait for as long as it lives."""
        work = dist.broadcast(tensor, src=0, async_op=True)
        assert work is not None
        self._finish(work, leader_only=True)

    def _add_up(self, gradients: Sequence[Tensor]) -> None:
        """Replace gradients by their sums. The next bucket is filled while one is under way."""
        under_way = []
        for bucket in buckets(gradients):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            under_way.append((bucket, flat, _all_reduce(flat)))
        for bucket, flat, work in under_way:
            self._finish(work, leader_only=False)
            parts = flat.split([gradient.numel() for gradient in bucket])
            torch._foreach_copy_(bucket, [part.view_as(own) for part, own in zip(parts, bucket, strict=True)])

    def _finish(self, work: dist.Work, *, leader_only: bool) -> None:
        """Wait for a collective; raise what has become of a process that does not take part."""
        began = time.monotonic()
        while True:
            try:
                work.wait(timedelta(seconds=BEAT))
                return
            except RuntimeError as error:
                if work.is_completed():
                    raise self.store.broken() from error
                self.store.refuse_failure(leader_only=leader_only, waited=time.monotonic() - began)


def _all_reduce(tensor: Tensor) -> dist.Work:
    work: dist.Work | None = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    return work


class _Total(torch.autograd.Function):
    """y = Σ x over all ranks; and so is the gradient of x the sum of all gradients of y."""

    @staticmethod
    def forward(context: Any, x: Tensor, world: ManyRanks) -> Tensor:
        context.world = world
        total = x.clone()
        world._finish(_all_reduce(total), leader_only=False)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous().clone()
        context.world._finish(_all_reduce(total), leader_only=False)
        return total, None


@contextlib.contextmanager
def joined(given: Mapping[str, Any], *, timeout: float) -> Iterator[World]:
    """Be one of the processes that torchrun started, inside the block; alone where it was not torchrun.

    given: the settings that this process was started with, which must be those of the leader
    """
    ranks = runtime.ranks()
    if ranks.size == 1:
        yield World()
        return
    runtime.end_with_parent()
    store = RankStore.connect(ranks, timeout=timeout)
    try:
        store.compare({**runtime.facts(), **given})
        world = ManyRanks(ranks, store)
        with contextlib.suppress(GeneratorExit):  # whoever follows the run has seen enough
            yield world
        world.end()
        world.close()
    except LostError:
        raise
    except RegardError as error:
        raise store.announce(error) from error
    except Exception as error:
        store.announce(RegardError(f"{type(error).__name__}: {error}"))
        raise
    finally:
        store.close()


def share_by_cost(indices: Indices, examples: Examples, *, rank: int, size: int) -> Indices:
    """Return a rank's share of a batch: neighbours in length, of as many tokens as any other's, in the batch's order.

    In a share of like lengths hardly anything is padding. Where there are fewer examples than ranks, some get none.
    """
    costs = np.array([examples.size(indices[place : place + 1]) for place in range(len(indices))], np.int64)
    order = np.argsort(costs, kind="stable")
    sorted_costs = costs[order]
    middles = 2 * np.cumsum(sorted_costs) - sorted_costs  # twice the cost up to the middle of each
    owners = size * middles // (2 * int(sorted_costs.sum())) if len(indices) else order
    own: Indices = indices[np.sort(order[owners == rank])]
    return own


def gradient_of(parameter: nn.Parameter) -> Tensor:
    """Return a parameter's gradient, of zeros where this rank has none."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Put tensors of one type together, in their order, up to `BUCKET` bytes."""
    bucket: list[Tensor] = []
    n_bytes = 0
    for tensor in tensors:
        own = tensor.numel() * tensor.element_size()
        if bucket and (n_bytes + own > BUCKET or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, n_bytes = [], 0
        bucket.append(tensor)
        n_bytes += own
    if bucket:
        yield bucket
