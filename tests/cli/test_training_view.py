import dataclasses
import errno
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from regard.cli import terminal, training_view
from regard.cli.streams import OutputError
from regard.cli.training_view import JsonView, PeopleView, TensorBoardView, follow, make_views
from regard.config import ModelTable, RunConfig, TrainingConfig
from regard.errors import MissingExtraError
from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.runtime import Machine
from regard.tasks.task import Validation
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.loop import Update

REPORT = Report(
    run=Path("runs/my run"),
    config=RunConfig(task="translate", model=ModelTable(preset="transformer-tiny"), training=TrainingConfig(steps=400)),
    machine=Machine(device=torch.device("cpu"), precision="fp32", threads=2),
    facts=(("training", "90 pairs"),),
    n_parameters=1234,
    total_steps=400,
    seconds_per_step=0.5,
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
FINISHED = Finished(reason="400 steps are done", step=400, seconds=200.0, best={"step": 400, "loss": 2.0}, average={})
AVERAGED = dataclasses.replace(VALIDATED, step=400, best=False, averaged=(200, 300, 400))


def show(*events: Event, advise: bool = True) -> None:
    """Show a run that ends with the last of these events."""
    follow(lambda stages: events, [PeopleView(advise=advise)])


def test_people_see_the_run_go(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, Updated(update=UPDATE, total_steps=400), Saved(step=101, path=Path("x")), VALIDATED, FINISHED)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["run       runs/my run, from step 100", "model     transformer-tiny, 1,234 parameters"]
    assert "time      about 2 min and the validations (0.5 s per step)" in lines
    assert "disk      up to 35 MB (7 checkpoints of 5.0 MB)" in lines
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


BASELINES = (
    ScoredBaseline(name="copied source", scores={"bleu": 0.5}),
    ScoredBaseline(name="word-for-word dictionary", scores={"bleu": 13.24}),
)


def test_the_score_of_a_baseline_stands_beside_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    best = {"step": 400, "loss": 2.0, "bleu": 30.0}
    finished = dataclasses.replace(FINISHED, best=best, baselines=BASELINES)
    show(REPORT, finished)
    lines = capsys.readouterr().err.splitlines()
    assert "Best validation at step 400: loss 2.000, BLEU 30.0; word-for-word dictionary has BLEU 13.2" in lines
    assert not [line for line in lines if "does not beat" in line]
    show(REPORT, dataclasses.replace(finished, average={**best, "bleu": 31.0}))
    lines = capsys.readouterr().err.splitlines()
    assert "Best validation at step 400: loss 2.000, BLEU 30.0" in lines
    average = "Average of checkpoints, now used as 'runs/my run': loss 2.000, BLEU 31.0"
    assert f"{average}; word-for-word dictionary has BLEU 13.2" in lines


def test_a_model_that_does_not_beat_its_baseline_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, dataclasses.replace(FINISHED, best={"step": 400, "loss": 2.0, "bleu": 9.0}, baselines=BASELINES))
    lines = capsys.readouterr().err.splitlines()
    at = lines.index(
        "The model does not beat a simple baseline: it has BLEU 9.0, and word-for-word dictionary has BLEU 13.2."
    )
    assert lines[at + 1].startswith("What may help: more data, more steps, a smaller model or --init from a run ")


def test_samples_are_called_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    report = dataclasses.replace(REPORT, config=RunConfig(task="language", training=TrainingConfig(steps=400)))
    show(report, VALIDATED, FINISHED)
    lines = capsys.readouterr().err.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("step 101: validation"))
    shown = ["    given     A dog [x].", "    followed  Ein Hund.", "    written   Ein Hut."]
    assert lines[at + 1 : at + 4] == shown
    assert lines[lines.index("Next:") - 4 : lines.index("Next:") - 1] == shown


def test_a_sample_without_end_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = dataclasses.replace(VALIDATED.validation, samples=(("a", "b", "dog " * 500),))
    show(REPORT, dataclasses.replace(VALIDATED, validation=long), FINISHED, advise=False)
    line = next(line for line in capsys.readouterr().err.splitlines() if "dog" in line)
    assert line == f"    output    {'dog ' * 75}…"


def test_advice_can_be_left_to_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, FINISHED, advise=False)
    assert "Next:" not in capsys.readouterr().err


def test_updates_without_a_number_and_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = dataclasses.replace(UPDATE, loss=float("nan"), skipped=True)
    show(REPORT, Updated(update=skipped, total_steps=400), Noted(text="step-00000100 is skipped."), FINISHED)
    lines = capsys.readouterr().err.splitlines()
    assert "note: step 101: NaN or infinite loss; the update is skipped" in lines
    assert "note: step-00000100 is skipped." in lines


@pytest.mark.parametrize("best", [True, False])
def test_an_average_is_called_one(capsys: pytest.CaptureFixture[str], best: bool) -> None:
    finished = dataclasses.replace(FINISHED, average={"step": 400, "loss": 1.75, "bleu": 20.0})
    show(REPORT, dataclasses.replace(AVERAGED, best=best), finished)
    shown = capsys.readouterr().err
    assert "average of 3 checkpoints: validation loss 2.000, perplexity 7.39, BLEU 12.3\n" in shown
    assert "best so far" not in shown
    assert "step 400: validation" not in shown
    assert (
        "Best validation at step 400: loss 2.000\n"
        "Average of checkpoints, now used as 'runs/my run': loss 1.750, BLEU 20.0\n"
    ) in shown


