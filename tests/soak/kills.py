"""Kill trainings at random instants, most while something is written, and compare what they come to with one left alone.

    python -m tests.soak.kills --kills 200 --seed 1              every family; ends with 1 where anything is wrong
    python -m tests.soak.kills --kills 8 --only language-gpt     one of them, or several

A run is trained by one process after another, each of which dies by SIGKILL: at the n-th time that it touches the disk
to cache, to create the folder, to save or to average, right then or a moment later; or at any instant. After each death
every checkpoint that has a name must be whole. The last process is left alone: the run must then have the same bytes as
one that never died, and nothing half-written may be left in its folder or in the cache. An audit hook counts the times,
so the package needs no code for this. A killed process loses nothing that it has handed to the system: power cuts are
another matter.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tests.soak.one_thread  # noqa: F401 (before torch is imported)
import torch
from tests.golden.run import BY_NAME, KEYS, settings_of, write_data

from regard.api.new_run import assemble
from regard.errors import RegardError
from regard.runs import checkpoints
from regard.runs.folder import RunFolder
from regard.runs.metrics import read
from regard.runs.names import REPLACED
from regard.training.events import Finished, Noted
from regard.training.run import resume, train

FAMILIES = (
    "translate-accumulate-ema",
    "translate-birnn-attention",
    "translate-t5",
    "language-gpt",
    "language-llama",
    "mask-bert",
    "mask-birnn",
    "denoise-t5",
    "denoise-transformer",
    "classify-bert",
    "classify-birnn-word-vectors",
    "classify-vectors",
    "classify-init",
    "tag-bert",
    "tag-birnn",
    "regress-bert",
    "regress-lstm",
    "similarity-bert",
    "similarity-birnn",
    "image-vit",
    "image-resnet",
    "image-convnet",
    "caption-vit",
    "caption-resnet",
    "caption-rnn",
)
# Saves between validations, more of them than are kept, an EMA, and an average at the end.
SETTINGS = {
    KEYS["steps"]: 8,
    KEYS["validate_every"]: 4,
    KEYS["average"]: 2,
    KEYS["ema"]: 0.8,
    "training.save_every_steps": 3,
    "training.save_every_minutes": 0.0,
    "training.keep": 2,
}
MOMENTS = ("cache", "folder", "save", "instant", "average")  # in the order in which a run comes to them
WEIGHTS = (3, 2, 6, 2, 2)
KILLS_PER_RUN = 4
PATIENCE = 120.0  # seconds after which a process that neither ends nor dies is taken to hang


@dataclass(frozen=True)
class Death:
    """When a process dies: so many `seconds` after the n-th time at a moment; with n = 0, after its start."""

    moment: str
    n: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.moment} {self.n} + {1000 * self.seconds:.1f} ms"


@dataclass
class Life:
    """What became of a process: whether it was killed or finished, what went wrong, and its times at each moment."""

    killed: bool = False
    finished: bool = False
    problem: str = ""
    times: Counter[str] = field(default_factory=Counter)


@dataclass
class Row:
    """What is counted for a family."""

    kills: int = 0
    resumed: int = 0
    broken: int = 0
    differing: int = 0
    leftovers: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return self.kills == self.resumed and not (self.broken or self.differing or self.leftovers or self.problems)


class Place:
    """A folder with one run and its own cache."""

    def __init__(self, folder: Path, name: str, data: Path, init: Path | None) -> None:
        self.folder, self.run, self.cache = folder, folder / "run", folder / "cache"
        golden = BY_NAME[name]
        settings = {**settings_of(golden, data), **SETTINGS, "data.train": [str(data / file) for file in golden.files]}
        settings |= {"training.init": str(init)} if init else {}
        self.new = assemble(golden.task, settings, model=golden.model, origin="soak")

    def moment(self, path: str) -> str:
        """Say what it means that a path is touched; "" where it is neither of the run nor of the cache."""
        if path.startswith(str(self.cache)):
            return "cache"
        if not path.startswith(str(self.run)):
            return ""
        return "average" if "average-" in path else "save" if "/checkpoints/" in path else "folder"

    def live(self, death: Death | None) -> Life:
        """Let a process begin or resume the run, and kill it when its time has come."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                self._train(death, writing)
            except BaseException:
                tell(writing, problem=traceback.format_exc())
            finally:
                os._exit(0)
        os.close(writing)
        try:
            return watch(child, reading, death)
        finally:
            os.close(reading)

    def _train(self, death: Death | None, pipe: int) -> None:
        os.environ["REGARD_CACHE"] = str(self.cache)
        times: Counter[str] = Counter()

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in PATHS or not (moment := self.moment(touched(event, arguments))):
                return
            times[moment] += 1
            if death and moment == death.moment and times[moment] == death.n:
                if not death.seconds:
                    os.kill(os.getpid(), signal.SIGKILL)
                os.write(pipe, b'{"due": true}\n')

        sys.addaudithook(count)
        known = (self.run / "config.toml").exists()
        for event in resume(self.run) if known else train(self.new.config, self.run, vocabulary=self.new.vocabulary):
            if isinstance(event, Noted) and "damaged" in event.text:
                tell(pipe, problem=event.text)
            elif isinstance(event, Finished):
                tell(pipe, finished=True)
        tell(pipe, times=times)

    def broken(self) -> list[str]:
        """Return what is wrong with checkpoints that have their names."""
        problems = []
        for path in self.run.glob("checkpoints/[!.]*"):
            try:
                checkpoints.verify(path)
            except RegardError as error:
                problems.append(str(error))
        return problems

    def leftovers(self) -> list[Path]:
        """Return what no reader would take for anything."""
        hidden = [path for path in self.folder.rglob("*") if path.name.startswith(".")]
        return hidden + list(self.run.glob(f"checkpoints/*{REPLACED}"))

    def contents(self) -> dict[str, bytes]:
        """Return all files of the run that hold no time and no place."""
        files = [*self.run.glob("**/*.safetensors"), *self.run.glob("vocabulary/[!.]*")]
        files += [self.run / "config.toml", self.run / "task.json"]
        contents = {str(file.relative_to(self.run)): file.read_bytes() for file in files if file.exists()}
        return {**contents, "metrics.jsonl": json.dumps(list(map(without_clock, read(RunFolder(self.run))))).encode()}


