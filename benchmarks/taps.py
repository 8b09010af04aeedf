"""What looking inside costs: taps that nobody listens to, as a share of a training step and of a decoding step; a trace.

A tap without a listener is one look at a variable. What that costs is timed by itself, many times over, and multiplied by
how many taps a step passes. A trace is that of one sentence by a briefly trained `transformer-tiny`, as
`regard inspect` records it: beam search, one forward pass with every tap listened to.
"""

import time
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from benchmarks.corpora import MULTI30K, find_text
from benchmarks.decoding import trained
from benchmarks.rounds import options, report, table, tell, threads_of

import regard
from regard import runtime
from regard.parts.taps import listening, tap

SENTENCES, TOKENS = 128, 16  # of a batch to train on
CALLS = 200_000
BEAM = 4


def main() -> None:
    arguments = options("What looking inside costs.", rounds=9).parse_args()
    threads, n_rounds = threads_of(arguments), 2 if arguments.quick else arguments.rounds
    runtime.keep_freed_memory()
    text = find_text(MULTI30K)
    run = regard.load(trained(text, threads=threads, quick=True), device="cpu", threads=threads, engine="torch")
    per_tap = seconds_per_tap(run.model)
    tell(f"a tap without a listener: {per_tap * 1e9:.0f} ns")
    rows, found = [], {"seconds_per_tap": per_tap, "threads": threads}
    for name, step in {"a training step": training_step(run), "a step of decoding": decoding_step(run)}.items():
        n_taps, seconds = count_taps(run.model, step), timed(step, n_rounds)
        share = n_taps * per_tap / seconds
        found[name] = {"taps": n_taps, "seconds": seconds, "share": share}
        rows.append([name, f"{n_taps}", f"{1000 * seconds:.1f} ms", f"{share:.3%}"])
    sentence = text.test_sentences(1)[0]
    found["trace"] = timed(lambda: run.trace(sentence, beam=BEAM, max_length=30), n_rounds)
    lines = [
        f"{threads} threads, medians of {n_rounds} rounds; a tap without a listener takes {per_tap * 1e9:.0f} ns.",
        "",
        table(["", "taps", "time", "share of taps"], rows),
        "",
        f"a trace of one sentence, beam {BEAM}: {1000 * found['trace']:.0f} ms",
    ]
    report("taps", "\n".join(lines), found, quick=arguments.quick)


def seconds_per_tap(model: torch.nn.Module) -> float:
    """What a tap costs that nobody listens to, beside a call that does nothing."""
    tensor = torch.zeros(1)
    times = [timeit.timeit(lambda: tap(model, "weights", tensor), number=CALLS) / CALLS for _ in range(5)]
    nothing = [timeit.timeit(lambda: None, number=CALLS) / CALLS for _ in range(5)]
    return min(times) - min(nothing)


def count_taps(model: torch.nn.Module, step: Callable[[], Any]) -> int:
    """How many taps a step passes."""
    names: list[str] = []
    with listening(model, "*", lambda name, tensor: names.append(name)):
        step()
    return len(names)


def timed(step: Callable[[], Any], n_rounds: int) -> float:
    """The median time of a step."""
    step()
    times = []
    for _ in range(n_rounds):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return median(times)


def training_step(run: Any) -> Callable[[], Any]:
    """Forward and backward over a batch."""
    generator = torch.Generator().manual_seed(1)
    vocab = len(run.task.vocabulary.target.vocabulary)
    ids = torch.randint(4, vocab, (SENTENCES, TOKENS), generator=generator)
    lengths = torch.full((SENTENCES,), TOKENS)

    def step() -> None:
        run.model.zero_grad()
        run.model(ids, lengths, ids).logsumexp(-1).sum().backward()

    return step


def decoding_step(run: Any) -> Callable[[], Any]:
    """One more token of one sentence, behind a KV cache."""
    ids = torch.arange(4, 4 + TOKENS)[None]
    with torch.inference_mode():
        state = run.model.start((ids, torch.tensor([TOKENS])))

    @torch.inference_mode()
    def step() -> None:
        run.model.step(state, torch.tensor([[5]]))

    return step


if __name__ == "__main__":
    main()
