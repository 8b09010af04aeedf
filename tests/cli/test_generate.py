"""`regard generate` and the other commands on a language model."""

import json
from pathlib import Path

import pytest

from regard.cli.main import main

SETTINGS = [
    "tokenizer.kind=characters",
    "model.n_layers=1",
    "model.n_heads=2",
    "model.d_model=16",
    "model.context=16",
    "training.batch_tokens=64",
    "runtime.threads=1",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, corpus: tuple[str, str]) -> str:
    folder = tmp_path_factory.mktemp("language") / "run"
    sets = [part for setting in SETTINGS for part in ("--set", setting)]
    assert main(["train", "language", "--train", corpus[0], "--steps", "12", "--run", str(folder), *sets]) == 0
    return str(folder)


def test_text_follows_the_prompt(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", run, "the dog", "--max-length", "9", "--seed", "3"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("the dog")
    assert first.endswith("\n")
    assert main(["generate", run, "the dog", "--max-length", "9", "--seed", "3"]) == 0
    assert capsys.readouterr().out == first


def test_several_texts_are_numbered(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", run, "the", "a", "--samples", "2", "--max-length", "5"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("---")] == ["--- 1", "--- 2", "--- 3", "--- 4"]


def test_json_has_the_probabilities(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", run, "the", "--samples", "2", "--max-length", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prompt"] == "the"
    for one in found["continuations"]:
        assert "".join(token["text"] for token in one["tokens"]) == one["text"]
        assert all(0 < token["probability"] <= 1 for token in one["tokens"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--samples", "0"], "--samples is at least 1, not 0."),
        (["--temperature", "-1"], "The temperature must not be below 0, but it is -1.0."),
        (["--top-p", "0"], "top_p must be above 0 and at most 1, but it is 0.0."),
    ],
)
def test_wrong_numbers_are_told(
    run: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", run, "the", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_translator_does_not_generate(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(trained), "a dog"]) == 2
    assert "was trained for the task 'translate', not for language modelling." in capsys.readouterr().err


def test_a_language_model_is_evaluated(run: str, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", run, "--data", corpus[0]]) == 0
    out = capsys.readouterr().out
    assert [line.split("  ")[0] for line in out.splitlines()[1:]] == ["loss", "perplexity", "bits per byte"]
    assert main(["evaluate", run, "--data", corpus[0], "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["scores"]) == {"loss", "perplexity", "bits_per_byte"}
    assert main(["evaluate", run, "--data", corpus[0], "--by-length"]) == 2
    assert "--by-length is for translations" in capsys.readouterr().err
    assert main(["evaluate", run, "--data", corpus[0], "--beam", "3"]) == 2
    assert "--beam is for translations" in capsys.readouterr().err


def test_a_language_model_is_shown_and_plotted(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run]) == 0
    out = capsys.readouterr().out
    assert "bits per byte" in out
    assert "BLEU" not in out
    assert main(["compare", run, run, "--data", "none.txt"]) == 2
    assert "was trained for the task 'language', not for translation." in capsys.readouterr().err
    assert main(["plot", run, "--output", str(tmp_path / "curves.png")]) == 0
    assert (tmp_path / "curves.png").stat().st_size > 0
