"""`regard generate` and the other commands on a language model."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import main
from regard.cli.terminal import Stages
from regard.decoding import memory


@pytest.fixture(scope="module")
def run(language_run: str) -> str:
    return language_run


def test_text_follows_the_prompt(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", run, "the dog", "--max-length", "9", "--seed", "3"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("the dog")
    assert first.endswith("\n")
    assert main(["generate", run, "the dog", "--max-length", "9", "--seed", "3"]) == 0
    assert capsys.readouterr().out == first


def test_standard_input_is_one_prompt(command: Any, run: str) -> None:
    flags = ("--max-length", 9, "--seed", 3)
    given = command("generate", run, "the\ndog", *flags)
    # A byte order mark, a Windows line end; the last line end is no part of the prompt.
    assert command("generate", run, *flags, stdin="\ufeffthe\r\ndog\n".encode()).out == given.out
    assert command("generate", run, *flags, stdin=b"the\ndog").out == given.out
    assert command("generate", run, *flags, stdin=b"the\ndog\n\n").out.startswith("the\ndog\n")
    asked = command("generate", run, "a", *flags, stdin=b"the dog\n")
    assert asked.out.startswith("a"), "a prompt that is given comes first"


def test_help_says_what_standard_input_is(command: Any) -> None:
    shown = " ".join(command("generate", "--help").out.replace("│", " ").split())
    assert "standard input is not a terminal, all of standard input is one prompt" in shown


def test_an_empty_standard_input_begins_a_document(command: Any, run: str) -> None:
    flags = ("--max-length", 9, "--seed", 3)
    assert command("generate", run, *flags, stdin=b"").out == command("generate", run, "", *flags).out


def test_at_a_keyboard_nothing_is_waited_for(
    run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Keyboard(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard(io.BytesIO(b"the dog\n")))
    assert main(["generate", run, "--max-length", "9", "--seed", "3"]) == 0
    from_nothing = capsys.readouterr()
    assert main(["generate", run, "", "--max-length", "9", "--seed", "3"]) == 0
    assert capsys.readouterr() == from_nothing


def test_other_encodings_are_refused(command: Any, run: str) -> None:
    outcome = command("generate", run, stdin=b"a dog\na caf\xe9\n")
    assert outcome.code == 1
    assert outcome.error[0] == r"error: standard input, line 2: not UTF-8 ('a caf\xe9')."


def test_a_prompt_in_another_encoding_is_answered_with_an_empty_line(command: Any, run: str) -> None:
    flags = ("--lines", "--max-length", 5)
    first, _, last = command("generate", run, *flags, stdin=b"the\n\nthe\n").lines
    outcome = command("generate", run, *flags, stdin=b"the\ncaf\xe9\nthe\n")
    assert (outcome.code, outcome.lines) == (0, [first, "", last])
    bad = command("generate", run, *flags, "--json", stdin=b"the\ncaf\xe9\n").lines[1]
    assert json.loads(bad) == {"line": 2, "problem": "not UTF-8"}
    refused = command("generate", run, "the", "--on-bad", "stop")
    assert (refused.code, refused.error[0]) == (2, "error: --on-bad is for prompts that --lines reads.")


def test_several_texts_need_chance(command: Any, run: str) -> None:
    outcome = command("generate", run, "the", "--temperature", 0, "--samples", 2)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error == [
        "error: 2 texts for each prompt are asked for, and without chance they would all be equal.",
        "Ask for one, draw at random with a temperature above 0 and no top_k of 1, or search with a beam of 2 or more.",
    ]
    assert command("generate", run, "the", "--beam", 2, "--samples", 2, "--max-length", 4).code == 0


def test_a_beam_searches_although_the_run_samples(command: Any, run: str) -> None:
    searched = command("generate", run, "the", "--beam", 2, "--max-length", 6)
    assert searched.code == 0
    assert command("generate", run, "the", "--beam", 2, "--max-length", 6, "--seed", 9).out == searched.out
    sampled = {command("generate", run, "the", "--beam", 2, "--sample", "--seed", n).out for n in range(4)}
    assert len(sampled) > 1


def test_unknown_characters_of_a_prompt_are_told(command: Any, run: str) -> None:
    flags = ("--max-length", 3, "--engine", "torch")
    assert command("generate", run, "the", *flags).err == ""
    outcome = command("generate", run, "thé ÄÖ", *flags)
    assert outcome.err == "note: not in the vocabulary: 'é', 'Ä', 'Ö'\n"
    many = command("generate", run, "ÀÁÂ\x07", "ÃÄÅÆ", *flags)
    told = r"note: not in the vocabulary: 'À', 'Á', 'Â', '\x07', 'Ã' and 3 more"
    assert many.err == f"{told}\n"
    found = [json.loads(line) for line in command("generate", run, "thé", "the", *flags, "--json").lines]
    assert [one["unknown"] for one in found] == [["é"], []]


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
        (["--samples", "0"], "--samples must be at least 1, not 0."),
        (["--samples", "100000"], "--samples must be at least 1 and at most 1,000, not 100000."),
        (["--top-p", "0"], "--top-p must be above 0, not 0.0."),
        (["--top-p", "1.5"], "--top-p must be at most 1 and above 0, not 1.5."),
        (["--temperature", "-1"], "--temperature must be at least 0, not -1.0."),
        (["--max-length", "100000"], "--max-length must be at least 0 and at most 32,768, not 100000."),
        (["--seed", str(2**63)], f"--seed must be at least 0 and at most {2**63 - 1:,}, not {2**63}."),
    ],
)
def test_wrong_numbers_are_told(
    run: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", run, "the", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"error: {problem}")


def test_nothing_is_printed_of_a_text_that_cannot_be_begun(
    run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 1000)
    assert main(["generate", run, "the", "--engine", "torch"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: 1 × 1 hypotheses of up to 128 tokens need about 0.0 GB of memory")


def test_a_translator_does_not_generate(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(trained), "a dog"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {trained} is a Translator, not a LanguageModel: it was trained for the task 'translate'.",
        f"Use it with: regard translate {trained}",
    ]


def test_a_language_model_is_evaluated(run: str, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", run, "--data", corpus[0]]) == 0
    out = capsys.readouterr().out
    assert [line.split("  ")[0] for line in out.splitlines()[1:]] == ["loss", "perplexity", "bits per byte"]
    assert main(["evaluate", run, "--data", corpus[0], "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["scores"]) == {"loss", "perplexity", "bits_per_byte"}


def test_an_empty_record_is_left_out_and_told(command: Any, run: str) -> None:
    Path("test.jsonl").write_text('{"text": "the dog"}\n{"text": ""}\n')
    strict = command("evaluate", run, "--data", "test.jsonl")
    assert strict.code == 1
    assert strict.error == [
        "error: 1 of 2 lines are bad (50.0%, at most 1% may be): 1 no text. First: test.jsonl:2 (no text).",
        "Fix the files, or leave the bad lines out with --on-bad keep-going.",
    ]
    outcome = command("evaluate", run, "--data", "test.jsonl", "--on-bad", "keep-going")
    assert outcome.code == 0
    assert "note: Left out: 1 bad line, no text: test.jsonl:2." in outcome.err.splitlines()
    found = command("evaluate", run, "--data", "test.jsonl", "--on-bad", "keep-going", "--json")
    assert json.loads(found.out)["notes"] == ["Left out: 1 bad line, no text: test.jsonl:2."]
    Path("many.jsonl").write_text('{"text": "the dog"}\n' * 200 + '{"text": ""}\n')
    assert command("evaluate", run, "--data", "many.jsonl").code == 0


def test_encoding_is_shown_too(command: Any, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Stages, "__call__", lambda self, what, done: told.append(f"{what} {self.others.get(what)}"))
    Path("new.txt").write_text("the dog sees the cat\n" * 3)
    assert command("evaluate", run, "--data", "new.txt").code == 0
    assert set(told) == {"encoding lines", "reading None"}


def test_a_language_model_is_shown_and_plotted(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run]) == 0
    out = capsys.readouterr().out
    assert "bits per byte" in out
    assert "BLEU" not in out
    assert main(["plot", run, "--output", str(tmp_path / "curves.png")]) == 0
    assert (tmp_path / "curves.png").stat().st_size > 0
