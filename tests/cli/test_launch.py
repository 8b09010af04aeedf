"""`--processes N`: the same command in several processes; what is refused before, and what a launch comes to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.golden.run import write_data
from tests.soak.rank_kills import Launch, arguments_of

from regard.cli.launch import launch, outcome, without_processes
from regard.cli.main import main
from regard.errors import RegardError, UsageError


def test_the_copies_are_told_nothing_of_the_option() -> None:
    given = ["train", "translate", "--processes", "4", "--steps", "9", "--processes=2"]
    assert without_processes(given) == ["train", "translate", "--steps", "9"]


@pytest.mark.parametrize("number", [0, -1, 5000])
def test_a_number_of_processes_that_cannot_be(number: int) -> None:
    with pytest.raises(UsageError) as error:
        launch(number)
    assert str(error.value) == f"--processes must be from 1 to 1,024, not {number}.\nGive one per core, or per GPU."


def test_it_is_refused_on_the_command_line_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["resume", str(tmp_path), "--processes", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: --processes must be a whole number, not 'x'.")


def test_processes_do_not_start_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        UsageError, match=r"^--processes starts processes of its own, and torchrun has started this one\."
    ):
        launch(2)


def test_seeds_are_trained_by_one_process(
    capsys: pytest.CaptureFixture[str], corpus: tuple[str, str], tmp_path: Path
) -> None:
    run = ["--run", str(tmp_path / "run")]
    assert main(["train", "translate", "--train", *corpus, *run, "--seeds", "1,2", "--processes", "2"]) == 2
    assert capsys.readouterr().err == (
        "error: --seeds does not go with several processes.\nTrain one seed at a time, with --seed.\n"
    )


def test_a_process_that_was_killed_is_named() -> None:
    with pytest.raises(RegardError) as error:
        outcome({1: -9, 0: 1})
    assert str(error.value) == (
        "Rank 1 was killed by SIGKILL; perhaps there was not enough memory: the run cannot go on without it.\n"
        "Go on from the last checkpoint: regard resume RUN"
    )
    with pytest.raises(RegardError, match="Rank 0 was killed by signal 3:"):
        outcome({0: -3})


def test_a_process_that_ended_by_itself_has_said_why() -> None:
    assert outcome({0: 1, 1: 2}) == 2
    assert outcome({0: 143}) == 143


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def begun(run: Path, data: Path, folder: Path) -> Launch:
    """A launch that has made its first updates, with more steps than it will come to."""
    found = Launch([*arguments_of(run, data), "--set", "training.steps=100000"], folder=folder, processes=2)
    metrics = run / "metrics.jsonl"
    while not (metrics.exists() and metrics.stat().st_size) and found.launcher.poll() is None:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_the_launcher_saves(number: int, code: int, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    found = begun(run, data, tmp_path)
    ranks = list(found.ranks().values())
    assert len(ranks) == 2, found.said.read_text()
    os.kill(found.launcher.pid, number)
    assert found.end(ranks) < 60
    said = found.said.read_text()
    assert found.launcher.returncode == code, said
    assert "the run is saved. Resume it with:" in said
    assert f"regard resume {run} --processes 2" in said
    assert list(run.glob("checkpoints/step-*/manifest.json"))


def test_a_killed_process_ends_all_and_is_told_once(data: Path, tmp_path: Path) -> None:
    found = begun(tmp_path / "run", data, tmp_path)
    ranks = found.ranks()
    os.kill(ranks[1], signal.SIGKILL)
    assert found.end(list(ranks.values())) < 60
    assert found.launcher.returncode == 1
    assert found.said.read_text().splitlines()[-2:] == [
        "error: Rank 1 was killed by SIGKILL; perhaps there was not enough memory: the run cannot go on without it.",
        "Go on from the last checkpoint: regard resume RUN",
    ]


def test_a_process_that_hangs_is_found(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    found = Launch(
        [*arguments_of(run, data), "--set", "training.steps=100000", "--set", "runtime.timeout=3"],
        folder=tmp_path,
        processes=2,
    )
    while not (run / "metrics.jsonl").exists() and found.launcher.poll() is None:
        time.sleep(0.05)
    ranks = found.ranks()
    os.kill(ranks[1], signal.SIGSTOP)
    assert found.end(list(ranks.values())) < 60
    said = found.said.read_text()
    assert said.count("error: Rank 1 has not answered for 3 seconds: the run cannot go on without it.\n") == 1, said


def test_nothing_is_left_of_a_launcher_that_is_killed(data: Path, tmp_path: Path) -> None:
    found = begun(tmp_path / "run", data, tmp_path)
    ranks = list(found.ranks().values())
    os.kill(found.launcher.pid, signal.SIGKILL)
    assert found.end(ranks) < 60
    done = subprocess.run(
        [sys.executable, "-m", "regard", "show", str(tmp_path / "run"), "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
