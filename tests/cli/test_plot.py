from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_picture(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--output", "pictures/a.png")
    assert (outcome.code, outcome.out) == (0, "pictures/a.png\n")
    assert Path("pictures/a.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_several_runs(command: Any, trained: Path, language_run: str) -> None:
    outcome = command("plot", trained, language_run)
    assert (outcome.code, outcome.out) == (0, "curves.png\n")
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")


def test_gradients_by_layer(command: Any, train_language: Callable[..., str], language_run: str) -> None:
    run = train_language("training.record_gradients=5")
    outcome = command("plot", run, "--gradients")
    assert (outcome.code, outcome.out) == (0, "gradients.png\n")
    assert Path("gradients.png").read_bytes().startswith(b"\x89PNG")
    assert command("plot", run, "--gradients", "--output", "g.svg").out == "g.svg\n"
    assert Path("g.svg").read_text().startswith("<?xml")
    refused = command("plot", run, language_run, "--gradients")
    assert refused.code == 2
    assert refused.error == [
        f"error: {language_run} has no records of its gradients.",
        "Train a run that keeps them, of every 50th update: --set training.record_gradients=50",
    ]


def test_which_run(command: Any) -> None:
    outcome = command("plot")
    assert outcome.code == 2
    assert outcome.error == ["error: No run was named.", "Name the runs to draw: regard plot RUN"]


def test_another_kind_of_picture(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--output", "a.gif")
    assert outcome.code == 2
    assert outcome.error[1] == "Name it, for example, a.png."
