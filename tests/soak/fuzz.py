"""Give every reader mutants of a valid file: each must be read, or refused in two lines, in bounded time and memory.

    python -m tests.soak.fuzz --mutants 10000 --seed 1         shared out over all readers; ends with 1 where one fails
    python -m tests.soak.fuzz --mutants 200 --only csv jpg     some of them

Mutants are read by forked processes with a limit on their memory; one that takes too long is killed. What fails (another
exception, a warning, a hang, a death) is kept under build/soak/ with what was said of it.
"""

import argparse
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tests.soak.one_thread  # noqa: F401 (before whatever imports torch)
from tests.soak.mutants import mutant
from tests.soak.readers import Reader, all_readers

from regard.errors import RegardError

KEPT = Path("build/soak")
MEMORY = 2 << 30  # bytes beyond what the process has when it starts
PATIENCE = 30.0  # seconds without a word
LONGEST = 2000  # characters of an error
READ, REFUSED = "read", "refused"


@dataclass
class Row:
    """What is counted for a reader: outcomes, and for each kind of failure its first mutant and what was said of it."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return self.counts.total() - self.counts[READ] - self.counts[REFUSED]


def outcome(reader: Reader, path: Path, number: int) -> str:
    """Read a file; return what came of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.read(path, number)
        return READ
    except RegardError as error:
        text = str(error)
        if text.count("\n") == 1 and len(text) <= LONGEST:
            return REFUSED
        return f"not two short lines\t{len(text):,} characters, {text.count(chr(10)) + 1} lines: {text[:200]!r}"
    except BaseException as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/regard/" in frame.filename]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
        return f"{type(error).__name__} at {place}\t{str(error)[:200]!r}"


def read_mutants(reader: Reader, numbers: range, *, seed: int, pipe: int) -> None:
    """Read mutants of these numbers, and say of each what came of it."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = Path(tempfile.mkdtemp(prefix="regard-mutant-"))
    try:
        for number in numbers:
            path = reader.place(damaged(reader, number, seed=seed), number, folder)
            os.write(pipe, f"{number}\t{outcome(reader, path, number)}\n".encode(errors="replace"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def damaged(reader: Reader, number: int, *, seed: int) -> bytes:
    """Return the mutant of this number; the first of all is the valid file itself."""
    content = reader.original(number)
    return mutant(content, f"{seed} {reader.name} {number}") if number else content


def fuzz(reader: Reader, count: int, *, seed: int) -> Row:
    """Read so many mutants, and count."""
    row, following = Row(), 0
    while following < count:
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                with Path(os.devnull).open("w") as nowhere:
                    os.dup2(nowhere.fileno(), 2)
                read_mutants(reader, range(following, count), seed=seed, pipe=writing)
            finally:
                os._exit(0)
        os.close(writing)
        following = listen(row, reading, child, following)
        os.close(reading)
    for kind, (number, details) in row.failures.items():
        keep(reader, number, f"{kind} {details}", seed=seed)
    return row


def listen(row: Row, pipe: int, child: int, following: int) -> int:
    """Count what a process says of its mutants until it ends; return the number of the mutant to go on with."""
    text, hung = b"", False
    while True:
        if not select.select([pipe], [], [], PATIENCE)[0]:
            hung = True
            os.kill(child, signal.SIGKILL)
        new = os.read(pipe, 1 << 16)
        if not new:
            break
        *lines, text = (text + new).split(b"\n")
        for line in lines:
            number, kind, details = f"{line.decode(errors='replace')}\t\t".split("\t")[:3]
            count(row, int(number), kind, details)
            following = int(number) + 1
    _, status = os.waitpid(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        count(row, following, f"not read after {PATIENCE:.0f} seconds" if hung else f"died with {code}", "")
        following += 1
    return following


def count(row: Row, number: int, kind: str, details: str) -> None:
    if number == 0 and kind == REFUSED:
        kind = "the valid file is refused"
    row.counts[kind] += 1
    if kind not in (READ, REFUSED):
        row.failures.setdefault(kind, (number, details))


def keep(reader: Reader, number: int, told: str, *, seed: int) -> None:
    """Keep a mutant that failed, with what was said of it."""
    folder = KEPT / f"{reader.name.replace(': ', '-').replace('/', '-').replace(' ', '-')}-{seed}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(reader.file).name).write_bytes(damaged(reader, number, seed=seed))
    (folder / "failure.txt").write_text(told + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", choices=("formats", "runs"), default="", help="readers of formats, or of runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="READER")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="regard-readers-") as folder:
        os.environ["REGARD_CACHE"] = str(Path(folder) / "cache")
        readers = all_readers(Path(folder), group=chosen.group)
        names = chosen.only or list(readers)
        if unknown := [name for name in names if name not in readers]:
            parser.error(f"no reader {unknown[0]!r}; there are {', '.join(readers)}")
        print(f"{chosen.mutants:,} mutants, seed {chosen.seed}")
        print(f"{'reader':42}{'mutants':>9}{'read':>8}{'refused':>9}{'failed':>8}{'seconds':>9}")
        rows = {}
        for place, name in enumerate(names):
            own = chosen.mutants // len(names) + (place < chosen.mutants % len(names))
            started = time.monotonic()
            rows[name] = fuzz(readers[name], own, seed=chosen.seed)
            show(name, rows[name].counts, rows[name].failed, time.monotonic() - started)
    total = sum((row.counts for row in rows.values()), Counter[str]())
    failed = sum(row.failed for row in rows.values())
    show("all", total, failed, 0.0)
    for name, row in rows.items():
        for kind, (number, details) in row.failures.items():
            print(f"{name}, mutant {number} ({row.counts[kind]} alike): {kind} {details}")
    if failed:
        print(f"The first of each kind is kept in {KEPT}")
    return int(failed > 0)


def show(name: str, counts: Counter[str], failed: int, seconds: float) -> None:
    numbers = f"{counts.total():9,}{counts[READ]:8,}{counts[REFUSED]:9,}{failed:8,}"
    print(f"{name:42}{numbers}{seconds:9.1f}" if seconds else f"{name:42}{numbers}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