# The audit events that name a file which may be written, renamed or deleted, and where among the arguments its folder is.
PATHS = {"open": None, "os.mkdir": 2, "os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.truncate": None}


def touched(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the path of an audit event; "" for a file that is only read."""
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    if event == "open" and arguments[1] in ("r", "rb", "rt"):
        return ""
    place = PATHS[event]
    folder = arguments[place] if place is not None else -1
    path = os.fsdecode(path)
    return f"{os.readlink(f'/proc/self/fd/{folder}')}/{path}" if folder >= 0 else path  # noqa: PTH115


def without_clock(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("seconds", "per_second")}


def tell(pipe: int, **facts: Any) -> None:
    os.write(pipe, json.dumps(facts).encode() + b"\n")


def watch(child: int, pipe: int, death: Death | None) -> Life:
    """Wait for the end of a process, and bring it about when it is due."""
    life, text = Life(), b""
    due = time.monotonic() + death.seconds if death and not death.n else None
    end = time.monotonic() + PATIENCE
    while True:
        wait = min(end, due or end) - time.monotonic()
        if wait <= 0:
            os.kill(child, signal.SIGKILL)
            if due is None:
                life.problem += f"not ended after {PATIENCE:.0f} seconds"
            due = None
            end = time.monotonic() + PATIENCE
        elif select.select([pipe], [], [], wait)[0]:
            new = os.read(pipe, 1 << 16)
            if not new:
                break
            text += new
            if death and b'"due"' in new:
                due = time.monotonic() + death.seconds
    _, status = os.waitpid(child, 0)
    life.killed = os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    for line in text.splitlines():
        facts = json.loads(line)
        life.finished |= facts.get("finished", False)
        life.problem += facts.get("problem", "")
        life.times.update(facts.get("times", {}))
    if not life.killed and not life.finished and not life.problem:
        life.problem = f"ended with status {status} before it had finished"
    return life


def draw_deaths(draw: random.Random, times: Counter[str], seconds: float) -> list[Death]:
    """Draw when the processes that train one run die, one after another."""
    moments = draw.choices(MOMENTS, WEIGHTS, k=KILLS_PER_RUN)
    deaths = []
    for moment in sorted(moments, key=MOMENTS.index):
        if moment == "instant":
            deaths.append(Death(moment, seconds=draw.uniform(0, seconds / 2)))  # a resumed run has less to do
        elif times[moment]:
            later = draw.choice((0.0, 0.0, draw.uniform(0, 0.002), draw.uniform(0, 0.02)))
            # A resumed run has fewer times left, those of its first save at least.
            most = times[moment] if moment in ("cache", "average") else max(1, times[moment] // 2)
            deaths.append(Death(moment, draw.randint(1, most), later))
    return deaths


def soak(name: str, kills: int, *, seed: int, data: Path, folder: Path) -> Row:
    """Kill the runs of a family so many times, each run a few times, and count what comes out."""
    row, draw = Row(), random.Random(f"{seed} {name}")
    folder.mkdir()
    init = None
    if parent := BY_NAME[name].init:
        before = Place(folder / "parent", parent, data, None)
        before.live(None)
        init = before.run
    alone = Place(folder / "alone", name, data, init)
    started = time.monotonic()
    life = alone.live(None)
    seconds = time.monotonic() - started
    if not life.finished:
        row.problems.append(f"{name}, left alone: {life.problem}")
        return row
    expected = alone.contents()
    number = 0
    while row.kills < kills:
        number += 1
        place = Place(folder / f"run-{number}", name, data, init)
        deaths = draw_deaths(draw, life.times, seconds)[: kills - row.kills]
        before_problems = len(row.problems)
        kill_and_resume(place, deaths, row)
        differing = differing_bytes(expected, place.contents() if place.run.exists() else {})
        left = place.leftovers()
        row.differing += differing
        row.leftovers += len(left)
        if differing or left or len(row.problems) > before_problems:
            told = f"{differing} bytes differ, left over: {[str(path.relative_to(place.folder)) for path in left]}"
            row.problems.append(f"{name}, run {number}, killed at {', '.join(map(str, deaths))}: {told}")
        else:
            shutil.rmtree(place.folder)
    return row


def kill_and_resume(place: Place, deaths: Sequence[Death], row: Row) -> None:
    """Train one run through its deaths to its end."""
    killed = False
    for death in (*deaths, None):
        life = place.live(death)
        if life.problem:
            row.problems.append(f"{place.run}, to be killed at {death}: {life.problem}")
            return
        row.resumed += killed
        killed = life.killed
        if life.finished and not killed:
            return
        row.kills += killed
        row.moments.update([death.moment] if killed and death else [])
        broken = place.broken()
        row.broken += len(broken)
        row.problems += broken


def differing_bytes(expected: dict[str, bytes], found: dict[str, bytes]) -> int:
    """Count the bytes that differ; those of a file that only one of the two has all do."""
    total = 0
    for name in expected.keys() | found.keys():
        one, other = expected.get(name, b""), found.get(name, b"")
        if one != other:
            total += abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other, strict=False))
    return total


def warm_up() -> None:
    """Load what torch imports at the first step of an optimizer, once for all processes."""
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    torch.optim.AdamW([weight], fused=True).step()


def shares(kills: int, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Share out the kills."""
    for number, name in enumerate(names):
        yield name, kills // len(names) + (number < kills % len(names))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    chosen = parser.parse_args(arguments)
    warm_up()
    print(f"{chosen.kills} kills, seed {chosen.seed}")
    print(f"{'family':30}{'kills':>7}{'resumed':>9}{'broken':>8}{'differing bytes':>17}{'leftovers':>11}{'seconds':>9}")
    problems: list[str] = []
    total = Row()
    folder = Path(tempfile.mkdtemp(prefix="regard-soak-"))
    write_data(folder / "data")
    for name, kills in shares(chosen.kills, chosen.only):
        started = time.monotonic()
        row = soak(name, kills, seed=chosen.seed, data=folder / "data", folder=folder / name)
        show(name, row, time.monotonic() - started)
        if row.fine:
            shutil.rmtree(folder / name)
        problems += row.problems
        total.moments += row.moments
        for count in ("kills", "resumed", "broken", "differing", "leftovers"):
            setattr(total, count, getattr(total, count) + getattr(row, count))
    show("all", total, 0.0)
    print("killed at: " + ", ".join(f"{moment} {total.moments[moment]}" for moment in MOMENTS))
    print("".join(f"\n{problem}" for problem in problems), end="")
    if total.fine and not problems:
        shutil.rmtree(folder)
        return 0
    print(f"What is wrong is kept in {folder}")
    return 1


def show(name: str, row: Row, seconds: float) -> None:
    counts = f"{row.kills:7,}{row.resumed:9,}{row.broken:8,}{row.differing:17,}{row.leftovers:11,}"
    print(f"{name:30}{counts}{seconds:9.1f}" if seconds else f"{name:30}{counts}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
