"""`--picture` of translate, generate and predict: the attention to one text."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def runs(
    trained: Path, language_run: str, classify_run: Path, tag_run: Path, mask_run: Path, denoise_run: Path
) -> dict[str, tuple[str, object, str]]:
    return {
        "translate": ("translate", trained, "the dog runs"),
        "language": ("generate", language_run, "the dog"),
        "classify": ("predict", classify_run, "a fine day"),
        "tag": ("predict", tag_run, "Anna visits Rome"),
        "mask": ("predict", mask_run, "the [MASK] is good today ."),
        "denoise": ("predict", denoise_run, "the [MASK] is good today ."),
    }


@pytest.mark.parametrize("task", ["translate", "language", "classify", "tag", "mask", "denoise"])
def test_a_picture_beside_what_is_said(command: Any, runs: dict[str, tuple[str, object, str]], task: str) -> None:
    name, run, text = runs[task]
    ours = ("--engine", "torch") if name != "predict" else ()  # without a line about the engine
    plain = command(name, run, text, *ours)
    drawn = command(name, run, text, *ours, "--picture", "map.svg")
    assert (drawn.code, drawn.out, drawn.err) == (0, plain.out, "drawn: map.svg\n")
    assert text.split()[-1] in Path("map.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["a dog", "a cat", "--picture", "a.png"],
            ["error: --picture shows the attention to one text, and 2 are given.", "Give one on the command line."],
        ),
        (
            ["--picture", "a.png"],
            ["error: --picture shows the attention to one text, and none is given.", "Give one on the command line."],
        ),
        (
            ["a dog", "--picture", "a.gif"],
            ["error: A picture is written as .pdf, .png, .svg, not as '.gif'.", "Name it, for example, a.png."],
        ),
        (
            ["A dog runs. The cat.", "--picture", "a.png"],
            [
                "error: The text was translated in 2 parts, and one is looked into at a time.",
                "Give one sentence.",
            ],
        ),
    ],
)
def test_what_cannot_be_drawn(command: Any, trained: Path, arguments: list[str], error: list[str]) -> None:
    outcome = command("translate", trained, *arguments)
    assert outcome.code == 2
    assert outcome.error == error
    assert not Path("a.png").exists()
