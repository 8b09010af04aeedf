"""Where the fused attention kernel overtakes the plain formula on this CPU, and where it does not.

`formula_is_faster` of `regard.parts.attention_kernels` goes by what is seen here. Training: forward and backward, as many
sentences as 4,096 tokens hold, by the number of keys. Decoding with beam 5: forward alone, 5 queries per sentence and 20
keys, by the number of sentences. Generating: one query per row, by the number of rows and keys. 4 heads of 32 features.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from unittest.mock import patch

import torch
from benchmarks.rounds import options, report, table, tell, threads_of
from torch import Tensor

from regard import runtime
from regard.parts import attention_kernels, masks
from regard.parts.masks import Mask

HEADS, WIDTH, TOKENS = 4, 32, 4096
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
SENTENCES = (1, 2, 4, 8, 16, 32, 64)
BEAM, KEYS = 5, 20
ROWS, PAST = (1, 4, 8, 16, 64), (40, 160, 640)
FORMULA, FUSED = "formula", "fused"


@dataclass(frozen=True)
class Case:
    """Queries, keys and values of one shape, their mask, and the gradient of the output where there is training."""

    name: str
    tensors: tuple[Tensor, Tensor, Tensor]
    mask: Mask
    gradient: Tensor | None

    def run(self, way: str) -> None:
        """Go forward, and backward, by one of the two ways."""
        chosen = patch.object(attention_kernels, "formula_is_faster", lambda query, n_keys, *, masked: way == FORMULA)
        with chosen, torch.inference_mode(self.gradient is None):
            output = attention_kernels.attend(*self.tensors, self.mask, scale=WIDTH**-0.5)
        if self.gradient is not None:
            torch.autograd.grad(output, self.tensors, self.gradient)


def main() -> None:
    arguments = options("Formula against fused kernel.", rounds=25).parse_args()
    runtime.keep_freed_memory()
    torch.set_num_threads(threads_of(arguments))
    torch.manual_seed(1)
    n_rounds = 2 if arguments.quick else arguments.rounds
    rows, results = [], []
    for case in cases(quick=arguments.quick):
        tell(case.name)
        seconds = measure(case, n_rounds)
        formula, fused = (1000 * median(seconds[way]) for way in (FORMULA, FUSED))
        query, key, _ = case.tensors
        with torch.inference_mode(case.gradient is None):
            masked = not case.mask.hides_nothing
            taken = FORMULA if attention_kernels.formula_is_faster(query, key.shape[2], masked=masked) else FUSED
        rows.append([case.name, f"{formula:.3f} ms", f"{fused:.3f} ms", f"{fused / formula:.2f}", taken])
        results.append({"case": case.name, "formula_ms": formula, "fused_ms": fused, "taken": taken})
    title = f"Attention; {torch.get_num_threads()} threads, {n_rounds} rounds"
    text = table(["", "formula", "fused", "fused / formula", "taken"], rows)
    found = {"threads": torch.get_num_threads(), "cases": results}
    report("attention", f"{title}\n\n{text}", found, quick=arguments.quick)


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


def cases(*, quick: bool) -> Iterator[Case]:
    """Self-attention of encoders, with padding and without, and of decoders; cross-attention while decoding."""
    for length in (16, 128) if quick else LENGTHS:
        n = TOKENS // length
        lengths = torch.randint(length - length // 10, length + 1, (n,))
        yield _training_case(f"training, padded, {length} keys", n, length, masks.padding(lengths, length))
    for length in (16, 128) if quick else LENGTHS:
        yield _training_case(f"training, causal, {length} keys", TOKENS // length, length, Mask(causal=True))
    for length in (16, 128) if quick else LENGTHS:
        yield _training_case(f"training, nothing masked, {length} keys", TOKENS // length, length, Mask())
    for n in (1, 64) if quick else SENTENCES:
        query, key, value = (_heads(n, length) for length in (BEAM, KEYS, KEYS))
        mask = masks.padding(torch.randint(KEYS - 2, KEYS + 1, (n,)), KEYS)
        yield Case(f"decoding, {n} at a time", (query, key.contiguous(), value.contiguous()), mask, None)
    for n_keys in (40,) if quick else PAST:
        for n in (1, 64) if quick else ROWS:
            query, key, value = (_heads(n, length) for length in (1, n_keys, n_keys))
            tensors = (query, key.contiguous(), value.contiguous())
            yield Case(f"generating, {n} rows, {n_keys} keys", tensors, Mask(), None)


def _training_case(name: str, n: int, length: int, mask: Mask) -> Case:
    query, key, value, gradient = (_heads(n, length) for _ in range(4))
    return Case(name, (query.requires_grad_(), key.requires_grad_(), value.requires_grad_()), mask, gradient)


def _heads(n: int, length: int) -> Tensor:
    """(B, T, H, K) as projections leave it, seen as (B, H, T, K)."""
    return torch.randn(n, length, HEADS, WIDTH).transpose(1, 2)


if __name__ == "__main__":
    main()
