"""`regard export`: what it says, and how it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest


def test_a_run_is_exported(command: Any, trained: Path, tmp_path: Path) -> None:
    outcome = command("export", trained, "--to", "huggingface", "out/mine")
    assert outcome.code == 0
    assert outcome.out == ""
    assert outcome.err == (
        "note: Written as PegasusForConditionalGeneration.\n"
        "note: Sinusoids are written as a table of 1,024 positions.\n"
        "written: out/mine\n"
    )
    assert (tmp_path / "out" / "mine" / "config.json").is_file()
    again = command("export", trained, "--to", "huggingface", "out/mine")
    assert again.code == 2
    assert again.error == ["error: out/mine is already there.", "Give a new name."]


def test_facts_as_json(command: Any, trained: Path) -> None:
    outcome = command("export", trained, "out", "--to", "safetensors", "--json")
    assert json.loads(outcome.out) == {"run": str(trained), "to": "safetensors", "out": "out", "notes": []}
    assert outcome.err == ""


def test_types_of_numbers(command: Any, trained: Path, tmp_path: Path) -> None:
    for name, flags in {"plain": [], "int8": ["--int8"], "type": ["--type", "int8"]}.items():
        assert command("export", trained, name, "--to", "ctranslate2", *flags).code == 0
    plain, int8, by_type = ((tmp_path / name / "model.bin").read_bytes() for name in ("plain", "int8", "type"))
    assert len(int8) < len(plain)
    assert int8 == by_type


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["out"], ["An export needs --to KIND.", "Give one of: huggingface, ctranslate2, onnx, argos, safetensors."]),
        (["out", "--to", "onx"], ["There is no export to 'onx'.", "Did you mean onnx?"]),
        (["--to", "onnx"], ["regard export needs OUT.", "See: regard export --help"]),
        (
            ["out", "--to", "ctranslate2", "--type", "int-8"],
            ["There is no compute type 'int-8'.", "Did you mean int8?"],
        ),
        (
            ["out", "--to", "ctranslate2", "--type", "float32", "--int8"],
            ["--int8 and --type float32 exclude each other.", "Leave one of them out."],
        ),
        (
            ["out", "--to", "huggingface", "--int8"],
            ["--int8 does not apply to --to huggingface.", "Leave it out, or export to ctranslate2 or argos."],
        ),
        (
            ["out", "--to", "onnx", "--type", "int8"],
            ["--type does not apply to --to onnx.", "Leave it out, or export to ctranslate2 or argos."],
        ),
        (
            ["out", "--to", "huggingface", "--prove", "a.en", "a.de"],
            [
                "--prove is for quantised weights, and these stay float32.",
                "Leave it out, or quantise them: --to ctranslate2 or argos --int8.",
            ],
        ),
        (
            ["out", "--to", "ctranslate2", "--int8", "--prove", "a.en", "a.de", "--tolerance", "nan"],
            ["--tolerance must be a number of BLEU, not nan.", "Give one such as 0.5."],
        ),
        (
            ["out", "--to", "argos", "--shortlist"],
            ["--shortlist does not apply to --to argos.", "Leave it out, or export to ctranslate2."],
        ),
        (
            ["out", "--to", "ctranslate2", "--source-language", "en"],
            ["--source-language does not apply to --to ctranslate2.", "Leave it out, or export to argos."],
        ),
    ],
)
def test_what_is_refused(given: list[str], error: list[str], command: Any, trained: Path, tmp_path: Path) -> None:
    outcome = command("export", trained, *given)
    assert outcome.code == 2
    assert outcome.error == [f"error: {error[0]}", error[1]]
    assert not list(tmp_path.glob("out*"))


def test_a_run_that_there_is_not(command: Any, tmp_path: Path) -> None:
    outcome = command("export", "nothing", "out", "--to", "safetensors")
    assert outcome.code == 1
    assert outcome.error[0] == "error: nothing is not a run: there is no such folder."


def test_help(command: Any) -> None:
    outcome = command("export", "--help")
    words = " ".join(outcome.out.replace("│", " ").split())
    assert "Usage: regard export RUN OUT --to KIND [OPTIONS]" in words
    assert "huggingface: a folder that Hugging Face's transformers loads; ctranslate2: a CTranslate2 model" in words
    assert "--int8 the same as --type int8" in words
