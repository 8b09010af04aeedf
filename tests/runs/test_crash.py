"""A process that writes checkpoints without a pause is killed at random instants; what it leaves must be whole."""

import os
import random
import signal
import subprocess
import sys
import time

from regard.runs import checkpoints, metrics
from regard.runs.disk import TEMPORARY
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.runs.selection import newest_intact

# Starting an interpreter with torch takes a second, a fork takes none: one parent forks a writer for each line it reads.
# The writer tells its number after its first checkpoint. Every third checkpoint is written twice, so that kills fall
# into replacing and pruning too.
WRITER = """
import itertools, os, sys
from pathlib import Path
import torch
from regard.runs import checkpoints
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.runs.metrics import Metrics
from regard.runs.selection import prune

torch.set_num_threads(1)
run = RunFolder(Path(sys.argv[1]))

def write_for_ever(start):
    with locked(run), Metrics(run) as metrics:
        for step in itertools.count(start + 1):
            for _ in range(2 if step % 3 == 0 else 1):
                weights = {"weight": torch.full((2000,), float(step))}
                state = {"step": step, "validation": {"loss": 1 / step}}
                checkpoints.write(run, step=step, model=weights, optimizer=weights, state=state, facts={})
            metrics.append({"kind": "train", "step": step})
            prune(run, keep=1)
            if step == start + 1:
                os.write(1, f"{os.getpid()}\\n".encode())

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        write_for_ever(int(line))
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""

KILLS = 24


def test_a_run_killed_at_random_instants_stays_loadable(run: RunFolder) -> None:
    chance = random.Random(7)
    command = [sys.executable, "-c", WRITER, str(run.path)]
    step, cut_short = 0, 0
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        try:
            for _ in range(KILLS):
                parent.stdin.write(f"{step}\n")
                parent.stdin.flush()
                writer = int(parent.stdout.readline())
                time.sleep(chance.uniform(0, 0.03))
                os.kill(writer, signal.SIGKILL)
                assert parent.stdout.readline() == "dead\n"
                step = check(run, after=step)
                cut_short += any(path.name.startswith(TEMPORARY) for path in run.checkpoints.iterdir())
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert cut_short > 0, "no kill fell into a write"
    with locked(run):
        checkpoints.clean(run)
    assert not list(run.checkpoints.glob(f"{TEMPORARY}*"))


def check(run: RunFolder, *, after: int) -> int:
    """Hold what a killed writer left against what it wrote, cut the metrics as resume does, and return the step."""
    checkpoint, notes = newest_intact(run)
    step = checkpoint.step
    assert notes == []
    assert step > after
    assert checkpoints.load_weights(checkpoint)["weight"].tolist() == [float(step)] * 2000
    assert checkpoints.load_optimizer(checkpoint)["weight"].tolist() == [float(step)] * 2000
    assert checkpoints.load_state(checkpoint)["step"] == step
    metrics.truncate(run, step=step, validated=True)
    recorded = [record["step"] for record in metrics.read(run)]
    # Between a checkpoint and its record a kill can fall: then the record is missing.
    assert recorded == sorted(set(recorded))
    assert set(range(after + 1, step)) <= set(recorded)
    return step
