"""Sentence pairs, from files to encoded corpora."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.pairs import dataset
from regard.data.pairs.dataset import PairDataset, PairSource, Vocabulary, prepare_pairs
from regard.data.pipeline.bad_rows import BadRows
from regard.errors import DataError

Prepare = Callable[..., PairDataset]


@pytest.fixture
def prepare(corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Prepare the corpus, with a cache that is empty at first."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))

    def run(
        *, vocabulary: Vocabulary | None = None, tokenizer: TokenizerConfig | None = None, **data: Any
    ) -> PairDataset:
        return prepare_pairs(
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


def sources(data: PairDataset) -> list[str]:
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


def test_a_given_vocabulary_is_taken_as_it_is(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare()
    first.vocabulary.save(tmp_path / "vocabulary")
    loaded = Vocabulary.load(tmp_path / "vocabulary")
    monkeypatch.setattr(dataset, "learned_tokenizer", None)  # learning would fail
    again = prepare(vocabulary=loaded, tokenizer=TokenizerConfig(vocab_size=999))
    assert again.vocabulary.source is again.vocabulary.target is loaded.source
    assert loaded.fingerprint() == first.vocabulary.fingerprint()
    assert again.train.folder == first.train.folder


def test_a_vocabulary_brought_along_serves_both_sides(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare()
    first.vocabulary.source.save(tmp_path / "own.json")
    monkeypatch.setattr(dataset, "learned_tokenizer", None)  # learning would fail
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
    assert len(data.train) == 298
    notes = dict(data.notes)
    assert notes["left out"].startswith(f"of validation, 2 bad pairs, longer than 30 tokens: {files[0]}:8 'dog dog")
    assert len(data.notes) == 2


def test_too_many_long_pairs_are_refused(prepare: Prepare, tmp_path: Path) -> None:
    pairs = [("a dog", "ein Hund")] * 50 + [("dog " * 50, "Hund " * 50)] * 2
    files = write_pairs(tmp_path, pairs)
    with pytest.raises(DataError) as caught:
        prepare(train=files, valid=files, max_length=30)
    assert caught.value.problem.startswith(
        "2 of 52 pairs are bad (3.8%, at most 1% may be): 2 longer than 30 tokens. "
        f"First: {files[0]}:51 (longer than 30 tokens) 'dog dog"
    )
    longer = "Raise data.max_length, shorten them"
    assert caught.value.remedy == f"{longer}, or leave the bad pairs out with --on-bad keep-going."
    kept = prepare(train=files, valid=files, max_length=30, on_bad="keep-going")
    assert len(kept.train) == 50


def test_the_same_bytes_with_another_ending_are_other_pairs(prepare: Prepare, tmp_path: Path) -> None:
    lines = "en\tde,x\n" + "".join(f"a dog {n}\tein Hund {n},ja\n" for n in range(200))
    tabs, commas = str(tmp_path / "pairs.tsv"), str(tmp_path / "pairs.csv")
    for file in (tabs, commas):
        Path(file).write_text(lines)
    by_tabs = prepare(train=(tabs,), valid=(tabs,))
    by_commas = prepare(train=(commas,), valid=(commas,), vocabulary=by_tabs.vocabulary)
    assert sources(by_tabs)[-1] == "a dog 199"
    assert sources(by_commas)[-1] == "a dog 199\tein Hund 199"


def reasons_of(folder: Path, source: str, target: str, **settings: Any) -> list[str]:
    files = write_pairs(folder, [("Yes", "Ja"), (source, target)])
    bad_rows = BadRows("pair")
    list(PairSource(files=files, data=DataConfig(on_bad="keep-going"), max_characters=500, **settings).good(bad_rows))
    return list(bad_rows.reasons)


def test_sides_that_are_too_long(tmp_path: Path) -> None:
    assert reasons_of(tmp_path, "x" * 500, "y" * 500) == []
    assert reasons_of(tmp_path, "x" * 501, "y" * 500) == ["too long"]
    assert reasons_of(tmp_path, "x" * 500, "y" * 501) == ["too long"]


def test_lengths_that_are_too_different(tmp_path: Path) -> None:
    assert reasons_of(tmp_path, "x" * 90, "y" * 10) == []
    assert reasons_of(tmp_path, "x" * 91, "y" * 10) == ["lengths too different"]
    assert reasons_of(tmp_path, "x" * 10, "y" * 91) == ["lengths too different"]


def test_short_sentences_may_differ_in_length(tmp_path: Path) -> None:
    assert reasons_of(tmp_path, "x", "y" * 39) == []
    assert reasons_of(tmp_path, "x", "y" * 40) == ["lengths too different"]


@pytest.mark.parametrize(
    ("lowered", "shared", "expected"),
    [
        ("source target", True, "training text is lower-cased: input is lower-cased too"),
        ("source", True, ""),
        ("source", False, "training text of the source is lower-cased: input is lower-cased too"),
        ("target", False, "training text of the target is lower-cased: output has no capitals"),
        ("source target", False, "training text is lower-cased: input is lower-cased too"),
    ],
)
def test_lower_casing_is_chosen_by_side(
    prepare: Prepare, tmp_path: Path, lowered: str, shared: bool, expected: str
) -> None:
    pairs = [(f"A Dog sees the number {number}", f"Ein Hund sieht die Zahl {number}") for number in range(100)]
    sides = [
        [text.lower() if side in lowered else text for text in own]
        for side, own in zip(("source", "target"), zip(*pairs, strict=True), strict=True)
    ]
    data = prepare(
        train=write_pairs(tmp_path, list(zip(*sides, strict=True))),
        tokenizer=TokenizerConfig(vocab_size=320, shared=shared),
    )
    assert [text for label, text in data.notes if label == "lower case"] == ([expected] if expected else [])
    for side, tokenizer in (("source", data.vocabulary.source), ("target", data.vocabulary.target)):
        assert tokenizer.lowercase == (side in lowered if not shared else bool(expected))
    assert data.valid.ragged["target_text"].text(0)[:3] == ("ein" if "target" in lowered else "Ein")


def test_references_keep_their_case(prepare: Prepare, corpus: tuple[str, str]) -> None:
    data = prepare(tokenizer=TokenizerConfig(vocab_size=320, lowercase=True))
    lines = set(Path(corpus[1]).read_text().splitlines())
    assert set(texts(data.valid, "target_text")) <= lines
    assert ("lower case", "all text is lower-cased, input and output (tokenizer.lowercase)") in data.notes
    again = prepare(vocabulary=data.vocabulary)  # of another run: this text has capitals
    assert not again.vocabulary.source.lowercase and again.vocabulary.shared
    assert again.vocabulary.source.vocabulary == data.vocabulary.source.vocabulary
