import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.cli import evaluate
from regard.cli import outputs as module
from regard.errors import TrainingError
from regard.tasks import class_evaluation


def test_scores_with_signatures(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("evaluate", trained, "--data", *corpus, "--output", "out.de")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.lines] == ["score", "BLEU", "chrF", "TER", "perplexity"]
    assert "tok:13a" in outcome.lines[1]
    assert outcome.err.startswith(f"{trained} (average-00000120): 90 sentences, ")
    assert len(Path("out.de").read_text().splitlines()) == 90


def test_the_output_keeps_a_line_for_a_pair_that_is_left_out(command: Any, trained: Path) -> None:
    Path("t.en").write_bytes(b"a dog\n\xe9\nthe man\n")
    Path("t.de").write_text("Hund ein\nHund\nMann der\n")
    data = ("--data", "t.en", "t.de", "--on-bad", "keep-going")
    outcome = command("evaluate", trained, *data, "--output", "out.de")
    first, left_out, last = Path("out.de").read_text().splitlines()
    assert (bool(first), left_out, bool(last)) == (True, "", True)
    assert "note: out.de has an empty line for each pair left out, so that it stays aligned" in outcome.err
    assert ": 2 sentences, " in outcome.err
    assert "stays aligned" not in command("evaluate", trained, *data).err


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
    assert (wrong.code, wrong.error) == (1, ["error: test.tsv has no column 'dd'.", "Available: de, en, fr."])


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


# Labels

NOT_BEATEN = (
    "The model does not beat a simple baseline: it has accuracy 75.0 %, and naive Bayes has accuracy 75.0 %.",
    "What may help: more data, more steps, a smaller model or --init from a pre-trained encoder.",
)


@pytest.fixture
def table() -> str:
    """Four rows, the last of which has a label that no text of its kind has."""
    rows = ["a good dog,pos,test", "a dull song,neg,test", "a poor film,neg,dev", "a great day,neg,test"]
    Path("test.csv").write_text("".join(f"{row}\n" for row in ("text,label,part", *rows)))
    return "test.csv"


def test_classes_with_their_confusion(command: Any, classify_run: Path, table: str) -> None:
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text")
    assert outcome.code == 0
    assert outcome.err.startswith(f"{classify_run} (step-00000040): 4 texts, ")
    assert [line.split()[0] for line in outcome.lines[:4]] == ["score", "loss", "accuracy", "macro"]
    assert outcome.lines[0].split() == ["score", "value", "majority", "class", "naive", "Bayes", "signature"]
    assert outcome.lines[2].split() == ["accuracy", "75.00", "25.00", "75.00", "examples:4"]
    assert outcome.lines[4:9] == [
        "",
        "class             precision  recall     F1  examples",
        "neg                  100.00   66.67  80.00         3",
        "pos                   50.00  100.00  66.67         1",
        "micro average         75.00   75.00  75.00         4",
    ]
    assert outcome.lines[-3:] == [
        "expected \\ predicted  neg  pos",
        "neg                     2    1",
        "pos                     0    1",
    ]


def test_classes_as_json(command: Any, classify_run: Path, table: str) -> None:
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text", "--json")
    found = json.loads(outcome.out)
    assert (found["texts"], found["labels"], found["confusion"]) == (4, ["neg", "pos"], [[2, 1], [0, 1]])
    assert set(found["scores"]) == {"loss", "accuracy", "macro_f1"}
    assert found["scores"]["accuracy"] == {"value": 75.0, "signature": "examples:4"}
    assert found["baselines"].keys() == {"majority class", "naive Bayes"}
    assert found["baselines"]["majority class"].keys() == {"loss", "accuracy", "macro_f1"}
    assert found["baselines"]["majority class"]["accuracy"] == 25.0
    assert found["advice"] == list(NOT_BEATEN)


def test_a_model_that_does_not_beat_its_baseline_is_told_so(command: Any, classify_run: Path, table: str) -> None:
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text")
    assert outcome.err.splitlines()[-2:] == list(NOT_BEATEN)


@pytest.mark.parametrize("damage", [True, False])
def test_a_run_without_its_baseline_is_scored_all_the_same(
    command: Any, classify_run: Path, table: str, tmp_path: Path, damage: bool
) -> None:
    run = shutil.copytree(classify_run, tmp_path / "run")
    file = run / "baseline.safetensors"
    file.unlink()
    if damage:
        file.write_bytes(b"nothing")
    outcome = command("evaluate", run, "--data", table, "--text", "text")
    assert outcome.code == 0
    assert outcome.lines[0].split() == ["score", "value", "signature"]
    assert outcome.lines[2].split() == ["accuracy", "75.00", "examples:4"]
    note = "note: No baseline stands beside the scores: "
    problem = f"{file} is damaged: SafetensorError, " if damage else "the run has no baseline.safetensors.\n"
    assert f"{note}{problem}" in outcome.err
    assert "does not beat" not in outcome.err
    assert "baselines" not in json.loads(command("evaluate", run, "--data", table, "--text", "text", "--json").out)


