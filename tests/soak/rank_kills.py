"""Kill a random process of a launch at a random instant, many of them during a save; resume, and compare the bytes.

    python -m tests.soak.rank_kills --kills 50 --seed 1 --processes 2        ends with 1 where anything is wrong

Each launch is `regard train` or `regard resume` with `--processes`. One of its ranks, or the launcher, dies by SIGKILL. All
others must have ended within a minute, with one message of two lines that names the rank; every checkpoint that has a name
must be whole. A run that was killed a few times, and then is left alone, must have the bytes of one that never was.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden.run import BY_NAME, settings_of, write_data
from tests.soak.kills import differing_bytes, without_clock

from regard.errors import RegardError
from regard.runs import checkpoints
from regard.runs.disk import as_json
from regard.runs.folder import RunFolder
from regard.runs.metrics import read

SETTINGS = {
    "training.steps": 40,
    "training.validate_every": 10,
    "training.save_every_steps": 2,
    "training.ema": 0.8,
    "training.keep": 3,
    "runtime.timeout": 60,
}
GOLDEN = "translate-accumulate-ema"
KILLS_PER_RUN = 4
MOST_SECONDS = 60.0  # from a kill until all others have ended
PATIENCE = 300.0  # for a launch as a whole
MOMENTS = ("start", "update", "save", "save")
NAMED = r"error: Rank {rank} was killed by SIGKILL.*\nGo on from the last checkpoint"


@dataclass
class Counts:
    """What came out."""

    kills: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    problems: list[str] = field(default_factory=list)


class Launch:
    """A launch at work, whose ranks are known by their environment."""

    def __init__(self, arguments: Sequence[str], *, folder: Path, processes: int) -> None:
        self.said = folder / "stderr"
        with self.said.open("w") as file:
            self.launcher = subprocess.Popen(
                [sys.executable, "-m", "regard", *arguments, "--processes", str(processes)],
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={**os.environ, "REGARD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
            )

    def ranks(self) -> dict[int, int]:
        """The process of each rank that there is."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == self.launcher.pid:
                    own = dict(entry.partition("=")[::2] for entry in (path / "environ").read_text().split("\0"))
                    found[int(own["RANK"])] = int(path.name)
        return found

    def end(self, others: Sequence[int]) -> float:
        """Wait until the launcher and these processes have ended; return how long that took."""
        began = time.monotonic()
        while self.launcher.poll() is None or any(map(is_alive, others)):
            if time.monotonic() - began > MOST_SECONDS:
                for process in (self.launcher.pid, *others):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                self.launcher.wait()
                break
            time.sleep(0.05)
        return time.monotonic() - began


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def arguments_of(run: Path, data: Path) -> list[str]:
    """Begin the run, or go on with it."""
    if (run / "config.toml").exists():
        return ["resume", str(run)]
    golden = BY_NAME[GOLDEN]
    settings = {**settings_of(golden, data), **SETTINGS}
    files = [str(data / file) for file in golden.files]
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return ["train", golden.task, "--train", *files, "--model", golden.model, "--run", str(run), *sets]


def kill_once(run: Path, data: Path, folder: Path, draw: random.Random, processes: int, counts: Counts) -> None:
    """Let a launch work for a while, and kill one of it."""
    moment, launch = draw.choice(MOMENTS), Launch(arguments_of(run, data), folder=folder, processes=processes)
    victim = draw.choice((*range(processes), *range(processes), -1))
    wait_for(moment, run, launch, draw)
    ranks = launch.ranks()
    if launch.launcher.poll() is not None or (victim >= 0 and victim not in ranks):
        launch.end(list(ranks.values()))
        return  # it was too fast, or has not begun
    os.kill(ranks[victim] if victim >= 0 else launch.launcher.pid, signal.SIGKILL)
    took = launch.end(list(ranks.values()))
    counts.kills[f"{'launcher' if victim < 0 else f'rank {victim}'} in {moment}"] += 1
    counts.slowest = max(counts.slowest, took)
    said = launch.said.read_text()
    if took > MOST_SECONDS:
        counts.problems.append(f"{moment}, victim {victim}: others alive after {took:.0f} s")
    if victim >= 0 and len(re.findall(NAMED.format(rank=victim), said)) != 1:
        counts.problems.append(f"{moment}, victim {victim}: not told once:\n{said}")
    if "Traceback" in said:
        counts.problems.append(f"{moment}, victim {victim}: a traceback:\n{said}")


