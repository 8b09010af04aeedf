"""Parallel text, from files to encoded corpora."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.pairs import dataset
from regard.data.pairs.dataset import ParallelData, Vocabulary, prepare_parallel
from regard.errors import DataError

Prepare = Callable[..., ParallelData]


@pytest.fixture
def prepare(corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Prepare the corpus, with a cache that is empty at first."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))

    def run(
        *, vocabulary: Vocabulary | None = None, tokenizer: TokenizerConfig | None = None, **data: Any
    ) -> ParallelData:
        return prepare_parallel(
            DataConfig(**{"train": corpus, **data}),
            tokenizer or TokenizerConfig(vocab_size=320),
            vocabulary=vocabulary,
            progress=lambda what, done: None,
        )

    return run


def write_pairs(folder: Path, pairs: list[tuple[str, str]], name: str = "pairs") -> tuple[str, str]:
    files = folder / f"{name}.en", folder / f"{name}.de"
    for side, file in enumerate(files):
        file.write_text("".join(pair[side] + "\n" for pair in pairs))
    return str(files[0]), str(files[1])


def texts(corpus: Any, name: str) -> list[str]:
    return [corpus.ragged[name].text(row) for row in range(len(corpus))]


def sources(data: ParallelData) -> list[str]:
    """The source sentences of the training pairs, decoded."""
    ids = data.train.ragged["source"]
    return [data.vocabulary.source.decode(ids[row].tolist()) for row in range(len(ids))]


def test_every_pair_is_encoded_once_with_its_place(prepare: Prepare, corpus: tuple[str, str]) -> None:
    data = prepare(valid_size=9)
    lines = Path(corpus[0]).read_text().splitlines()
    held_out = texts(data.valid, "source_text")
    assert sorted(sources(data) + held_out) == sorted(lines)
    numbers = data.train.numbers["line"].tolist()
    assert [lines[number - 1] for number in numbers] == sources(data)
    assert set(data.train.numbers["file"].tolist()) == {0}
    targets = Path(corpus[1]).read_text().splitlines()
    ids = data.train.ragged["target"]
    assert [data.vocabulary.target.decode(ids[row].tolist()) for row in range(len(ids))] == [
        targets[number - 1] for number in numbers
    ]
    assert data.n_held_out == len(data.valid) == len(held_out)
    assert list(data.hashes) == list(corpus)


def test_no_source_sentence_is_on_both_sides(prepare: Prepare, tmp_path: Path) -> None:
    # Each source stands there with seven different targets, in spellings that are the same to a reader.
    spellings = ["über Satz {}", " über Satz {}", "Über Satz {}", "über  Satz {}", "u\u0308ber Satz {}"]
    pairs = [(f"über Satz {n}", f"Satz {n} {again}") for n in range(100) for again in range(2)]
    pairs += [(spelling.format(n), f"Satz {n} {spelling}") for n in range(100) for spelling in spellings]
    data = prepare(train=write_pairs(tmp_path, pairs), valid_size=40)
    learned = {source.split()[-1] for source in sources(data)}
    held_out = {source.split()[-1] for source in texts(data.valid, "source_text")}
    assert learned & held_out == set()
    assert len(learned | held_out) == 100
    assert len(data.valid) == 42, "six sentences: 40 pairs, and the other two of the sixth"


def test_validation_files_leave_all_training_pairs_in_place(prepare: Prepare, tmp_path: Path) -> None:
    valid = write_pairs(tmp_path, [("a dog", "ein Hund"), ("the cat", "der Katze")], "valid")
    data = prepare(valid=valid)
    assert len(data.train) == 90
    assert texts(data.valid, "source_text") == ["a dog", "the cat"]
    assert texts(data.valid, "target_text") == ["ein Hund", "der Katze"]
    assert data.n_held_out == 0
    assert set(data.hashes) >= set(valid)
    assert "source_text" not in data.train.ragged, "training text is not stored twice"


def test_a_second_time_the_corpora_come_from_the_cache(
    prepare: Prepare, monkeypatch: pytest.MonkeyPatch, corpus: tuple[str, str], tmp_path: Path
) -> None:
    calls = []
    original = dataset._encode

    def encode(*rest: Any, **options: Any) -> Any:
        calls.append(options["texts"])
        return original(*rest, **options)

    monkeypatch.setattr(dataset, "_encode", encode)
    first = prepare()
    assert calls == [False, True]
    again = prepare()
    assert calls == [False, True], "nothing was encoded again"
    assert again.train.folder == first.train.folder
    # The key is the content, not the name.
    moved = tuple(str(shutil.copy(file, tmp_path)) for file in corpus)
    assert prepare(train=moved).train.folder == first.train.folder
    assert len(calls) == 2
    # What changes the corpus makes another.
    prepare(valid_size=20)
    assert len(calls) == 4
    prepare(max_length=100)
    assert len(calls) == 6
    prepare(tokenizer=TokenizerConfig(vocab_size=300))
    assert len(calls) == 8


def test_a_given_vocabulary_is_taken_as_it_is(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare()
    first.vocabulary.save(tmp_path / "vocabulary")
    loaded = Vocabulary.load(tmp_path / "vocabulary")
    monkeypatch.setattr(dataset, "tokenizer_for", None)  # learning would fail
    again = prepare(vocabulary=loaded, tokenizer=TokenizerConfig(vocab_size=999))
    assert again.vocabulary is loaded
    assert loaded.fingerprint() == first.vocabulary.fingerprint()
    assert again.train.folder == first.train.folder


def test_a_vocabulary_brought_along_serves_both_sides(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare()
    first.vocabulary.source.save(tmp_path / "own.json")
    monkeypatch.setattr(dataset, "tokenizer_for", None)  # learning would fail
    again = prepare(tokenizer=TokenizerConfig(file=str(tmp_path / "own.json")))
    assert again.vocabulary.shared
    assert again.vocabulary.fingerprint() == first.vocabulary.fingerprint()


def test_a_wrong_vocabulary_is_refused_before_the_corpus_is_read(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "read_pairs", None)
    with pytest.raises(DataError, match=r"own\.json: there is no such file"):
        prepare(tokenizer=TokenizerConfig(file=str(tmp_path / "own.json")))


def test_a_shared_vocabulary_is_one_file_and_two_are_two(prepare: Prepare, tmp_path: Path) -> None:
    shared = prepare().vocabulary
    assert shared.shared
    shared.save(tmp_path / "shared")
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["shared.json"]
    assert Vocabulary.load(tmp_path / "shared").shared
    apart = prepare(tokenizer=TokenizerConfig(vocab_size=320, shared=False)).vocabulary
    assert not apart.shared
    apart.save(tmp_path / "apart")
    assert sorted(path.name for path in (tmp_path / "apart").iterdir()) == ["source.json", "target.json"]
    loaded = Vocabulary.load(tmp_path / "apart")
    assert loaded.fingerprint() == apart.fingerprint() != shared.fingerprint()
    assert loaded.source.encode("dog") != loaded.target.encode("dog")


def test_held_out_text_is_not_learnt_from(prepare: Prepare, tmp_path: Path) -> None:
    pairs = [(f"word{n}", f"Wort{n}") for n in range(40)]
    data = prepare(
        train=write_pairs(tmp_path, pairs), valid_size=20, tokenizer=TokenizerConfig(kind="words", vocab_size=100)
    )
    for source in texts(data.valid, "source_text"):
        assert data.vocabulary.source.encode(source) == [data.vocabulary.source.unknown_id]


def test_pairs_of_too_many_tokens_are_left_out_and_counted(prepare: Prepare, tmp_path: Path) -> None:
    pairs = [(f"a dog {n}", "ein Hund") for n in range(300)]
    pairs[7] = ("dog " * 50, "Hund " * 50)
    pairs[9] = ("a dog " * 4, "Hund " * 35)
    files = write_pairs(tmp_path, pairs)
    data = prepare(train=files, valid=files, max_length=30)
    assert data.train.facts == {"n_bad": 0, "n_long": 2, "first_long": [0, 8]}
    assert len(data.train) == 298


def test_too_many_long_pairs_are_refused(prepare: Prepare, tmp_path: Path) -> None:
    pairs = [("a dog", "ein Hund")] * 50 + [("dog " * 50, "Hund " * 50)] * 2
    files = write_pairs(tmp_path, pairs)
    with pytest.raises(DataError) as caught:
        prepare(train=files, valid=files, max_length=30)
    assert caught.value.problem == (
        f"2 of 52 pairs are longer than 30 tokens, the first at {files[0]}:51; at most 1% may be."
    )
    assert caught.value.remedy == ("Raise data.max_length, split the text into sentences, or use --on-bad keep-going.")
    kept = prepare(train=files, valid=files, max_length=30, on_bad="keep-going")
    assert len(kept.train) == 50


def test_bad_pairs_are_screened_out_and_reported(prepare: Prepare, tmp_path: Path) -> None:
    pairs = [(f"a dog {n}", "ein Hund") for n in range(200)]
    pairs[4] = ("", "leer")
    files = write_pairs(tmp_path, pairs)
    data = prepare(train=files, valid_size=10)
    assert data.screening.n_bad == 1
    assert data.screening.reasons == {"empty source": 1}
    assert len(data.train) + len(data.valid) == 199


def test_nothing_to_train_on(prepare: Prepare) -> None:
    with pytest.raises(DataError) as caught:
        prepare(train=())
    assert caught.value.problem == "There is nothing to train on."
    assert caught.value.remedy == "Give the training files with --train."


def test_progress_is_told(corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(dataset, "CHUNK", 40)
    told: list[tuple[str, int]] = []
    data = dataclasses.replace(DataConfig(train=corpus), valid=corpus)
    prepare_parallel(
        data,
        TokenizerConfig(vocab_size=320),
        vocabulary=None,
        progress=lambda what, done: told.append((what, done)),
    )
    assert told == [
        ("reading", 40),
        ("reading", 80),
        ("learning the vocabulary", 0),
        *[("encoding", done) for done in (40, 80, 90)] * 2,
    ]


def test_the_screening_is_remembered_and_names_the_file_where_it_lies_now(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [(f"a dog {n}", "ein Hund") for n in range(200)]
    pairs[4] = ("", "leer")
    first = prepare(train=write_pairs(tmp_path, pairs), valid_size=10)
    monkeypatch.setattr(dataset, "read_pairs", None)
    moved = write_pairs(tmp_path, pairs, name="moved")
    again = prepare(train=moved, valid_size=10, vocabulary=first.vocabulary)
    (bad,) = again.screening.examples["empty source"]
    assert (bad.file, bad.line, bad.excerpt) == (moved[0], 5, "leer")
    assert again.screening.n_good == first.screening.n_good == 199


def test_the_same_bytes_with_another_ending_are_other_pairs(prepare: Prepare, tmp_path: Path) -> None:
    lines = "en\tde,x\n" + "".join(f"a dog {n}\tein Hund {n},ja\n" for n in range(200))
    tabs, commas = str(tmp_path / "pairs.tsv"), str(tmp_path / "pairs.csv")
    for file in (tabs, commas):
        Path(file).write_text(lines)
    by_tabs = prepare(train=(tabs,), valid=(tabs,))
    by_commas = prepare(train=(commas,), valid=(commas,), vocabulary=by_tabs.vocabulary)
    assert sources(by_tabs)[-1] == "a dog 199"
    assert sources(by_commas)[-1] == "a dog 199\tein Hund 199"
