import json
from pathlib import Path
from typing import Any

from regard.runs.folder import RunFolder
from regard.training.summary import summarise


def test_a_finished_run_goes_on_when_its_end_is_moved(command: Any, own_run: Path) -> None:
    over = command("resume", own_run)
    assert over.code == 0
    assert "The run was finished before: 120 steps are done." in over.err
    moved = command("resume", own_run, "--steps", 122, "--json")
    assert moved.code == 0
    steps = [event["step"] for line in moved.lines if (event := json.loads(line))["event"] == "updated"]
    assert steps == [121, 122]
    assert summarise(RunFolder(own_run)).step == 122


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
        f"error: {copies[0].absolute()} has changed since r began: its content is no longer what the run was trained on.",
        "Put the old file back, or train a new run.",
    ]
