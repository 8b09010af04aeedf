import json
from pathlib import Path
from typing import Any

import pytest

from regard.cli.resume import new_settings
from regard.runs.folder import RunFolder
from regard.training.stopping import End
from regard.training.summary import summarise


def test_a_finished_run_goes_on_when_its_end_is_moved(command: Any, own_run: Path) -> None:
    over = command("resume", own_run)
    assert over.code == 0
    assert "The run was already finished: 120 steps are done." in over.err
    moved = command("resume", own_run, "--steps", 122, "--json")
    assert moved.code == 0
    steps = [event["step"] for line in moved.lines if (event := json.loads(line))["event"] == "updated"]
    assert steps == [121, 122]
    assert summarise(RunFolder(own_run)).step == 122


def test_json_begins_with_where_the_run_stands(command: Any, own_run: Path) -> None:
    outcome = command("resume", own_run, "--steps", 121, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    events = [event for line in outcome.lines if (event := json.loads(line))["event"] != "noted"]
    assert [event["event"] for event in events] == [
        "report",
        "updated",
        "validated",
        "saved",
        "validated",
        "finished",
    ]
    assert (events[0]["run"], events[0]["step"], events[0]["total_steps"]) == (str(own_run), 120, 121)
    assert (events[2]["averaged"], events[4]["averaged"]) == ([], [80, 120, 121])
    assert events[5]["average"]["loss"] == events[4]["scores"]["loss"]


def test_a_number_of_steps_is_the_whole_end() -> None:
    assert new_settings(steps=80) == {"training.epochs": 0, "training.minutes": 0, "training.steps": 80}
    assert new_settings(steps=80, minutes=2.5, sets=["training.epochs=7"]) == {
        "training.epochs": "7",
        "training.minutes": 2.5,
        "training.steps": 80,
    }


def test_other_limits_move_alone() -> None:
    assert new_settings(epochs=3, patience=0) == {"training.epochs": 3, "training.patience": 0}
    assert new_settings(steps=0, minutes=4) == {"training.steps": 0, "training.minutes": 4}
    assert new_settings(sets=["runtime.threads=1"]) == {"runtime.threads": "1"}
    assert new_settings() == {}


def test_a_run_that_ended_by_epochs_goes_on(command: Any, corpus: tuple[str, str], tiny_flags: list[str]) -> None:
    assert command("train", "translate", "--train", *corpus, "--run", "r", "--epochs", 1, *tiny_flags).code == 0
    over = command("resume", "r")
    assert "To train longer: regard resume r --epochs N" in over.err
    before = summarise(RunFolder(Path("r")))
    moved = command("resume", "r", "--epochs", 2, "--set", "training.validate_samples=0")
    assert moved.code == 0
    summary = summarise(RunFolder(Path("r")))
    assert (before.epoch, summary.epoch) == (1, 2)
    assert summary.config.training.validate_samples == 0
    steps = command("resume", "r", "--steps", summary.step + 1)
    assert steps.code == 0
    summary = summarise(RunFolder(Path("r")))
    assert summary.end == End("steps", f"{summary.step} steps are done")
    assert summary.config.training.epochs == 0


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--patience", "-1"), "--patience must be at least 0, not -1."),
        (("--minutes", "nan"), "--minutes must be a finite number, not nan."),
        (("--set", "training.steps=-1"), "regard resume: training.steps must be at least 0, not -1."),
        (("--set", "steps"), "--set takes KEY=VALUE, not 'steps'."),
        (("--set", "data.max_length=3"), "[data] cannot change on resume."),
    ],
)
def test_settings_that_cannot_be(command: Any, own_run: Path, flags: tuple[str, ...], problem: str) -> None:
    before = (own_run / "config.toml").read_bytes()
    outcome = command("resume", own_run, *flags)
    assert (outcome.code, outcome.error[0]) == (2, f"error: {problem}")
    assert (own_run / "config.toml").read_bytes() == before


def test_a_folder_that_is_no_run(command: Any, tmp_path: Path) -> None:
    outcome = command("resume", "runs/none")
    assert outcome.code == 1
    assert outcome.error == [
        "error: runs/none is not a run: there is no such folder.",
        "Train one with: regard train translate --train SOURCE TARGET --run runs/none",
    ]


def test_changed_data_is_refused(command: Any, corpus: tuple[str, str], tiny_flags: list[str]) -> None:
    copies = [Path("c.en"), Path("c.de")]
    for file, copy in zip(corpus, copies, strict=True):
        copy.write_bytes(Path(file).read_bytes())
    assert command("train", "translate", "--train", *copies, "--run", "r", "--steps", 1, *tiny_flags).code == 0
    copies[0].write_text(copies[0].read_text().replace("dog", "cow"))
    outcome = command("resume", "r", "--steps", 2)
    assert outcome.code == 1
    assert outcome.error == [
        f"error: {copies[0].absolute()} has changed since r was started: a run resumes on the data it was trained on.",
        "Restore the old file, or train a new run.",
    ]