def test_intervals_are_shown_at_the_end_and_not_at_each_validation(capsys: pytest.CaptureFixture[str]) -> None:
    validation = Validation(loss=0.5, scores={"accuracy": 81.25}, intervals={"accuracy": (78.6, 83.5)})
    best = {"step": 400, "loss": 0.5, "accuracy": 81.25, "accuracy_low": 78.6, "accuracy_high": 83.5}
    events = REPORT, Validated(step=400, validation=validation, best=False), dataclasses.replace(FINISHED, best=best)
    show(*events)
    lines = capsys.readouterr().err.splitlines()
    assert "step 400: validation loss 0.500, accuracy 81.2" in lines
    assert "Best validation at step 400: loss 0.500, accuracy 81.2 (95 % interval 78.6 to 83.5)" in lines
    follow(lambda stages: events, [JsonView()])
    _, validated, _ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert validated["intervals"] == {"accuracy": [78.6, 83.5]}


def test_scores_that_are_no_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    best: Any = {"step": 400, "loss": 800.0, "perplexity": None}  # as runs of the past have written infinity
    validation = Validation(loss=float("nan"), scores={"perplexity": float("inf")})
    show(REPORT, Validated(step=400, validation=validation, best=False), dataclasses.replace(FINISHED, best=best))
    lines = capsys.readouterr().err.splitlines()
    assert "step 400: validation loss —, perplexity inf" in lines
    assert "Best validation at step 400: loss 800.000, perplexity —" in lines


@pytest.mark.parametrize("name", ["steps", "epochs", "minutes", "patience"])
def test_a_run_that_was_over_before_says_how_to_go_on(capsys: pytest.CaptureFixture[str], name: str) -> None:
    show(REPORT, dataclasses.replace(FINISHED, step=100, reason="validations of all steps are done", limit=name))
    assert (
        "The run was already finished: validations of all steps are done. To train longer: "
        f"regard resume 'runs/my run' --{name} N"
    ) in capsys.readouterr().err


def test_a_signal_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = dataclasses.replace(FINISHED, signal=2)
    show(REPORT, stopped)
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "Stopped at step 400; the run is saved. Resume it with:",
        "  regard resume 'runs/my run'",
    ]
    show(REPORT, stopped, advise=False)
    assert capsys.readouterr().err.splitlines()[-1] == "Stopped at step 400; the run is saved."


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


class Failing:
    """A view whose stream takes no more after the first event."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.shown: list[Event] = []

    def show(self, event: Event) -> None:
        self.shown.append(event)
        if len(self.shown) == 1:
            raise OutputError(self.number, "a reason")

    def close(self) -> None:
        pass


def test_a_reader_that_leaves_does_not_end_training() -> None:
    leaving = Failing(errno.EPIPE)
    events = [REPORT, VALIDATED, FINISHED]
    assert follow(lambda stages: events, [leaving]) == FINISHED
    assert leaving.shown == events


def test_a_full_disk_of_the_log_is_told_when_training_is_done() -> None:
    full = Failing(errno.ENOSPC)
    with pytest.raises(OutputError):
        follow(lambda stages: [REPORT, VALIDATED, FINISHED], [full])
    assert full.shown[-1] == FINISHED


def test_json_tells_an_average_from_a_validation(capsys: pytest.CaptureFixture[str]) -> None:
    finished = dataclasses.replace(FINISHED, average={"step": 400, "loss": 1.75})
    follow(lambda stages: [REPORT, VALIDATED, AVERAGED, finished], [JsonView()])
    _, validated, averaged, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (validated["averaged"], averaged["averaged"]) == ([], [200, 300, 400])
    assert last["best"] == {"step": 400, "loss": 2.0}
    assert last["average"] == {"step": 400, "loss": 1.75}


def test_without_tensorboard_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError) as raised:
        make_views(tmp_path, json=False, tensorboard=True)
    assert raised.value.problem == "--tensorboard needs the package 'tensorboard', which is not installed."
    assert raised.value.remedy == "Install it with: pip install 'regard[track]'"


def scalars(run: Path) -> Any:
    """What TensorBoard finds in a run's folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    return board


def test_scalars_for_tensorboard(tmp_path: Path) -> None:
    bad = dataclasses.replace(UPDATE, step=102, loss=float("nan"))
    events: list[Any] = [REPORT, *(Updated(update=one, total_steps=400) for one in (UPDATE, bad)), VALIDATED, FINISHED]
    events.insert(-1, AVERAGED)
    follow(lambda stages: events, [TensorBoardView(tmp_path)])
    board = scalars(tmp_path)
    assert [(one.step, one.value) for one in board.Scalars("train/loss")] == [(101, 3.5)]
    assert board.Scalars("train/per_second")[0].value == 2000
    assert board.Scalars("valid/bleu")[0].value == pytest.approx(12.34)
    assert [one.step for one in board.Scalars("valid/loss")] == [101]
    assert [one.step for one in board.Scalars("average/loss")] == [400]
    assert board.Scalars("average/bleu")[0].value == pytest.approx(12.34)


def test_what_is_trained_again_does_not_stand_twice_in_tensorboard(tmp_path: Path) -> None:
    def updates(*steps: int) -> list[Event]:
        return [Updated(update=dataclasses.replace(UPDATE, step=step), total_steps=400) for step in steps]

    first = dataclasses.replace(REPORT, step=98)
    follow(lambda stages: [first, *updates(99, 100, 101, 102, 103), FINISHED], [TensorBoardView(tmp_path)])
    # It was killed, and goes on from step 100.
    follow(lambda stages: [REPORT, *updates(101), FINISHED], [TensorBoardView(tmp_path)])
    assert [one.step for one in scalars(tmp_path).Scalars("train/loss")] == [99, 100, 101]
