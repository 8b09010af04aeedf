"""`regard embed`: vectors as JSON lines, or as an array."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.cli import lines

TEXTS = ("a good dog", "a dull song")


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
    outcome = command("embed", classify_run, stdin=b"a good dog\ncaf\xe9\n")
    assert json.loads(outcome.lines[1]) == {"text": "", "vector": [0.0] * 32, "problem": "not UTF-8"}
    assert outcome.err.startswith("note: answered with an empty line: 1 bad line, not UTF-8: standard input:2 ")
    assert command("embed", classify_run, "--on-bad", "stop", stdin=b"caf\xe9\n").code == 1


def test_a_vector_a_word(command: Any, classify_run: Path) -> None:
    found = json.loads(command("embed", classify_run, "a good dog", "--tokens").out)
    assert list(found) == ["text", "words", "vectors"]
    assert found["words"] == ["a", "good", "dog"]
    assert np.array(found["vectors"]).shape == (3, 32)


def test_words_as_an_array(command: Any, classify_run: Path) -> None:
    outcome = command("embed", classify_run, *TEXTS, "", "--tokens", "--output", "words.npy")
    assert (outcome.code, outcome.lines) == (0, [])
    assert outcome.err == "6 vectors of 32 numbers: words.npy\n"
    expected = regard.load(classify_run, threads=1).embed(TEXTS, tokens=True)
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
    outcome = command("embed", classify_run, *TEXTS, "--output", "v.npy")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "2 vectors of 32 numbers: v.npy\n"
    found = np.load("v.npy")
    assert (found.shape, found.dtype) == ((2, 32), np.float32)
    assert np.array_equal(found[1], regard.load(classify_run, threads=1).embed(TEXTS)[1].vector)
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
    outcome = command("embed", classify_run, "a dog", "a good dog " * 20)
    assert outcome.err == "note: longer than the model reads at once, cut at the end: line 2\n"
    Path("a.txt").write_text("a dog\n")
    outcome = command("embed", classify_run, "a.txt")
    assert outcome.err == (
        "note: 'a.txt' is read as text, but a file has that name. For its content: < a.txt for its lines\n"
    )