def test_a_large_confusion_is_for_programs(
    command: Any, classify_run: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_evaluation, "MAX_CLASSES", 1)
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text")
    assert "expected" not in outcome.out
    assert "note: the confusion matrix of 2 classes is in --json and --picture\n" in outcome.err


def test_the_confusion_matrix_is_drawn(command: Any, classify_run: Path, table: str) -> None:
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text", "--picture", "c.png")
    assert outcome.code == 0
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")
    assert "drawn: c.png" in outcome.err.splitlines()
    wrong = command("evaluate", classify_run, "--data", table, "--picture", "c.jpg")
    assert (wrong.code, wrong.error[0]) == (2, "error: A picture is written as .pdf, .png, .svg, not as '.jpg'.")


def test_metrics_of_generated_text(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    flags = ("--data", *corpus, "--beam", 1, "--json")
    found = json.loads(command("evaluate", trained, *flags, "--metrics", "exact_match,wer,cer").out)
    assert set(found["scores"]) == {"exact_match", "wer", "cer", "perplexity"}
    wrong = command("evaluate", trained, *flags, "--metrics", "bleu,were")
    assert (wrong.code, wrong.error[1]) == (2, "Did you mean wer?")


def test_splits_of_a_table(command: Any, classify_run: Path, table: str) -> None:
    def count(*options: str) -> int:
        return int(json.loads(command("evaluate", classify_run, "--data", table, *options, "--json").out)["texts"])

    assert count("--split-column", "part") == 3
    assert count("--split-column", "part", "--split", "valid") == 1
    assert count("--split-column", "part", "--split", "all") == 4
    outcome = command("evaluate", classify_run, "--data", table, "--text", "text", "--split", "test")
    assert (outcome.code, outcome.error[1]) == (2, "Name the column with --split-column.")


def test_what_was_expected_and_predicted_is_written(
    command: Any, classify_run: Path, tag_run: Path, regress_run: Path, table: str
) -> None:
    assert command("evaluate", classify_run, "--data", table, "--text", "text", "--output", "out.tsv").code == 0
    written = [line.split("\t") for line in Path("out.tsv").read_text().splitlines()]
    assert [cells[:2] for cells in written] == [["pos", "pos"], ["neg", "neg"], ["neg", "neg"], ["neg", "pos"]]
    Path("t.conll").write_text("Anna B-PER\nvisits O\nOslo O\n\nBen B-PER\n")
    assert command("evaluate", tag_run, "--data", "t.conll", "--output", "out.conll").code == 0
    lines = Path("out.conll").read_text().splitlines()
    assert lines == ["Anna\tB-PER\tB-PER", "visits\tO\tO", "Oslo\tO\tB-LOC", "", "Ben\tB-PER\tB-PER", ""]
    Path("n.csv").write_text("sequence,fitness\nAAAA,4\nDDDD,0\n")
    assert command("evaluate", regress_run, "--data", "n.csv", "--output", "out.txt").code == 0
    assert [line.split("\t")[0] for line in Path("out.txt").read_text().splitlines()] == ["4", "0"]


def test_tags_numbers_and_hidden_words(command: Any, tag_run: Path, regress_run: Path, mask_run: Path) -> None:
    Path("t.conll").write_text("Anna B-PER\nvisits O\nOslo B-LOC\n")
    lines = command("evaluate", tag_run, "--data", "t.conll").lines
    assert [line.split("  ")[0] for line in lines[:6]] == [
        *("score", "loss", "accuracy", "entity F1", "entity precision", "entity recall")
    ]
    assert [line.split()[0] for line in lines[7:10]] == ["class", "LOC", "PER"]
    Path("n.csv").write_text("sequence,fitness\nAAAA,4\nDDDD,0\n")
    scores = command("evaluate", regress_run, "--data", "n.csv").lines
    assert [line.split("  ")[0] for line in scores] == ["score", "loss", "Spearman", "R²", "MAE"]
    assert scores[2].split()[1] == "1.0000"
    Path("t.txt").write_text("the dog is good today .\n" * 4)
    scores = command("evaluate", mask_run, "--data", "t.txt").lines
    assert [line.split("  ")[0] for line in scores] == ["score", "loss", "perplexity", "masked accuracy"]


def test_what_has_no_score_is_a_dash(command: Any, regress_run: Path) -> None:
    Path("n.csv").write_text("sequence,fitness\nAAAA,4\nDDDD,4\n")
    assert command("evaluate", regress_run, "--data", "n.csv").lines[2].split()[:2] == ["Spearman", "—"]
    found = json.loads(command("evaluate", regress_run, "--data", "n.csv", "--json").out)
    assert found["scores"]["spearman"]["value"] is None


def test_options_of_other_tasks_are_refused_before_anything_is_loaded(
    command: Any, classify_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "load_runs", lambda runs, threads: pytest.fail("loaded before it was refused"))
    outcome = command("evaluate", classify_run, "--data", "x.csv", "--by-length")
    assert (outcome.code, outcome.error) == (
        2,
        ["error: --by-length does not apply to classify runs.", "Leave it out."],
    )
