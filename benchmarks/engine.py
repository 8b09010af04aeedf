"""`regard translate` by its engine, against CTranslate2 by itself: at its best setting, and as its documentation shows.

All have the same converted weights and search with the same beam. Ours is timed from text to text, with all that
`regard translate` does; the library gets ready tokens and gives tokens. The best setting of the library is the faster of
one worker a core with one thread each, and one worker with all threads; in the documentation it is given neither.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import MULTI30K, find_text
from benchmarks.decoding import trained
from benchmarks.rounds import (
    BUILD,
    Answer,
    Contender,
    options,
    ratio,
    report,
    serve,
    started,
    table,
    take_turns,
    threads_of,
)

import regard
from regard import runtime

BEAM, TOKENS = 5, 2048
TYPES = ("float32", "int8")
# By contender the library's workers and threads; None for ours, which measures them, and for the documentation's.
SETTINGS: dict[str, Callable[[int], dict[str, int]]] = {
    "workers": lambda cores: {"inter_threads": cores, "intra_threads": 1},
    "threads": lambda cores: {"inter_threads": 1, "intra_threads": cores},
    "documented": lambda cores: {},
}
NAMES = ("regard", *SETTINGS)


def main() -> None:
    parser = options("The engine against the bare library.", rounds=5)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--run", help="a trained translator; without it one is trained briefly and kept")
    parser.add_argument("--beam", type=int, default=BEAM)
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children: NAME TYPE
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(BUILD / "cache")
    threads = threads_of(arguments)
    text = find_text(arguments.data)
    sentences = text.test_sentences(64 if arguments.quick else 1000)
    n_single = 4 if arguments.quick else 100
    if arguments.contender:
        serve_contender(arguments, sentences, n_single, threads=threads)
        return
    run = arguments.run or trained(text, threads=threads, quick=arguments.quick)
    compare(run, arguments, len(sentences), n_single, threads=threads)


def serve_contender(arguments: argparse.Namespace, sentences: Sequence[str], n_single: int, *, threads: int) -> None:
    """Translate all sentences in one call, and the first ones one by one."""
    name, compute_type = arguments.contender.split()
    runtime.keep_freed_memory()
    run = regard.load(arguments.run, device="cpu", threads=threads, engine="ctranslate2", compute_type=compute_type)
    assert run.engine.engine is not None
    engine = run.engine.engine
    if name == "regard":

        def translate(texts: Sequence[str]) -> object:
            return run.translate(list(texts), beam=arguments.beam, log_probs=False)

        serve(works(translate, sentences, n_single))
        return
    import ctranslate2

    library = ctranslate2.Translator(str(engine.folder), device="cpu", **SETTINGS[name](threads))
    source = run.task.vocabulary.source
    rows = [[engine.source_names[id] for id in (*ids, source.end_id)] for ids in source.encode_batch(sentences)]

    def search(tokens: Sequence[list[str]]) -> object:
        return library.translate_batch(
            list(tokens), beam_size=arguments.beam, max_batch_size=TOKENS, batch_type="tokens", max_decoding_length=100
        )

    serve(works(search, rows, n_single))


def works(translate: Callable[[Sequence[Any]], object], inputs: Sequence[Any], n_single: int) -> Any:
    """The two works of every contender."""

    def together(number: int) -> Answer:
        translate(inputs)
        return {}

    def alone(number: int) -> Answer:
        for one in inputs[:n_single]:
            translate([one])
        return {}

    return {"together": together, "alone": alone}


def compare(run: str, arguments: argparse.Namespace, n: int, n_single: int, *, threads: int) -> None:
    """Let all take turns, once for each type of numbers."""
    n_rounds = 1 if arguments.quick else arguments.rounds
    flags = ["--threads", str(threads), "--data", str(arguments.data), "--run", run, "--beam", str(arguments.beam)]
    flags += ["--quick"] * arguments.quick
    regard.load(run, device="cpu", threads=threads).engine  # noqa: B018 (converted before anybody is timed)
    results: dict[str, Any] = {"run": run, "threads": threads, "beam": arguments.beam}
    lines = [
        f"{run}, beam {arguments.beam}, {threads} threads, medians of {n_rounds} rounds; ratio: its time over regard's."
    ]
    for compute_type in TYPES:
        contenders = [
            Contender(name, "benchmarks.engine", ["--contender", f"{name} {compute_type}", *flags]) for name in NAMES
        ]
        rows = []
        with started(contenders) as children:
            found = {work: take_turns(children, work, rounds=n_rounds) for work in ("together", "alone")}
        for name in NAMES:
            times = {work: [one["seconds"] for one in answers[name]] for work, answers in found.items()}
            ours = {work: [one["seconds"] for one in answers["regard"]] for work, answers in found.items()}
            ratios = {work: ratio(times[work], ours[work]) for work in times}
            speeds = {"together": n / median(times["together"]), "alone": n_single / median(times["alone"])}
            results[f"{name}, {compute_type}"] = {"sentences_per_second": speeds, "regard_is_faster": ratios}
            cells = [f(value) for work in times for f, value in ((_speed, speeds[work]), (_ratio, ratios[work]))]
            rows.append([f"{name}, {compute_type}", *cells])
        lines += ["", table(["", f"{n:,} together: sentences/s", "ratio", "one at a time", "ratio"], rows)]
    report("engine", "\n".join(lines), results, quick=arguments.quick)


def _speed(value: float) -> str:
    return f"{value:,.1f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


if __name__ == "__main__":
    main()
