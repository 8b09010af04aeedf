"""Checkpoint averaging: the mean of several checkpoints' weights, which often scores better than any of them.

Vaswani et al. 2017, "Attention Is All You Need", section 6.1: the last 5 (base) or 20 (big) checkpoints are averaged.
Weights only: an average cannot be resumed. Where a run keeps a moving average (EMA), that is averaged: it is what was
validated. The statistics of batch norms are averaged too: those of one checkpoint would be of other weights, and those of
the average itself (Izmailov et al. 2018) need the training data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.errors import CheckpointError, RunError, UsageError
from regard.runs import tensors
from regard.runs.checkpoints import Checkpoint, header_of, reading, verify, write
from regard.runs.folder import RunFolder
from regard.runs.names import EMA, MODEL, find
from regard.runs.selection import of_step
from regard.runs.tensor_header import Shape

Score = Callable[[Mapping[str, Tensor]], Mapping[str, Any]]


def average(
    run: RunFolder, *, last: int | None = None, steps: Sequence[int] | None = None, score: Score | None = None
) -> Checkpoint:
    """Average the `last` so many checkpoints, or those of `steps`, and write `checkpoints/average-<newest step>`.

    The sum runs in float64, one tensor at a time: memory holds the result and little more. `score` turns the weights into
    the scores of a validation, which are kept beside them. Only for the holder of the run's lock.
    """
    if (last is None) == (steps is None):
        raise UsageError("Averaging needs either the number of last checkpoints or the steps.", "Give one of the two.")
    chosen = newest(run, last) if last is not None else sorted(set(steps or ()))
    if not chosen:
        raise UsageError("Averaging needs at least one step, and none is given.", "Name the steps to average.")
    sources = [verify(of_step(run, step)) for step in chosen]
    facts = {**sources[-1].facts, "averaged": chosen}
    weights = mean_weights(sources)
    state = None if score is None else {"validation": score(weights)}
    return write(run, step=chosen[-1], model=weights, facts=facts, state=state, kind="average")


def newest(run: RunFolder, count: int) -> list[int]:
    """Return the steps of the newest `count` checkpoints, oldest first; there must be so many."""
    if count < 1:
        raise UsageError(f"--last must be at least 1, not {count}.", "Ask for 1 or more.")
    steps = list(find(run))
    if len(steps) < count:
        raise RunError(
            f"{run} has {len(steps)} checkpoints, fewer than the last {count} to average.",
            f"Ask for at most {len(steps)}, or train with a larger training.keep."
            if steps
            else f"Train it first: regard resume {run}",
        )
    return steps[-count:]


def mean_weights(sources: Sequence[Checkpoint]) -> dict[str, Tensor]:
    """Return the mean of each floating-point tensor that the sources are used with; any other is the last source's."""
    weights: dict[str, Tensor] = {}
    last = sources[-1]
    header = header_of(last.path / MODEL)
    for source in sources:
        if layout(source) != layout(last):
            raise CheckpointError(
                f"{source} and {last} have weights of different names or shapes.",
                "Average checkpoints of one model only.",
            )
    with ExitStack() as stack:
        stored = [stack.enter_context(opened(source, MODEL)) for source in sources]
        averaged = [stack.enter_context(opened(source, EMA)) for source in sources if EMA in source.manifest.files]
        kept = set(header_of(last.path / EMA).stored) if averaged else set()
        for name in header.stored:
            weights[name] = mean(averaged if name in kept else stored, name)
    return weights | {name: weights[first] for name, first in header.tied.items()}


def layout(source: Checkpoint) -> dict[str, Mapping[str, Shape]]:
    """Map each file of weights to the shapes of its tensors by name."""
    files = [name for name in (MODEL, EMA) if name in source.manifest.files]
    return {name: header_of(source.path / name).stored for name in files}


@contextmanager
def opened(source: Checkpoint, name: str) -> Iterator[Any]:
    """Open a file of weights, whose tensors are read one by one."""
    with reading(source.path / name, "a file of tensors"), tensors.opened(source.path / name) as file:
        yield file


def mean(files: Sequence[Any], name: str) -> Tensor:
    """Return the mean of one floating-point tensor over open safetensors files, or the last of any other kind."""
    last: Tensor = files[-1].get_tensor(name)
    if not last.is_floating_point():
        return last
    total = torch.zeros(last.shape, dtype=torch.float64)
    for file in files:
        total += file.get_tensor(name)
    return (total / len(files)).to(last.dtype)
