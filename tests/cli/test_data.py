import json
from pathlib import Path
from typing import Any


def test_check_reports_what_is_there(command: Any) -> None:
    Path("a.en").write_text("a dog\nthe cat\na dog\n\nsame\n")
    Path("a.de").write_text("ein Hund\ndie Katze\nein Hund\nleer\nsame\n")
    Path("t.en").write_text("the cat\nnew\n")
    Path("t.de").write_text("die Katze\nneu\n")
    outcome = command("data", "check", "a.en", "a.de", "--against", "t.en", "t.de")
    assert outcome.code == 0
    assert outcome.lines[:4] == [
        "pairs       4 good of 5",
        "duplicates  1 pairs occur earlier",
        "ambiguous   0 sources have several translations",
        "copied      1 targets equal their source",
    ]
    assert outcome.lines[5].split() == ["length", "mean", "median", "95", "%", "longest"]
    assert "1 bad pairs (20.00%)" in outcome.lines
    assert "  1 empty source" in outcome.lines
    assert "    a.en:4 leer" in outcome.lines
    assert "  1 of them (50.00%) occur in the training data" in outcome.lines
    assert "    t.en:1 = a.en:2 the cat" in outcome.lines


def test_json(command: Any, corpus: tuple[str, str]) -> None:
    found = json.loads(command("data", "check", *corpus, "--json").out)
    assert (found["n_pairs"], found["overlap"]) == (90, None)


def test_no_file(command: Any) -> None:
    outcome = command("data", "check")
    assert outcome.code == 1
    assert outcome.error[0] == "error: No file was given."


def test_other_data_is_checked_elsewhere(command: Any) -> None:
    Path("photos").mkdir()
    Path("captions.tsv").write_text("image\tcaption\na.jpg\tA dog.\n")
    Path("labels.csv").write_text("text,label\ngood,1\nbad,0\n")
    Path("words.conll").write_text("dog NOUN\n")
    for name, what, task in (
        ("photos", "a folder", "image"),
        ("captions.tsv", "a table of images", "caption"),
        ("labels.csv", "a table with labels", "classify"),
        ("words.conll", "a CoNLL file", "tag"),
    ):
        assert command("data", "check", name).error == [
            f"error: {name} is {what}; parallel text was expected.",
            f"Other data is checked before training: regard train {task} --train {name} --dry-run",
        ]
    Path("pairs.csv").write_text("source,target\na dog,ein Hund\n")
    assert command("data", "check", "pairs.csv").code == 0
