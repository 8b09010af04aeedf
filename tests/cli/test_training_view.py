import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from regard.cli import terminal, training_view
from regard.cli.training_view import PeopleView, TensorBoardView, follow, make_views
from regard.config import RunConfig, TrainingConfig
from regard.errors import MissingExtraError
from regard.runtime import Machine
from regard.tasks.task import Validation
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.loop import Update

REPORT = Report(
    run=Path("runs/my run"),
    config=RunConfig(task="translate", training=TrainingConfig(steps=400)),
    machine=Machine(device=torch.device("cpu"), precision="fp32", threads=2),
    facts=(("training", "90 pairs"),),
    n_parameters=1234,
    total_steps=400,
    seconds_a_step=0.5,
    checkpoint_bytes=5_000_000,
    step=100,
    seconds=50.0,
)
UPDATE = Update(
    step=101,
    epoch=2,
    loss=3.5,
    weight=1000,
    gradient_norm=1.0,
    learning_rate=0.001,
    skipped=False,
    seconds=0.5,
    epoch_ended=False,
)
SAMPLE = ("A dog [x].", "Ein Hund.", "Ein Hut.")
VALIDATED = Validated(
    step=101, validation=Validation(loss=2.0, scores={"perplexity": 7.389, "bleu": 12.34}, samples=(SAMPLE,)), best=True
)
FINISHED = Finished(reason="400 steps are done", step=400, seconds=200.0, best={"step": 400, "loss": 2.0})


def show(*events: Event, advise: bool = True) -> None:
    """Show a run that ends with the last of these events."""
    follow(lambda stages: events, [PeopleView(advise=advise)])


def test_people_see_the_run_go(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, Updated(update=UPDATE, total_steps=400), Saved(step=101, path=Path("x")), VALIDATED, FINISHED)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["run       runs/my run, from step 100", "model     a network of your own, 1,234 parameters"]
    assert "time      about 2 min and the validations (0.5 s a step)" in lines
    assert "disk      up to 30 MB (6 checkpoints of 5.0 MB)" in lines
    assert [line for line in lines if line.startswith("step 101/400  loss 3.500  2,000 tokens/s  ")]
    at = lines.index("step 101: validation loss 2.000, perplexity 7.39, BLEU 12.3  ★ best so far")
    assert lines[at + 1 : at + 4] == [
        "    source    A dog [x].",
        "    expected  Ein Hund.",
        "    output    Ein Hut.",
    ]
    assert "Finished at step 400 after 3 min: 400 steps are done." in lines
    assert "Best validation at step 400: loss 2.000" in lines
    assert "  regard translate 'runs/my run' \"…\"" in lines


def test_advice_can_be_left_to_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, FINISHED, advise=False)
    assert "Next:" not in capsys.readouterr().err


def test_updates_without_a_number_and_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = dataclasses.replace(UPDATE, loss=float("nan"), skipped=True)
    show(REPORT, Updated(update=skipped, total_steps=400), Noted(text="step-00000100 is passed over."), FINISHED)
    lines = capsys.readouterr().err.splitlines()
    assert "note: step 101: the loss is no number; the update is skipped" in lines
    assert "note: step-00000100 is passed over." in lines


def test_a_run_that_was_over_before_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, dataclasses.replace(FINISHED, step=100))
    assert (
        "The run was finished before: 400 steps are done. To go on, move its end: regard resume 'runs/my run' --steps N"
    ) in capsys.readouterr().err


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120)
    for module in (terminal, training_view):
        monkeypatch.setattr(module, "people", lambda: console)
    show(REPORT, Updated(update=UPDATE, total_steps=400), VALIDATED, FINISHED)
    shown = file.getvalue()
    assert "━" in shown
    assert "step 101/400  loss 3.500  2,000 tokens/s" in shown
    assert "starting" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2  # the cursor comes back


def test_views_are_closed_when_training_fails() -> None:
    closed: list[str] = []

    class Watching:
        def show(self, event: Event) -> None:
            pass

        def close(self) -> None:
            closed.append("closed")

    def events() -> Iterator[Event]:
        yield REPORT
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(lambda stages: events(), [Watching()])
    assert closed == ["closed"]


def test_without_tensorboard_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError) as raised:
        make_views(tmp_path, json=False, tensorboard=True)
    assert raised.value.problem == "--tensorboard needs the package 'tensorboard', which is not installed."
    assert raised.value.remedy == "Install it with: pip install 'regard[track]'"


def test_scalars_for_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    bad = dataclasses.replace(UPDATE, step=102, loss=float("nan"))
    events: list[Any] = [REPORT, *(Updated(update=one, total_steps=400) for one in (UPDATE, bad)), VALIDATED, FINISHED]
    follow(lambda stages: events, [TensorBoardView(tmp_path)])
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(one.step, one.value) for one in board.Scalars("train/loss")] == [(101, 3.5)]
    assert board.Scalars("train/tokens_per_second")[0].value == 2000
    assert board.Scalars("valid/bleu")[0].value == pytest.approx(12.34)
