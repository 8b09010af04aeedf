"""Scores of every task but translation, from Python. Those of translation are in test_run.py."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.errors import DataError, UsageError
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelling.classification import Classified

ROWS = [("a good dog", "pos"), ("a dull song", "neg"), ("a poor film", "neg"), ("a great day", "neg")]


def evaluate(run: Path, *files: Path, **options: Any) -> Evaluation:
    return regard.load(run, threads=1).evaluate([str(file) for file in files], **options)


def values(found: Evaluation) -> dict[str, float]:
    return {score.name: score.value for score in found.scores}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four rows, the last of which has a label that no text of its kind has."""
    file = tmp_path / "test.csv"
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    return file


def test_classes(classify_run: Path, table: Path) -> None:
    found = evaluate(classify_run, table)
    assert (found.count, found.unit) == (4, "texts")
    assert list(values(found)) == ["loss", "accuracy", "macro_f1"]
    assert values(found)["accuracy"] == 75
    assert found.confusion is not None
    assert found.confusion.labels == ("neg", "pos")
    assert found.confusion.counts == ((2, 1), (0, 1))
    assert found.to_json()["confusion"] == ((2, 1), (0, 1))
    assert found.expected == ("pos", "neg", "neg", "neg")
    assert [one.label for one in found.predictions] == ["pos", "neg", "neg", "pos"]
    [predicted] = regard.load(classify_run, threads=1).predict(["a great day"])
    assert predicted.probability == pytest.approx(found.predictions[3].probability)
    assert found.notes == ()


def test_columns_of_other_names(classify_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.tsv"
    file.write_text("id\twhat\tkind\n1\ta good dog\tpos\n2\ta dull song\tneg\n")
    found = evaluate(classify_run, file, text="what", label="kind")
    assert values(found)["accuracy"] == 100
    with pytest.raises(DataError) as caught:
        evaluate(classify_run, file, text="wat", label="kind")
    assert caught.value.problem == f"{file} has no column 'wat'."


def test_splits_of_a_table(classify_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    parts = ["train", "test", "dev", "test"]
    rows = [f"{text},{label},{part}\n" for (text, label), part in zip(ROWS, parts, strict=True)]
    file.write_text("text,label,part\n" + "".join(rows))
    assert evaluate(classify_run, file, split_column="part").count == 2
    assert evaluate(classify_run, file, split_column="part", split="valid").count == 1
    assert evaluate(classify_run, file, split_column="part", split="all").count == 4
    assert evaluate(classify_run, file, text="text", split="all").count == 4
    with pytest.raises(UsageError) as without:
        evaluate(classify_run, file, split="test")
    assert without.value.problem == "No column says which rows are of the split 'test'."
    assert without.value.remedy == "Name the column with --split-column."
    with pytest.raises(UsageError) as unknown:
        evaluate(classify_run, file, split_column="part", split="tests")
    assert (unknown.value.problem, unknown.value.remedy) == (
        "The split must be train, valid or test, not 'tests'.",
        "Did you mean test?",
    )


def test_a_run_that_learnt_from_a_part_is_scored_on_the_test_part(classify_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    file.write_text("text,label,part\na good dog,pos,train\na dull song,neg,test\n")
    run = regard.load(classify_run, threads=1)
    data = dataclasses.replace(run.config.data, split_column="part")
    run.task.config = dataclasses.replace(run.config, data=data)
    assert run.evaluate([str(file)]).expected == ("neg",)
    assert run.evaluate([str(file)], split="train").expected == ("pos",)
    assert run.evaluate([str(file)], split="all").count == 2


def test_tags(tag_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.conll"
    file.write_text("Anna B-PER\nSmith I-PER\nvisits O\nOslo B-LOC\n\nBen O\noften O\n")
    found = evaluate(tag_run, file)
    assert (found.count, found.unit) == (2, "sentences")
    assert list(values(found)) == ["loss", "accuracy", "entity_f1", "entity_precision", "entity_recall"]
    assert values(found)["accuracy"] == pytest.approx(100 * 5 / 6)
    assert values(found)["entity_f1"] == pytest.approx(100 * 4 / 5)
    assert found.expected == (("B-PER", "I-PER", "O", "B-LOC"), ("O", "O"))
    assert found.predictions[0].words == ("Anna", "Smith", "visits", "Oslo")
    assert found.predictions[1].tags == ("B-PER", "O")
    assert found.confusion is None
    with pytest.raises(UsageError, match="'split_column' does not apply to tag runs"):
        evaluate(tag_run, file, split_column="part")


def test_a_word_with_a_space_inside_stays_one_word(tag_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.conll"
    file.write_text("Anna\tB-PER\nvisits often\tO\nOslo\tB-LOC\n")
    found = evaluate(tag_run, file)
    assert found.predictions[0].words == ("Anna", "visits often", "Oslo")


def test_numbers(regress_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.csv"
    file.write_text("sequence,fitness\nAAAA,4\nDDDD,0\nACAC,3\nDCDC,1\n")
    found = evaluate(regress_run, file)
    assert list(values(found)) == ["loss", "spearman", "r_squared", "mae"]
    assert values(found)["spearman"] == pytest.approx(1)
    assert values(found)["mae"] < 0.7
    assert found.expected == (4.0, 0.0, 3.0, 1.0)
    assert values(found)["mae"] == pytest.approx(
        np.mean([abs(one.value - gold) for one, gold in zip(found.predictions, found.expected, strict=True)])
    )


def test_hidden_words(mask_run: Path, denoise_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.txt"
    file.write_text("the dog is good today .\n" * 6)
    found = evaluate(mask_run, file)
    assert (found.count, found.unit) == (36, "tokens")
    assert list(values(found)) == ["loss", "perplexity", "masked_accuracy"]
    assert (found.predictions, found.expected) == ([], ())
    assert list(values(evaluate(denoise_run, file))) == ["loss", "perplexity"]


def test_vectors(vectors_run: Path, tmp_path: Path) -> None:
    rising = np.stack([0.3 * np.arange(6), np.zeros(6)], axis=-1).astype(np.float32)
    np.savez(tmp_path / "test.npz", vectors=np.stack([rising, -rising]), labels=np.array(["up", "up"]))
    found = evaluate(vectors_run, tmp_path / "test.npz")
    assert (found.count, found.unit) == (2, "sequences")
    assert values(found)["accuracy"] == 50


def test_what_was_left_out_and_cut_is_told(classify_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.csv"
    file.write_text("text,label\na good dog,pos\n,neg\n" + "a good dog " * 20 + ",pos\n")
    found = evaluate(classify_run, file, on_bad="keep-going")
    assert found.count == 2
    assert len(found.notes) == 2
    assert found.notes[0].startswith("Left out: ")
    assert found.notes[1].startswith("Cut: 1 of ")
    assert [one.cut for one in found.predictions if isinstance(one, Classified)] == [False, True]
    with pytest.raises(DataError):
        evaluate(classify_run, file)


def test_a_label_that_the_run_does_not_know(classify_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.csv"
    file.write_text("text,label\na good dog,poss\n")
    with pytest.raises(DataError) as caught:
        evaluate(classify_run, file)
    assert caught.value.problem == f"{file}:2: the label 'poss' is none of the 2 that the model knows."
    assert caught.value.remedy == "Did you mean pos?"
