"""`regard embed`: vectors as JSON lines, or as an array."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.cli import lines

TEXTS = ("a good dog", "a dull song")
OURS = ("--engine", "torch")  # without a line about the engine


def test_vectors_as_json_lines(command: Any, classify_run: Path) -> None:
    outcome = command("embed", classify_run, *TEXTS)
    assert outcome.code == 0
    found = [json.loads(line) for line in outcome.lines]
    assert [list(one) for one in found] == [["text", "vector"]] * 2
    expected = regard.load(classify_run, threads=1).embed(TEXTS)
    for one, wanted in zip(found, expected, strict=True):
        assert one["text"] == wanted.text
        assert np.array_equal(np.array(one["vector"], np.float32), wanted.vector)


def test_standard_input_line_by_line(command: Any, classify_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = command("embed", classify_run, *TEXTS)
    monkeypatch.setattr(lines, "CHUNK", 1)
    assert command("embed", classify_run, stdin="\n".join(TEXTS).encode()).out == given.out
    empty = json.loads(command("embed", classify_run, stdin=b"\n").out)
    assert empty == {"text": "", "vector": [0.0] * 32}


def test_a_line_in_another_encoding_has_the_vector_of_an_empty_one(command: Any, classify_run: Path) -> None:
    outcome = command("embed", classify_run, *OURS, stdin=b"a good dog\ncaf\xe9\n")
    assert json.loads(outcome.lines[1]) == {"text": "", "vector": [0.0] * 32, "problem": "not UTF-8"}
    assert outcome.err.startswith("note: answered with an empty line: 1 bad line, not UTF-8: standard input:2 ")
    assert command("embed", classify_run, "--on-bad", "stop", stdin=b"caf\xe9\n").code == 1


def test_a_vector_a_word(command: Any, classify_run: Path) -> None:
    found = json.loads(command("embed", classify_run, "a good dog", "--tokens").out)
    assert list(found) == ["text", "words", "vectors"]
    assert found["words"] == ["a", "good", "dog"]
    assert np.array(found["vectors"]).shape == (3, 32)


def test_words_as_an_array(command: Any, classify_run: Path) -> None:
    outcome = command("embed", classify_run, *TEXTS, "", "--tokens", "--output", "words.npy", *OURS)
    assert (outcome.code, outcome.lines) == (0, [])
    assert outcome.err == "6 vectors of 32 numbers: words.npy\n"
    expected = regard.load(classify_run, threads=1, engine="torch").embed(TEXTS, tokens=True)
    assert np.array_equal(np.load("words.npy"), np.concatenate([one.word_vectors for one in expected]))


def test_poolings(command: Any, classify_run: Path, trained: Path) -> None:
    different = {
        command("embed", classify_run, "a good dog", "--pooling", how).out for how in ("mean", "class", "last")
    }
    assert len(different) == 3
    wrong = command("embed", classify_run, "a dog", "--pooling", "clas")
    assert (wrong.code, wrong.error) == (2, ["error: There is no pooling 'clas'.", "Did you mean class?"])
    without = command("embed", trained, "a dog", "--pooling", "class")
    assert (without.code, without.error[1]) == (
        2,
        "Take the mean or the last state: --pooling mean, --pooling last.",
    )


def test_an_array(command: Any, classify_run: Path, language_run: str) -> None:
    outcome = command("embed", classify_run, *TEXTS, "--output", "v.npy", *OURS)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "2 vectors of 32 numbers: v.npy\n"
    found = np.load("v.npy")
    assert (found.shape, found.dtype) == ((2, 32), np.float32)
    assert np.array_equal(found[1], regard.load(classify_run, threads=1, engine="torch").embed(TEXTS)[1].vector)
    assert command("embed", language_run, "a dog", "--output", "w.npy").code == 0
    assert np.load("w.npy").shape == (1, 16)


def test_mistakes(command: Any, classify_run: Path) -> None:
    cases = {
        ("a", "--output", "v.txt"): "--output writes a NumPy array, but 'v.txt' does not end in .npy.",
        ("a", "--output", "none/v.npy"): "none/v.npy cannot be written: No such file or directory.",
        ("--output", "v.npy"): "There is no text to embed.",
    }
    for options, problem in cases.items():
        outcome = command("embed", classify_run, *options)
        assert (outcome.code, outcome.error[0]) == (2, f"error: {problem}")


def test_what_is_cut_and_what_is_a_file_is_told(command: Any, classify_run: Path) -> None:
    outcome = command("embed", classify_run, "a dog", "a good dog " * 20, *OURS)
    assert outcome.err == "note: longer than the model reads at once, cut at the end: line 2\n"
    Path("a.txt").write_text("a dog\n")
    outcome = command("embed", classify_run, "a.txt", *OURS)
    assert outcome.err == (
        "note: 'a.txt' is read as text, but a file has that name. For its content: < a.txt for its lines\n"
    )


def test_a_line_says_which_engine_it_is(command: Any, classify_run: Path, tmp_path: Path) -> None:
    own = shutil.copytree(classify_run, tmp_path / "own", ignore=shutil.ignore_patterns("engines"))
    first = command("embed", own, *TEXTS)
    assert first.err.startswith("engine: CTranslate2, float32, converted into ")
    again = command("embed", own, *TEXTS)
    assert (again.err, again.out) == ("engine: CTranslate2, float32\n", first.out)
    assert command("embed", own, *TEXTS, "--int8").err.startswith("engine: CTranslate2, int8, converted into ")
    assert command("embed", own, *TEXTS, *OURS).err == ""


def test_networks_that_only_torch_has_say_so_where_the_engine_is_named(command: Any, language_run: str) -> None:
    assert command("embed", language_run, "a dog").err == ""
    named = command("embed", language_run, "a dog", "--engine", "ctranslate2")
    assert (named.code, named.err) == (0, "engine: our own network; CTranslate2 embeds by BERT alone\n")


def test_engines_are_refused_where_they_contradict(command: Any, classify_run: Path) -> None:
    wrong = command("embed", classify_run, "a dog", *OURS, "--int8")
    assert wrong.error == ["error: --int8 is for ctranslate2, and the engine is to be torch.", "Leave one out."]
    assert command("embed", classify_run, "a dog", "--shortlist").code == 2
