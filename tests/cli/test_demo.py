import signal
from pathlib import Path
from typing import Any

import pytest

from regard.cli import demo
from regard.cli.training_view import PeopleView
from regard.inspection.probe_folder import recorded_steps, trace_files
from regard.runs.folder import RunFolder
from regard.training.events import Event, Updated
from regard.training.stopping import End
from regard.training.summary import summarise


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with little text and a tiny network, which end after a few steps."""
    monkeypatch.setattr(demo, "SIZES", {"train": 300, "valid": 20, "test": 12, "long": 6})
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "d_ff": 32, "n_heads": 2}
    tables = {
        **demo.TABLES,
        "model": {**demo.TABLES["model"], **sizes},
        "tokenizer": {"vocab_size": 600},
        "training": {**demo.TABLES["training"], "steps": 4, "validate_every": 2, "validate_samples": 4},
        "decoding": {"beam": 1, "max_length": 20},
        "runtime": {"threads": 1},
    }
    monkeypatch.setattr(demo, "TABLES", tables)


@pytest.mark.usefixtures("small")
def test_the_whole_road(command: Any) -> None:
    outcome = command("demo")
    assert outcome.code == 0
    heading, unseen, longer = outcome.lines[:3]
    assert heading.split()[:5] == ["test", "set", "sentences", "BLEU", "chrF"]
    assert unseen.startswith("unseen sentences ") and unseen.split()[2] == "12"
    assert longer.startswith("longer than any in training ")
    assert [line.split()[0] for line in outcome.lines[4:7]] == ["source", "expected", "output"]
    assert Path("runs/demo/attention.png").read_bytes().startswith(b"\x89PNG")
    page = Path("runs/demo/page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "runs/demo/page.html shows every number behind that" in outcome.err
    recorded = recorded_steps(RunFolder(Path("runs/demo")))
    assert list(recorded) == [0, 4]
    assert [len(trace_files(folder)) for folder in recorded.values()] == [3, 3]
    assert "  regard show runs/demo" in outcome.err.splitlines()


@pytest.mark.usefixtures("small")
def test_one_that_was_stopped_goes_on_and_a_finished_one_stays(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo.write_corpus(folder / "corpus")
    assert demo.choose_folder(folder) == folder
    demo.train(folder)
    assert demo.choose_folder(folder) == tmp_path / "demo-2"
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("steps = 4\n", "steps = 6\n"))
    assert demo.choose_folder(folder) == folder
    demo.train(folder)
    assert summarise(RunFolder(folder)).step == 6


@pytest.mark.usefixtures("small")
def test_one_that_is_interrupted_says_how_to_go_on_and_its_end_can_be_moved(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = PeopleView.show

    def interrupted(self: PeopleView, event: Event) -> None:
        ordinary(self, event)
        if isinstance(event, Updated) and event.update.step == 1:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(PeopleView, "show", interrupted)
        stopped = command("demo")
    assert stopped.code == 130
    assert stopped.err.splitlines()[-2:] == ["Resume it with:", "  regard demo --run runs/demo"]
    assert command("demo", "--run", "runs/demo", "--steps", 2).code == 0
    assert summarise(RunFolder(Path("runs/demo"))).end == End("steps", "2 steps are done")


def test_a_folder_of_something_else_is_refused_before_anything_is_written(command: Any, own_run: Path) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").touch()
    foreign = command("demo", "--run", "mine")
    assert foreign.code == 1
    assert foreign.error[0] == "error: mine contains other files: letter.txt."
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]
    config = own_run / "config.toml"
    config.write_text(config.read_text().replace("steps = 120\n", "steps = 200\n"))
    other = command("demo", "--run", own_run)  # a run that is not finished, but no demo
    assert (other.code, other.error[0]) == (1, f"error: {own_run} is already a run.")
    assert not (own_run / "corpus").exists()


def test_steps_are_checked(command: Any) -> None:
    outcome = command("demo", "--steps", -1)
    assert (outcome.code, outcome.error[0]) == (2, "error: --steps must be at least 0, not -1.")
    assert not Path("runs").exists()
