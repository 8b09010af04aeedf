"""Contenders that take turns: what all benchmarks share.

Each contender is a child process of its own, since allocators and thread pools differ and memory is counted by process. A
child is started once, answers a line on its standard input with a line of JSON, and is frozen while the others run. So
every round runs everybody on the same work, one after the other, and a slow minute of the machine hits all alike.
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from regard.runtime import cores

REPOSITORY = Path(__file__).parents[1]
BUILD = REPOSITORY / "build" / "bench"

Answer = dict[str, Any]
Work = Callable[[int], Answer]  # the number of the round to its answer


@dataclass(frozen=True)
class Contender:
    """A child process: the benchmark that serves it, its arguments, and what its environment has beside ours."""

    name: str
    module: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Child:
    """A contender at work."""

    def __init__(self, contender: Contender) -> None:
        self.name = contender.name
        self.process = subprocess.Popen(
            [sys.executable, "-m", contender.module, *contender.arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **contender.environment},
        )
        self.facts = self._answer()
        self.process.send_signal(signal.SIGSTOP)

    def run(self, work: str, number: int) -> Answer:
        """Let the child run one round of some work, alone."""
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin is not None
        self.process.stdin.write(f"{work} {number}\n")
        self.process.stdin.flush()
        answer = self._answer()
        # Idle threads may spin for work: nobody else should pay for that.
        self.process.send_signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self.process.communicate(timeout=30)
        self.process.kill()

    def _answer(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The contender {self.name} ended with exit code {self.process.wait()}.")
        answer: Answer = json.loads(line)
        return answer


@contextlib.contextmanager
def started(contenders: Sequence[Contender]) -> Iterator[list[Child]]:
    """Start all contenders, one after the other; end them after the block."""
    children: list[Child] = []
    try:
        for contender in contenders:
            tell(f"starting {contender.name}")
            children.append(Child(contender))
        yield children
    finally:
        for child in children:
            child.close()


def take_turns(children: Sequence[Child], work: str, *, rounds: int) -> dict[str, list[Answer]]:
    """Run `rounds` rounds of some work, after one that warms up; return each contender's answers."""
    answers: dict[str, list[Answer]] = {child.name: [] for child in children}
    for number in range(rounds + 1):
        for child in children:
            answer = child.run(work, number)
            tell(
                f"{work}, {f'round {number} of {rounds}' if number else 'warm-up'}: {child.name} {answer['seconds']:.2f} s"
            )
            if number:
                answers[child.name].append(answer)
    return answers


def serve(works: Mapping[str, Work], **facts: Any) -> None:
    """The child's side: say `facts`, then run what each line asks for, timed, until there are no more lines."""
    # Whatever prints goes to where people look; standard output is for answers alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        work, number = line.split()
        began, used = time.perf_counter(), time.process_time()
        answer = works[work](int(number))
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        answer = {"seconds": seconds, "processor_seconds": processor, "peak_bytes": peak_bytes(), **answer}
        print(json.dumps(answer), file=answers, flush=True)


def peak_bytes() -> int:
    """The most memory this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over the rounds of ours / theirs."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def options(description: str, *, rounds: int) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds that count; {rounds} by default")
    parser.add_argument("--quick", action="store_true", help="seconds only: shows that it works, measures nothing")
    parser.add_argument("--threads", type=int, default=0, help="threads of every contender; 0 for one a core")
    return parser


def threads_of(arguments: argparse.Namespace) -> int:
    """How many threads were asked for."""
    return int(arguments.threads or cores())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows in columns, the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def report(name: str, text: str, results: Mapping[str, Any], *, quick: bool) -> None:
    """Print a benchmark's findings and keep them in build/bench/NAME.json."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / (f"{name}-quick.json" if quick else f"{name}.json")
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    findings = {"benchmark": name, "quick": quick, "machine": machine, "load": os.getloadavg(), **results}
    path.write_text(json.dumps(findings, indent=2) + "\n", encoding="utf-8")
    print(f"\n{text}\n\nwritten to {path.relative_to(REPOSITORY)}" + (" (quick: no measurement)" if quick else ""))


def tell(text: str) -> None:
    """Say what goes on, apart from the findings."""
    print(text, file=sys.stderr, flush=True)
