import json
from pathlib import Path
from typing import Any

import pytest

from regard.cli import evaluate as module
from regard.errors import TrainingError


def test_scores_with_signatures(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("evaluate", trained, "--data", *corpus, "--output", "out.de")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.lines] == ["score", "BLEU", "chrF", "TER", "perplexity"]
    assert "tok:13a" in outcome.lines[1]
    assert outcome.err.startswith(f"{trained} (average-00000120): 90 sentences, ")
    assert len(Path("out.de").read_text().splitlines()) == 90


def test_json(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    flags = ("--tokenize", "none", "--lowercase", "--beam", 1, "--json")
    outcome = command("evaluate", f"{trained}@40", "--data", *corpus, *flags)
    found = json.loads(outcome.out)
    assert (found["checkpoint"], found["sentences"]) == ("step-00000040", 90)
    assert found["sentences_per_second"] > 0
    assert set(found["scores"]) == {"bleu", "chrf", "ter", "perplexity"}
    assert "case:lc" in found["scores"]["bleu"]["signature"]
    assert "tok:none" in found["scores"]["bleu"]["signature"]


def test_scores_by_length(command: Any, trained: Path, tmp_path: Path) -> None:
    sides = tmp_path / "t.en", tmp_path / "t.de"
    for side in sides:
        side.write_text("a dog\n" * 2 + "dog " * 12 + "\n")
    outcome = command("evaluate", trained, "--data", *sides, "--by-length")
    assert [line.split()[:2] for line in outcome.lines[-3:]] == [["source", "words"], ["0-9", "2"], ["10-19", "1"]]
    outcome = command("evaluate", trained, "--data", *sides, "--by-length", "--json")
    buckets = json.loads(outcome.out)["by_length"]
    assert [(one["words"], one["sentences"]) for one in buckets] == [("0-9", 2), ("10-19", 1), ("20-29", 0), ("30+", 0)]
    assert set(buckets[0]) == {"words", "sentences", "bleu", "chrf"}


def test_languages_of_a_file_that_holds_several(command: Any, trained: Path) -> None:
    Path("test.tsv").write_text("de\tfr\ten\nHund ein\tx\ta dog\n")
    outcome = command("evaluate", trained, "--data", "test.tsv", "--from", "en", "--to", "de", "--json")
    assert json.loads(outcome.out)["sentences"] == 1
    wrong = command("evaluate", trained, "--data", "test.tsv", "--from", "en", "--to", "dd")
    assert (wrong.code, wrong.error) == (1, ["error: test.tsv has no column 'dd'.", "There is: de, en, fr."])


def test_mistakes_are_told_before_translating(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    tokenizer = command("evaluate", trained, "--data", *corpus, "--tokenize", "13b")
    assert (tokenizer.code, tokenizer.error) == (2, ["error: BLEU has no tokenizer '13b'.", "Did you mean 13a?"])
    output = command("evaluate", trained, "--data", *corpus, "--output", "none/out.de")
    assert output.code == 2
    assert output.error == [
        "error: none/out.de cannot be written: No such file or directory.",
        "Name another file with --output.",
    ]
    Path("short.de").write_text("Hund\n")
    aligned = command("evaluate", trained, "--data", corpus[0], "short.de")
    assert aligned.code == 1
    assert aligned.error[0] == f"error: {corpus[0]} has 90 lines, but short.de has 1: they are not aligned."


def test_what_the_output_held_stays_until_there_is_new(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    Path("out.de").write_text("an old translation\n")
    assert command("evaluate", trained, "--data", corpus[0], "missing.de", "--output", "out.de").code == 1
    assert Path("out.de").read_text() == "an old translation\n"
    assert command("evaluate", trained, "--data", corpus[0], "missing.de", "--output", "new.de").code == 1
    assert [path.name for path in Path().iterdir()] == ["out.de"]


def test_a_test_set_is_not_written_over(command: Any, trained: Path) -> None:
    for name in ("t.en", "t.de"):
        Path(name).write_text("a dog\n")
    Path("link.de").symlink_to("t.de")
    for output in ("t.de", "./t.en", "link.de"):
        outcome = command("evaluate", trained, "--data", "t.en", "t.de", "--output", output)
        assert (outcome.code, outcome.error) == (
            2,
            [f"error: {output} is a file of the test set.", "Name another file with --output."],
        )
    assert Path("t.de").read_text() == "a dog\n"


def test_a_folder_is_no_output(command: Any, trained: Path, corpus: tuple[str, str], tmp_path: Path) -> None:
    outcome = command("evaluate", trained, "--data", *corpus, "--output", tmp_path)
    assert (outcome.code, outcome.error) == (
        2,
        [f"error: {tmp_path} is a folder.", "Name another file with --output."],
    )


def test_a_link_and_a_device_stay_what_they_are(command: Any, trained: Path) -> None:
    for name in ("t.en", "t.de"):
        Path(name).write_text("a dog\n")
    Path("place.de").write_text("old\n")
    Path("link.de").symlink_to("place.de")
    assert command("evaluate", trained, "--data", "t.en", "t.de", "--output", "link.de").code == 0
    assert Path("link.de").is_symlink()
    assert Path("place.de").read_text() != "old\n"
    Path("null").symlink_to("/dev/null")
    assert command("evaluate", trained, "--data", "t.en", "t.de", "--output", "null").code == 0
    assert Path("/dev/null").is_char_device()


def test_scores_are_not_lost_with_the_output(command: Any, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("t.en", "t.de"):
        Path(name).write_text("a dog\n")

    def full(path: Path, content: bytes) -> None:
        raise TrainingError("The disk is full.", "Free some space.")

    monkeypatch.setattr(module, "write_atomically", full)
    outcome = command("evaluate", trained, "--data", "t.en", "t.de", "--output", "out.de")
    assert (outcome.code, outcome.error) == (1, ["error: The disk is full.", "Free some space."])
    assert outcome.lines[1].startswith("BLEU")
