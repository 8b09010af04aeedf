"""Where the fused attention kernel overtakes the plain formula on this CPU: by the number of keys, forward and backward.

`regard.parts.attention.SHORT` is set by this: up to so many keys `attend` computes the formula. Shapes are those of
training transformer-tiny: 4 heads of 32 features, as many sentences as 4,096 tokens hold.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from regard import runtime
from regard.parts import attention, masks
from regard.parts.masks import Mask
from rounds import options, report, table, tell, threads_of

HEADS, WIDTH, TOKENS = 4, 32, 4096
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
FORMULA, FUSED = "formula", "fused"
_SHORT = {FORMULA: 10**9, FUSED: 0}  # what SHORT must be for `attend` to take this way


@dataclass(frozen=True)
class Case:
    """Queries, keys and values of one shape, their mask, and the gradient of the output."""

    tensors: tuple[Tensor, Tensor, Tensor]
    mask: Mask
    gradient: Tensor

    def run(self, way: str) -> None:
        """Go forward and backward by one of the two ways."""
        attention.SHORT = _SHORT[way]
        output = attention.attend(*self.tensors, self.mask, scale=WIDTH**-0.5)
        torch.autograd.grad(output, self.tensors, self.gradient)


def main() -> None:
    arguments = options("Formula against fused kernel.", rounds=15).parse_args()
    runtime.keep_freed_memory()
    torch.set_num_threads(threads_of(arguments))
    lengths, n_rounds = ((16, 128), 2) if arguments.quick else (LENGTHS, arguments.rounds)
    ours = attention.SHORT
    rows, results, cases = [], [], {"padded": padded_case, "causal": causal_case}
    for kind, make in cases.items():
        for length in lengths:
            seconds = measure(make(length), n_rounds)
            formula, fused = (1000 * median(seconds[way]) for way in (FORMULA, FUSED))
            taken = FORMULA if length <= ours else FUSED
            rows.append(
                [f"{kind}, {length} keys", f"{formula:.2f} ms", f"{fused:.2f} ms", f"{fused / formula:.2f}", taken]
            )
            results.append({"mask": kind, "keys": length, "formula_ms": formula, "fused_ms": fused, "taken": taken})
            tell(f"{kind}, {length} keys")
    text = table(["", "formula", "fused", "fused / formula", f"taken (SHORT = {ours})"], rows)
    title = f"Attention forward and backward, {TOKENS:,} tokens, {torch.get_num_threads()} threads, {n_rounds} rounds"
    report("attention", f"{title}\n\n{text}", {"short": ours, "cases": results}, quick=arguments.quick)


def measure(case: Case, n_rounds: int) -> dict[str, list[float]]:
    """Time both ways in turns."""
    seconds: dict[str, list[float]] = {FORMULA: [], FUSED: []}
    for number in range(n_rounds + 1):
        for way, times in seconds.items():
            began = time.perf_counter()
            case.run(way)
            if number:
                times.append(time.perf_counter() - began)
    return seconds


def padded_case(length: int) -> Case:
    """An encoder's self-attention: sentences of the length, or a tenth shorter."""
    n_sentences = TOKENS // length
    lengths = torch.randint(max(1, length - length // 10), length + 1, (n_sentences,))
    return _case(length, masks.padding(lengths, length))


def causal_case(length: int) -> Case:
    """A decoder's self-attention."""
    return _case(length, Mask(causal=True))


def _case(length: int, mask: Mask) -> Case:
    # As the projections leave them: (B, T, H, K), seen as (B, H, T, K).
    shape = (TOKENS // length, length, HEADS, WIDTH)
    make: Callable[[], Tensor] = lambda: torch.randn(shape, requires_grad=True).transpose(1, 2)  # noqa: E731
    return Case((make(), make(), make()), mask, torch.randn(shape).transpose(1, 2))


if __name__ == "__main__":
    main()
