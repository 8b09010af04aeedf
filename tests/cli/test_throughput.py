import dataclasses
import time
from pathlib import Path

import pytest
import torch

from regard.cli.throughput import Throughput
from regard.config import RunConfig, TrainingConfig
from regard.runtime import Machine
from regard.training.events import Report
from regard.training.loop import Update

UPDATE = Update(
    step=11,
    epoch=0,
    loss=4.0,
    weight=500,
    gradient_norm=1.0,
    learning_rate=0.1,
    skipped=False,
    seconds=0.5,
    epoch_ended=False,
)


def pace(*, total_steps: int, minutes: float) -> Throughput:
    """A run that goes on from step 10 after a minute of training."""
    report = Report(
        run=Path("runs/x"),
        config=RunConfig(task="translate", training=TrainingConfig(minutes=minutes)),
        machine=Machine(device=torch.device("cpu"), precision="fp32", threads=1),
        facts=(),
        n_parameters=1,
        total_steps=total_steps,
        seconds_per_step=0.1,
        checkpoint_bytes=1,
        step=10,
        seconds=60.0,
    )
    return Throughput(report)


def test_numbers_are_smoothed_from_the_first_on() -> None:
    going = pace(total_steps=100, minutes=0)
    going.add(UPDATE)
    assert (going.loss, going.per_second) == (4.0, 1000.0)
    going.add(dataclasses.replace(UPDATE, step=12, loss=2.0, weight=1000))
    assert (going.loss, going.per_second) == (3.0, 1500.0)
    for step in range(13, 300):
        going.add(dataclasses.replace(UPDATE, step=step, loss=1.0))
    assert going.loss == pytest.approx(1.0, abs=1e-5)


def test_a_loss_that_is_no_number_is_passed_over() -> None:
    going = pace(total_steps=100, minutes=0)
    going.add(dataclasses.replace(UPDATE, loss=float("nan")))
    going.add(dataclasses.replace(UPDATE, step=12))
    assert going.loss == 4.0


def test_the_nearer_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    by_steps, by_time = pace(total_steps=110, minutes=60), pace(total_steps=110, minutes=2)
    monkeypatch.setattr(time, "monotonic", lambda: now + 0.75)  # with a validation, for instance
    for going in (by_steps, by_time):
        going.add(UPDATE)
    assert by_steps.share == pytest.approx(11 / 110)
    assert by_steps.seconds_left == pytest.approx(99 * 0.75)
    assert by_time.share == pytest.approx(60.75 / 120)
    assert by_time.seconds_left == pytest.approx(59.25)
    assert by_steps.text() == "step 11/110  loss 4.000  1,000 tokens/s  1 min left"
    assert pace(total_steps=0, minutes=2).text().startswith("step 10  ")
