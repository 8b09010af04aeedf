from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import plot


def test_a_picture(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--output", "pictures/a.png")
    assert (outcome.code, outcome.out) == (0, "pictures/a.png\n")
    assert Path("pictures/a.png").read_bytes().startswith(b"\x89PNG")


def test_of_very_many_updates_some_are_drawn(command: Any, language_run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "MOST_UPDATES", 3)
    outcome = command("plot", language_run)
    assert (outcome.code, outcome.out) == (0, "curves.png\n")
    assert outcome.err == f"note: {language_run}: one of every 4 updates is drawn\n"


def test_curves_of_several_runs(command: Any, trained: Path, language_run: str) -> None:
    outcome = command("plot", trained, language_run)
    assert (outcome.code, outcome.out) == (0, "curves.png\n")
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")


def test_scores_by_name(command: Any, trained: Path) -> None:
    outcome = command("plot", trained, "--score", "bleu,chrf", "--output", "a.svg")
    assert (outcome.code, outcome.out) == (0, "a.svg\n")
    refused = command("plot", trained, "--score", "blue")
    assert refused.error == ["error: No run has recorded the score 'blue'.", "Did you mean bleu?"]
    refused = command("plot", trained, "--score", "bleu", "--gradients")
    assert refused.error[0] == "error: --score is of learning curves."


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


def test_positions(command: Any, language_run: str) -> None:
    outcome = command("plot", "--positions", "sinusoidal", "--length", 20, "--width", 16)
    assert (outcome.code, outcome.out) == (0, "positions.png\n")
    assert Path("positions.png").read_bytes().startswith(b"\x89PNG")
    outcome = command("plot", language_run, "--positions", "learned", "--output", "a.svg")
    assert (outcome.code, outcome.out) == (0, "a.svg\n")
    assert language_run.rpartition("/")[2] in Path("a.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--positions", "rotray"], ["error: There are no positions 'rotray' to draw.", "Did you mean rotary?"]),
        (
            ["--positions", "learned"],
            ["error: learned positions are those of a run.", "Name one: regard plot RUN --positions learned"],
        ),
        (
            ["--positions", "rotary", "--width", "7"],
            ["error: Rotary positions need heads of even width, not 7.", "Change d_model or n_heads."],
        ),
        (
            ["--positions", "index", "--length", "0"],
            ["error: --length must be at least 2, not 0.", "Correct --length and run the command again."],
        ),
        (
            ["--positions", "index", "--width", "100000000"],
            [
                "error: --width must be at least 2 and at most 4,096, not 100000000.",
                "Correct --width and run the command again.",
            ],
        ),
        (
            ["--length", "9"],
            ["error: --length and --width are of a positional encoding.", "Say which: --positions sinusoidal"],
        ),
        (
            ["--gradients", "--positions", "index"],
            ["error: --gradients and --positions are two pictures.", "Leave one of them out."],
        ),
    ],
)
def test_positions_that_cannot_be_drawn(command: Any, arguments: list[str], error: list[str]) -> None:
    outcome = command("plot", *arguments)
    assert outcome.code in (1, 2)
    assert outcome.error == error
