"""Labelled examples, encoded: every good one once, the labels numbered, some held out."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.labelled.dataset import LabelledDataset, encode_labelled, prepare_labelled
from regard.data.labelled.storage import cut_sentence
from regard.data.pipeline.corpus import Corpus
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, DataError, UsageError

WORDS = ["the", "a", "dog", "cat", "man", "house", "tree", "sees", "finds", "runs", "red", "big", "old", "and", "under"]


def quiet(what: str, done: int) -> None:
    pass


def write(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


def texts(count: int, *, seed: int = 7) -> list[str]:
    chance = random.Random(seed)
    return [f"{number} " + " ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for number in range(count)]


def table(path: Path, rows: Sequence[tuple[str, ...]], *, header: str = "label\ttext") -> str:
    return write(path, "".join("\t".join(row) + "\n" for row in (tuple(header.split("\t")), *rows)))


def prepare(
    *train: str,
    kind: str = "class",
    labels: tuple[str, ...] | None = None,
    given: Tokenizer | None = None,
    tokenizer: str = "characters",
    **settings: Any,
) -> LabelledDataset:
    data = DataConfig(train=train, **settings)
    config = TokenizerConfig(kind=tokenizer, vocab_size=0 if tokenizer == "vectors" else 400)
    return prepare_labelled(data, config, kind=kind, given=given, labels=labels, progress=quiet)


def fault(*train: str, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        prepare(*train, **settings)
    return caught.value


def rows(data: LabelledDataset, corpus: Corpus) -> list[tuple[str, str]]:
    """Each text, decoded, with its label."""
    assert data.tokenizer is not None
    decoded = (data.tokenizer.decode(corpus.ragged["ids"][row].tolist()) for row in range(len(corpus)))
    return [(text, data.labels[label]) for text, label in zip(decoded, corpus.numbers["label"].tolist(), strict=True)]


@pytest.fixture
def examples() -> list[tuple[str, str]]:
    chance = random.Random(1)
    return [(chance.choice(["no", "no", "yes"]), text) for text in texts(120)]


def test_every_example_is_encoded_once(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    file = table(tmp_path / "a.tsv", examples)
    data = prepare(file)
    train, valid = rows(data, data.train), rows(data, data.valid)
    assert sorted(train + valid) == sorted((text, label) for label, text in examples)
    assert data.labels == ("no", "yes")
    assert data.counts == {label: sum(own == label for _, own in train) for label in data.labels}
    assert (len(valid), data.n_held_out) == (12, 12)
    assert [valid.text(0) for valid in [data.valid.ragged["text"]]] == [rows(data, data.valid)[0][0]]
    assert "text" not in data.train.ragged
    assert data.train.ragged["ids_b"].lengths.sum() == 0
    place = data.valid.numbers["line"][0]
    assert (examples[place - 2][1], data.valid_files, data.valid.numbers["file"][0]) == (valid[0][0], (file,), 0)
    lower_case = ("lower case", "training text is lower-cased: input is lower-cased too")
    assert data.notes == (lower_case, ("columns", "text 'text', label 'label'"))
    assert set(data.hashes) == {file}


def test_equal_texts_fall_on_one_side(tmp_path: Path) -> None:
    twice = [(label, text.upper() if upper else text) for text in texts(60) for label, upper in (("x", 0), ("y", 1))]
    data = prepare(table(tmp_path / "a.tsv", twice))
    train, valid = ({text.lower() for text, _ in rows(data, corpus)} for corpus in (data.train, data.valid))
    assert not train & valid
    assert len(data.valid) == 12


def test_a_rare_class_is_not_held_out(tmp_path: Path) -> None:
    own = [(f"class {number:03}", text) for number, text in enumerate(texts(90))]
    data = prepare(table(tmp_path / "a.tsv", [*own, *(("common", text) for text in texts(90, seed=8))]))
    assert all(data.counts.values())
    assert {label for _, label in rows(data, data.valid)} == {"common"}
    [kept] = [text for what, text in data.notes if what == "not held out"]
    assert kept.startswith("all examples of 'class 0")
    assert kept.endswith(", of which too few are there")


def test_near_equal_and_rare_labels_are_pointed_out_and_stay_apart(tmp_path: Path) -> None:
    labels = ["positive", "NEGATIVE"] * 60 + ["Negative"] * 30 + ["odd"]
    data = prepare(table(tmp_path / "a.tsv", list(zip(labels, texts(len(labels)), strict=True))))
    notes, n = dict(data.notes), data.counts
    assert data.labels == ("NEGATIVE", "Negative", "odd", "positive")
    told = f"labels 'NEGATIVE' ({n['NEGATIVE']}) and 'Negative' ({n['Negative']}): trained as different classes"
    assert notes["near-equal"].startswith(told)
    assert notes["rare"] == "1 of 4 labels has one or two training examples, too few to be learned: 'odd' (1)"


def test_near_equal_and_rare_tags_are_pointed_out(tmp_path: Path) -> None:
    sentence = "Anna\tB-PER\nsees\tO\nRome\tB-loc\n{}\tO\n\n"
    other = "Bonn\tB-LOC\nand\tO\nBerlin\tB-LOC\n\n"
    file = write(tmp_path / "a.conll", "".join(sentence.format(number) for number in range(60)) + other)
    data = prepare(file, kind="tags", valid_size=1)
    notes = dict(data.notes)
    assert notes["near-equal"].startswith(f"labels 'B-LOC' (2) and 'B-loc' ({data.counts['B-loc']}): trained")
    assert notes["rare"] == "1 of 4 labels has one or two training words, too few to be learned: 'B-LOC' (2)"


def test_given_validation_files(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    train = table(tmp_path / "train.tsv", examples)
    valid = table(tmp_path / "valid.tsv", [("yes", "one"), ("", "two"), ("no", "three")] * 1, header="label\tcontent")
    with pytest.raises(DataError) as caught:
        prepare(train, valid=(valid,))
    assert caught.value.problem.startswith("1 of 3 rows are bad (33.3%, at most 1% may be): 1 empty label. ")
    data = prepare(train, valid=(valid,), on_bad="keep-going")
    assert rows(data, data.valid) == [("one", "yes"), ("three", "no")]
    assert (data.n_held_out, data.valid_files) == (0, (valid,))
    assert ("left out", f"of validation, 1 bad row, empty label: {valid}:3 'two'") in data.notes


def test_a_label_seen_only_in_validation_is_an_error(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    valid = table(tmp_path / "valid.tsv", [("yes", "one"), ("maybe", "two")])
    error = fault(table(tmp_path / "train.tsv", examples), valid=(valid,))
    assert error.problem == f"{valid}:3: the label 'maybe' does not occur in training."
    assert error.remedy == "Add training examples of it, or leave such examples out of validation."


def test_one_class_is_an_error(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("x", text) for text in texts(20)])
    for found in (file, table(tmp_path / "one.tsv", [("x", "one")])):
        error = fault(found)
        assert error.problem == f"{found}: all examples have the label 'x'."
        assert error.remedy.startswith("Give examples of two classes at least")


def test_a_table_without_rows_is_an_error(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [])
    error = fault(file)
    assert error.problem == f"{file}: no rows were found."


def test_one_text_alone_is_an_error(tmp_path: Path) -> None:
    error = fault(table(tmp_path / "a.tsv", [("x", "one"), ("y", "one")] * 10))
    assert error.problem == "Nearly all rows have one and the same text: held out by it, none is left for training."


def test_splits_that_are_not_kept_apart_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"{text},{number % 2},{('train', 'test')[number % 3 > 1]}" for number, text in enumerate(texts(40))]
    file.write_text("text,label,Split\n" + "\n".join(rows) + "\n")
    note = ("note", "all rows are learned from; --split-column Split would keep its splits apart")
    assert note in prepare(str(file)).notes
    assert note not in prepare(str(file), split_column="Split").notes


def test_labels_that_are_nearly_all_different_are_an_error(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [(f"{number / 7:.3f}", text) for number, text in enumerate(texts(150))])
    error = fault(file)
    assert error.problem == f"{file}: 150 different labels in 150 examples, such as '0.000'."
    assert "regard train regress" in error.remedy


def test_whole_numbers_are_in_order(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [(str(number % 11), text) for number, text in enumerate(texts(110))])
    assert prepare(file).labels == tuple(str(number) for number in range(11))


def test_given_labels_stay_as_they_are(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    file = table(tmp_path / "a.tsv", examples)
    data = prepare(file, labels=("yes", "maybe", "no", "never"))
    assert data.labels == ("yes", "maybe", "no", "never")
    assert data.counts["maybe"] == data.counts["never"] == 0
    assert ("empty", "no training example has the label 'maybe' and 'never'") in data.notes
    assert {label for _, label in rows(data, data.train)} == {"yes", "no"}
    error = fault(file, labels=("yes", "noo"))
    assert error.problem == f"{file}:2: the label '{examples[0][0]}' is none of the 2 that the model knows."
    assert error.remedy == "Did you mean noo?"


def test_a_column_tells_the_splits_apart(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    parts = [(*row, "train" if number % 4 else "dev") for number, row in enumerate(examples)]
    file = table(tmp_path / "a.tsv", [*parts, ("", "unknown", "test")], header="label\ttext\tset")
    data = prepare(file, split_column="set")
    assert (len(data.train), len(data.valid), data.n_held_out) == (90, 30, 0)
    assert rows(data, data.valid)[1] == examples[4][::-1]
    corpus = encode_labelled(
        [file],
        DataConfig(split_column="set"),
        data.tokenizer,
        kind="class",
        labels=data.labels,
        split="train",
        progress=quiet,
    )
    assert len(corpus) == 90


def test_without_rows_of_validation_some_are_held_out(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    parts = [(*row, "train" if number % 4 else "test") for number, row in enumerate(examples)]
    file = table(tmp_path / "a.tsv", parts, header="label\ttext\tset")
    data = prepare(file, split_column="set")
    assert (len(data.train), len(data.valid), data.n_held_out) == (81, 9, 9)
    assert ("held out", "no row of 'set' is of validation") in data.notes
    other = table(tmp_path / "b.tsv", [(*row, "test") for row in examples], header="label\ttext\tset")
    assert "in no good row does the column 'set' say 'train' or 'training'" in fault(other, split_column="set").problem


def test_bad_rows_are_judged_against_all_rows_of_a_file(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    """One ragged row, whose split nobody knows, is not 1 % of the file, though more than 1 % of its validation rows."""
    parts = [(*row, "train" if number % 6 else "dev") for number, row in enumerate(examples)]
    file = table(tmp_path / "a.tsv", [*parts, ("yes", "a")], header="label\ttext\tset")
    data = prepare(file, split_column="set")
    assert len(data.valid) == 20


def test_validation_that_is_learnt_from_is_told(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    train = table(tmp_path / "train.tsv", examples)
    own = table(
        tmp_path / "own.tsv", [("yes", "never seen"), examples[7], ("no", "nor this"), examples[7], examples[9]]
    )
    told = f"3 of 5 validation examples are read as training examples are, first {own}:3"
    assert ("leak", told) in prepare(train, valid=(own,)).notes
    other = table(tmp_path / "other.tsv", [("yes", "never seen"), ("no", "nor this")])
    for data in (prepare(train, valid=(other,)), prepare(train)):
        assert "leak" not in dict(data.notes)


def test_of_pairs_both_texts_are_compared(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    header = "label\tpremise\thypothesis"
    train = table(tmp_path / "train.tsv", [(label, text, f"{text} a") for label, text in examples], header=header)
    apart = table(tmp_path / "apart.tsv", [(label, text, f"{text} b") for label, text in examples], header=header)
    assert "leak" not in dict(prepare(train, valid=(apart,)).notes)
    _, text = examples[7]
    own = table(tmp_path / "own.tsv", [("yes", text, text), ("no", text, f"{text} a")], header=header)
    told = f"1 of 2 validation examples are read as training examples are, first {own}:3"
    assert dict(prepare(train, valid=(own,)).notes)["leak"] == told


def test_long_texts_are_cut_and_told(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    train = table(tmp_path / "train.tsv", [*examples, ("yes", "x" * 100), ("no", "y" * 100)])
    valid = table(tmp_path / "valid.tsv", [("yes", "z" * 90)])
    data = prepare(train, valid=(valid,), max_length=80)
    assert data.train.ragged["ids"].lengths.max() == 80
    assert data.notes[-2:] == (
        ("cut", f"2 of {len(data.train)} longer than 80 tokens, first {train}:122"),
        ("cut", f"of validation, 1 of {len(data.valid)} longer than 80 tokens, first {valid}:2"),
    )
    assert data.valid.ragged["text"].text(0) == "z" * 90


def test_two_texts(tmp_path: Path) -> None:
    both = [("yes" if number % 2 else "no", text, f"it is {number}") for number, text in enumerate(texts(40))]
    data = prepare(table(tmp_path / "a.tsv", both, header="label\tpremise\thypothesis"))
    assert data.tokenizer is not None
    second = data.valid.ragged["ids_b"][0].tolist()
    assert data.tokenizer.decode(second) == data.valid.ragged["text_b"].text(0)
    assert "it is" in data.valid.ragged["text_b"].text(0)
    assert data.notes[0] == ("columns", "text 'premise', second text 'hypothesis', label 'label'")
    # The vocabulary is learned from both.
    assert data.tokenizer.unknown_id not in data.valid.ragged["ids_b"].values.tolist()


def test_the_cache_is_used_and_knows_what_matters(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    file = table(tmp_path / "a.tsv", examples)
    first = prepare(file)
    moved = table(tmp_path / "b.tsv", examples)
    again = prepare(moved)
    assert again.train.folder == first.train.folder
    assert again.train_files == (moved,)
    for settings in ({"max_length": 9}, {"valid_size": 20}, {"labels": ("yes", "no")}, {"on_bad": "keep-going"}):
        assert prepare(file, **settings).train.folder != first.train.folder
    assert len(prepare(file, valid_size=20).valid) == 20


def test_a_vocabulary_may_be_given(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    given = learn(["abcdefgh"], kind="characters", vocab_size=30, lowercase=True)
    data = prepare(table(tmp_path / "a.tsv", examples), given=given)
    assert data.tokenizer is given
    assert given.unknown_id in data.train.ragged["ids"].values.tolist()


# Regression.


def test_values_and_their_spread(tmp_path: Path) -> None:
    values = [number / 8 for number in range(60)]
    file = table(
        tmp_path / "a.tsv", [(str(v), t) for v, t in zip(values, texts(60), strict=True)], header="score\ttext"
    )
    data = prepare(file, kind="number")
    train, valid = (corpus.numbers["value"].view(np.float64) for corpus in (data.train, data.valid))
    assert sorted([*train, *valid]) == values
    assert data.mean == pytest.approx(train.mean())
    assert data.deviation == pytest.approx(train.std())
    assert (data.labels, data.counts) == ((), {})


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    wrong = [("nan", "a"), ("much", "b"), ("inf", "c"), ("", "d")]
    good = [(str(number), text) for number, text in enumerate(texts(60))]
    file = table(tmp_path / "a.tsv", [*good, *wrong], header="score\ttext")
    error = fault(file, kind="number")
    assert error.problem.startswith(
        "4 of 64 rows are bad (6.2%, at most 1% may be): 1 NaN, 1 not a number, 1 infinite, 1 empty"
    )
    assert error.problem.endswith(
        f"First: {file}:62 (NaN) 'nan'; {file}:63 (not a number) 'much'; {file}:64 (infinite) 'inf'."
    )
    data = prepare(file, kind="number", on_bad="keep-going")
    assert np.isfinite(data.train.numbers["value"].view(np.float64)).all()


def test_equal_values_are_an_error(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("0.10", text) for text in texts(30)], header="score\ttext")
    error = fault(file, kind="number")
    assert error.problem == f"{file}: all examples have the value 0.1."
    assert error.remedy == "Say which column is the number with --label."
    huge = table(
        tmp_path / "b.tsv", [(f"{n}e307", text) for n, text in enumerate(texts(30), start=-15)], header="score\ttext"
    )
    assert "the values are too large" in fault(huge, kind="number").problem


# Tags.


def tagged(path: Path, count: int, *, seed: int = 5) -> str:
    chance = random.Random(seed)
    sentences = [[f"n{number}", *chance.choices(WORDS, k=chance.randint(1, 6))] for number in range(count)]
    return write(
        path, "\n".join("".join(f"{word}\t{'SHORT' if len(word) < 4 else 'LONG'}\n" for word in s) for s in sentences)
    )


def test_each_word_has_its_tag_at_its_first_piece(tmp_path: Path) -> None:
    data = prepare(tagged(tmp_path / "a.tsv", 80), kind="tags", tokenizer="bpe")
    assert data.tokenizer is not None
    assert data.labels == ("LONG", "SHORT")
    assert len(data.train) + len(data.valid) == 80
    ids, firsts, tags, text = (data.valid.ragged[name] for name in ("ids", "firsts", "tags", "text"))
    for row in range(len(data.valid)):
        words = text.text(row).split(" ")
        pieces = data.tokenizer.pieces(text.text(row))
        assert [piece.id for piece in pieces] == ids[row].tolist()
        assert [data.labels[tag] for tag in tags[row]] == ["SHORT" if len(word) < 4 else "LONG" for word in words]
        assert all(word.startswith(pieces[first].text.strip()) for word, first in zip(words, firsts[row], strict=True))
    assert sum(data.counts.values()) == len(data.train.ragged["tags"].values)
    assert "ids_b" not in data.train.ragged


def test_words_beyond_the_cut_are_told(tmp_path: Path) -> None:
    valid = write(tmp_path / "valid.tsv", "a\tSHORT\nhouse\tLONG\nunder\tLONG\n\nthe\tSHORT\n")
    data = prepare(tagged(tmp_path / "a.tsv", 30), kind="tags", valid=(valid,), max_length=8)
    assert [row.tolist() for row in data.valid.ragged["tags"].take([0, 1])] == [[1, 0], [1]]
    assert data.notes[-1] == (
        "cut",
        f"of validation, 1 of 2 longer than 8 tokens, first {valid}:1; 1 word has no tag",
    )
    assert cut_sentence(data.valid, [valid], 8) == data.notes[-1][1].removeprefix("of validation, ")


def test_bad_sentences_and_unknown_tags(tmp_path: Path) -> None:
    train = tagged(tmp_path / "a.tsv", 30)
    ragged = write(tmp_path / "b.tsv", "a\tSHORT\nhouse\n\nthe\tSHORT\n")
    error = fault(train, kind="tags", valid=(ragged,))
    assert error.problem.startswith(
        "1 of 2 sentences are bad (50.0%, at most 1% may be): 1 (2 columns expected, 1 found)."
    )
    unknown = write(tmp_path / "c.tsv", "a\tSHORT\nhouse\tHUGE\n")
    error = fault(train, kind="tags", valid=(unknown,))
    assert error.problem == f"{unknown}:1: the tag 'HUGE' does not occur in training."
    alike = write(tmp_path / "d.tsv", "a\tO\n\nb\tO\n\nc\tO\n")
    assert fault(alike, kind="tags").problem == f"{alike}: all words have the tag 'O'."


# Vectors.


def test_vectors(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    vectors = chance.normal(size=(40, 6, 3)).astype(np.float32)
    lengths = chance.integers(1, 7, size=40)
    file = str(tmp_path / "a.npz")
    np.savez(file, vectors=vectors, lengths=lengths, labels=np.arange(40) % 2)
    data = prepare(file, max_length=4)
    assert (data.tokenizer, data.n_features, data.labels) == (None, 3, ("0", "1"))
    assert len(data.train) + len(data.valid) == 40
    row = data.train.ragged["vectors"][5].view(np.float32).reshape(-1, 3)
    number = data.train.numbers["line"][5] - 1
    np.testing.assert_array_equal(row, vectors[number, : min(4, lengths[number])])
    assert data.train.numbers["label"][5] == number % 2
    assert any(what == "cut" for what, _ in data.notes)
    other = str(tmp_path / "b.npz")
    np.savez(other, vectors=np.ones((2, 2, 4)), labels=[0, 1])
    error = fault(file, valid=(other,))
    assert error.problem == f"{other}: vectors of 3 features were expected, as in training, and 4 came."


def test_vectors_of_a_csv(tmp_path: Path) -> None:
    lines = [f"s{number},{number},{step},{number / 4}" for number in range(20) for step in range(3)]
    file = write(tmp_path / "a.csv", "name,x,y,level\n" + "\n".join(lines) + "\n")
    data = prepare(file, kind="number", tokenizer="vectors", text="name", label="level")
    assert data.n_features == 2
    assert data.train.ragged["vectors"].lengths.tolist() == [6] * len(data.train)


# Rows to be scored.


def test_examples_to_be_scored(tmp_path: Path) -> None:
    tokenizer = learn(["abcd"], kind="characters", vocab_size=30)
    file = table(tmp_path / "a.tsv", [("x", "abab"), ("y", "cd"), ("", "a")])

    def encoded(labels: tuple[str, ...], **settings: Any) -> Corpus:
        data = DataConfig(max_length=3, **settings)
        return encode_labelled([file], data, tokenizer, kind="class", labels=labels, progress=quiet)

    with pytest.raises(DataError, match="1 of 3 rows are bad"):
        encoded(("x", "y"))
    corpus = encoded(("y", "x"), on_bad="keep-going")
    assert corpus.numbers["label"].tolist() == [1, 0]
    assert corpus.ragged["text"].text(0) == "abab"
    assert bad_rows_of(corpus, [file]).sentences() == [f"1 bad row, empty label: {file}:4 'a'"]
    assert cut_sentence(corpus, [file], 3) == f"1 of {len(corpus)} longer than 3 tokens, first {file}:2"
    with pytest.raises(DataError) as caught:
        encoded(("x", "z"), on_bad="keep-going")
    assert caught.value.problem == f"{file}:3: the label 'y' is none of the 2 that the model knows."
    assert caught.value.remedy == "Available: x, z."


def test_what_does_not_go_together(tmp_path: Path, examples: list[tuple[str, str]]) -> None:
    file = table(tmp_path / "a.tsv", examples)
    with pytest.raises(ConfigError) as caught:
        prepare(file, kind="tags", split_column="set")
    assert str(caught.value) == (
        "data.split_column names a column of a table, and tagged words come in files of their own.\n"
        "Leave --split-column out, and give validation files with --valid."
    )
    with pytest.raises(UsageError, match=r"no labelled data of the kind 'clas'\.\nDid you mean class"):
        prepare(file, kind="clas")


def test_too_few_examples(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("x", "one"), ("y", "two")])
    error = fault(file)
    assert error.problem == "No row is left for validation."  # each is the only one of its class
    assert error.remedy == "Give more, or give validation files with --valid."
