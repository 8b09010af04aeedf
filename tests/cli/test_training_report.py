import dataclasses
from pathlib import Path

import pytest
import torch

from regard.cli import training_report as module
from regard.cli.training_report import disk_needed, end, learning, report_rows, time_needed
from regard.config import RunConfig, TrainingConfig
from regard.runtime import Machine
from regard.training.events import Report


def report(total_steps: int, training: TrainingConfig) -> Report:
    return Report(
        run=Path("runs/x"),
        config=RunConfig(task="translate", training=training),
        machine=Machine(device=torch.device("cuda:1"), precision="bf16", threads=2),
        facts=(),
        n_parameters=10,
        total_steps=total_steps,
        seconds_per_step=0.25,
        checkpoint_bytes=100,
        step=0,
        seconds=0.0,
    )


@pytest.mark.parametrize(
    ("total_steps", "minutes", "text"),
    [
        (4000, 0.0, "about 17 min and the validations (0.25 s per step)"),
        (4000, 3.0, "3 min, validations included (0.25 s per step)"),
        (40, 3.0, "about 10 s and the validations (0.25 s per step)"),
        (0, 3.0, "3 min, validations included (0.25 s per step)"),
    ],
)
def test_the_nearer_end_decides_the_time(total_steps: int, minutes: float, text: str) -> None:
    assert time_needed(report(total_steps, TrainingConfig(minutes=minutes))) == text


def test_time_already_spent_counts() -> None:
    going_on = dataclasses.replace(report(4000, TrainingConfig(minutes=5)), step=3000, seconds=240.0)
    assert time_needed(going_on) == "1 min, validations included (0.25 s per step)"


@pytest.mark.parametrize(
    ("training", "text"),
    [
        (TrainingConfig(epochs=3), "after 3 epochs"),
        (TrainingConfig(steps=5000, minutes=2.5), "after 5,000 steps or 2.5 minutes, whichever comes first"),
    ],
)
def test_every_end_is_named(training: TrainingConfig, text: str) -> None:
    assert end(training) == text


def test_batches_of_an_update_are_named() -> None:
    four = TrainingConfig(accumulate=4)
    assert learning(four, "tokens").startswith("4,096 tokens per batch, 4 batches per update, ")
    assert learning(four, "images").startswith("128 images per batch, 4 batches per update, ")


@pytest.mark.parametrize(
    ("total_steps", "precision", "has_it", "told"),
    [(4000, "fp32", True, True), (40, "fp32", True, False), (4000, "bf16", True, False), (4000, "fp32", False, False)],
)
def test_a_long_run_is_told_of_bf16(
    monkeypatch: pytest.MonkeyPatch, total_steps: int, precision: str, has_it: bool, told: bool
) -> None:
    monkeypatch.setattr(module, "has_bf16_products", lambda: has_it)
    machine = Machine(device=torch.device("cpu"), precision=precision, threads=2)
    rows = dict(report_rows(dataclasses.replace(report(total_steps, TrainingConfig()), machine=machine)))
    assert rows["machine"].startswith(f"cpu, {precision}, 2 threads, seed 1")
    assert ("--set runtime.precision=bf16" in rows["machine"]) is told


def test_threads_matter_on_a_cpu_only() -> None:
    assert ("machine", "cuda:1, bf16, seed 1") in report_rows(report(1, TrainingConfig()))


@pytest.mark.parametrize(
    ("training", "count"),
    [
        (TrainingConfig(keep=5), 7),  # the best, and the one that is being written
        (TrainingConfig(keep=1, average=10), 14),  # ten validations that stay, and their average
    ],
)
def test_the_disk_is_enough_for_all_that_is_kept(training: TrainingConfig, count: int) -> None:
    large = dataclasses.replace(report(1, training), checkpoint_bytes=10_000_000)
    assert disk_needed(large) == f"up to {count * 10} MB ({count} checkpoints of 10 MB)"
