"""Batched decoding: many inputs, sorted by length, decoded batch by batch, given back in order."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from regard.errors import UsageError

Result = TypeVar("Result")


def in_order(lengths: Sequence[int], *, batch_size: int) -> list[list[int]]:
    """Return batches of input numbers, longest inputs first: little padding, and memory runs out at once or never."""
    if batch_size < 1:
        raise UsageError(f"A batch holds at least 1 sentence, but batch_size is {batch_size}.", "Give 1 or more.")
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def run_in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], Sequence[Result]],
    *,
    batch_size: int,
    progress: Callable[[int], None] | None = None,
) -> list[Result]:
    """Call `run` with the input numbers of each batch; return its results in the order of the inputs.

    progress:  called after each batch with the number of inputs done so far
    """
    results: dict[int, Result] = {}
    for numbers in in_order(lengths, batch_size=batch_size):
        results.update(zip(numbers, run(numbers), strict=True))
        if progress is not None:
            progress(len(results))
    return [results[number] for number in range(len(lengths))]