def wait_for(moment: str, run: Path, launch: Launch, draw: random.Random) -> None:
    """Wait until the launch starts, makes updates, or saves, and a little longer."""
    end = time.monotonic() + PATIENCE
    metrics = run / "metrics.jsonl"
    before = metrics.stat().st_size if metrics.exists() else 0
    while time.monotonic() < end and launch.launcher.poll() is None:
        if moment == "start" and len(launch.ranks()) > 0:
            time.sleep(draw.uniform(0, 3))
            return
        if moment == "update" and metrics.exists() and metrics.stat().st_size > before:
            time.sleep(draw.uniform(0, 0.5))
            return
        if moment == "save" and any(run.glob("checkpoints/.tmp-new-*")):
            time.sleep(draw.choice((0.0, 0.0, draw.uniform(0, 0.02))))
            return
        time.sleep(0.001 if moment == "save" else 0.02)


def left_alone(run: Path, data: Path, folder: Path, processes: int) -> str:
    """Train or resume to the end; return what was said if that failed."""
    launch = Launch(arguments_of(run, data), folder=folder, processes=processes)
    try:
        code = launch.launcher.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        launch.launcher.terminate()
        return f"it did not end:\n{launch.said.read_text()}"
    return "" if code == 0 else f"exit code {code}:\n{launch.said.read_text()}"


def contents(run: Path) -> Mapping[str, bytes]:
    """Return what a run has learned, without times and places."""
    files = {str(file.relative_to(run)): file.read_bytes() for file in run.glob("checkpoints/*/*.safetensors")}
    return {**files, "metrics": as_json([without_clock(record) for record in read(RunFolder(run))])}


def whole(run: Path) -> list[str]:
    """Return what is wrong with checkpoints that have their names."""
    problems = []
    for path in run.glob("checkpoints/step-*[0-9]"):
        try:
            checkpoints.verify(path)
        except RegardError as error:
            problems.append(str(error))
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    draw, counts = random.Random(chosen.seed), Counts()
    folder = Path(tempfile.mkdtemp(prefix="regard-ranks-"))
    data = folder / "data"
    write_data(data)
    if problem := left_alone(folder / "alone", data, folder, chosen.processes):
        counts.problems.append(f"left alone: {problem}")
    number = 0
    while not counts.problems and counts.kills.total() < chosen.kills:
        number += 1
        run = folder / f"run-{number}"
        for _ in range(min(KILLS_PER_RUN, chosen.kills - counts.kills.total())):
            kill_once(run, data, folder, draw, chosen.processes, counts)
            counts.problems += whole(run)
        problem = left_alone(run, data, folder, chosen.processes)
        if problem:
            counts.problems.append(f"run {number}: {problem}")
        elif differing := differing_bytes(dict(contents(folder / "alone")), dict(contents(run))):
            counts.problems.append(f"run {number}: {differing:,} bytes differ from those of a run that was left alone")
        print(f"run {number}: {counts.kills.total()} kills, all ended within {counts.slowest:.1f} s", flush=True)
        if not counts.problems:
            shutil.rmtree(run, ignore_errors=True)
    print(", ".join(f"{what}: {count}" for what, count in sorted(counts.kills.items())))
    print("".join(f"{problem}\n" for problem in counts.problems), end="")
    if not counts.problems:
        shutil.rmtree(folder)
    return 1 if counts.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
