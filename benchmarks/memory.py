"""Training memory does not grow with the corpus: peak memory of a short run on a text, and on ten times as much.

The larger text is the smaller one ten times over, each copy with a word of its own at the end of every line, so that no two
pairs are equal and the vocabulary hardly grows. Each run is a process of its own: it reads, checks, learns the vocabulary,
encodes and trains, as `regard train` does, with nothing in the cache.
"""

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.corpora import MULTI30K, Text, find_text, run_config
from benchmarks.rounds import BUILD, Answer, Contender, options, peak_bytes, report, serve, started, table, threads_of

from regard import runtime
from regard.training.events import Report
from regard.training.run import train

FOLDER = BUILD / "memory"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def main() -> None:
    parser = options("Peak memory of training by the size of the corpus.", rounds=1)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="folder of Multi30k")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # given to the children
    arguments = parser.parse_args()
    os.environ["REGARD_CACHE"] = str(FOLDER / "cache")
    threads = threads_of(arguments)
    text = find_text(arguments.data)
    if arguments.contender:
        serve_run(text, int(arguments.contender), threads=threads, quick=arguments.quick)
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    flags = ["--threads", str(threads), "--data", str(arguments.data), *["--quick"] * arguments.quick]
    answers = {}
    for times in (1, len(WORDS)):
        contender = Contender(f"{times} × the text", "benchmarks.memory", ["--contender", str(times), *flags])
        with started([contender]) as children:
            # One round, and none to warm up: what counts is the peak of a whole process.
            answers[times] = children[0].run("train", 0)
    rows = [
        [f"{times} × {text.name}", f"{one['pairs']:,}", *(megabytes(one[key]) for key in ("reading", "peak_bytes"))]
        for times, one in answers.items()
    ]
    grown = answers[len(WORDS)]["peak_bytes"] / answers[1]["peak_bytes"]
    steps = answers[1]["steps"]
    lines = [
        f"Peak memory of a whole run of {steps} updates; ten times the pairs take {grown:.2f} times the memory.",
        "",
        table(["", "pairs", "peak of reading and encoding", "peak in all"], rows),
    ]
    report("memory", "\n".join(lines), {"text": text.name, "grown": grown, "runs": answers}, quick=arguments.quick)


def serve_run(text: Text, times: int, *, threads: int, quick: bool) -> None:
    """Train on `times` times the text."""
    runtime.keep_freed_memory()
    steps = 4 if quick else 200
    training = {"steps": steps, "validate_every": steps, "validate_samples": 0}
    files = tuple(repeated(Path(file), times, n_lines=2000 if quick else None) for file in text.train)
    larger = Text(text.name, (files[0], files[1]), text.valid, text.test)
    config = run_config(larger, threads=threads, training=training)

    def work(number: int) -> Answer:
        found: dict[str, Any] = {"steps": steps}

        def note(what: str, done: int) -> None:
            found["reading"] = peak_bytes()

        for event in train(config, FOLDER / f"run-{times}", progress=note):
            if isinstance(event, Report):
                found["pairs"] = int(dict(event.facts)["training"].split()[0].replace(",", ""))
        return found

    serve({"train": work})


def repeated(file: Path, times: int, *, n_lines: int | None) -> str:
    """Write a file `times` times over, a word at the end of each line saying which copy it is; line by line."""
    path = FOLDER / f"{times}-{file.name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as larger:
        for word in WORDS[:times]:
            with file.open(encoding="utf-8", newline="") as lines:
                for number, line in enumerate(lines):
                    if n_lines is not None and number >= n_lines:
                        break
                    larger.write(line.rstrip("\n") + f" {word}\n")
    return str(path)


def megabytes(n: float) -> str:
    return f"{n / 2**20:,.0f} MB"


if __name__ == "__main__":
    main()
