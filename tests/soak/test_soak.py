"""A little of the soak, with a fixed seed: `make soak` has all of it. Forked trainings need a process without threads."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden.run import BY_NAME
from tests.soak.kills import FAMILIES, differing_bytes
from tests.soak.mutants import DAMAGE, Damage, mutant

from regard.models.presets import PRESETS
from regard.tasks.spec import TASKS

ROOT = Path(__file__).parents[2]


def soak(module: str, *arguments: str) -> list[str]:
    """Return the counts of all rows together."""
    command = [sys.executable, "-m", f"tests.soak.{module}", "--seed", "7", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = (line.split()[1:] for line in done.stdout.splitlines() if line.startswith("all "))
    return total


def test_killed_runs_end_with_the_same_bytes_and_leave_nothing_behind() -> None:
    some = ("translate-accumulate-ema", "classify-init", "image-vit")
    assert soak("kills", "--kills", "12", "--only", *some) == ["12", "12", "0", "0", "0"]


@pytest.mark.parametrize(("group", "count"), [("formats", 4650), ("runs", 480)])
def test_mutants_are_read_or_refused_in_two_lines(group: str, count: int) -> None:
    mutants, read, refused, failed = soak("fuzz", "--group", group, "--mutants", str(count))
    assert (mutants, failed) == (f"{count:,}", "0")
    assert int(read.replace(",", "")) > count / 10
    assert int(refused.replace(",", "")) > count / 10


def test_every_task_and_every_architecture_is_killed() -> None:
    runs = [BY_NAME[name] for name in FAMILIES]
    assert {run.task for run in runs} == set(TASKS)
    assert {PRESETS[run.model].config for run in runs if run.model} == {preset.config for preset in PRESETS.values()}


def test_bytes_that_differ_are_counted() -> None:
    assert differing_bytes({"a": b"123", "b": b"12"}, {"a": b"153", "c": b"1"}) == 1 + 2 + 1
    assert differing_bytes({"a": b"123"}, {"a": b"12"}) == 1
    assert differing_bytes({"a": b"123"}, {"a": b"123"}) == 0


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_every_kind_of_damage_changes_a_file(damage: Damage) -> None:
    content = b"id,text\n1,a dog\n2,a cat\n3,the sun\n"
    damaged = [damage(content, random.Random(seed)) for seed in range(10)]
    assert any(one != content for one in damaged)
    damage(b"", random.Random(1))


def test_a_mutant_comes_again() -> None:
    assert mutant(b"a dog runs\n" * 9, "1 csv 5") == mutant(b"a dog runs\n" * 9, "1 csv 5")
