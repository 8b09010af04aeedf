from pathlib import Path
from typing import Any


def test_a_picture(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--output", "pictures/a.png")
    assert (outcome.code, outcome.out) == (0, "pictures/a.png\n")
    assert Path("pictures/a.png").read_bytes().startswith(b"\x89PNG")


def test_which_run(command: Any) -> None:
    outcome = command("plot")
    assert outcome.code == 2
    assert outcome.error == ["error: No run was named.", "Name the runs to draw: regard plot RUN"]


def test_another_kind_of_picture(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--output", "a.gif")
    assert outcome.code == 2
    assert outcome.error[1] == "Name it, for example, a.png."
