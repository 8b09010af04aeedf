"""Running text, encoded: every token once, documents apart, some held out."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.documents import dataset
from regard.data.documents.dataset import DocumentDataset, encode_documents, prepare_documents
from regard.data.pipeline.encoding import bad_rows_of
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, DataError

WORDS = ["the", "a", "dog", "cat", "man", "house", "tree", "sees", "finds", "runs", "red", "big", "old", "and", "under"]


def quiet(what: str, done: int) -> None:
    pass


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def lines(count: int) -> list[str]:
    chance = random.Random(7)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) + "." for _ in range(count)]


def prepare(*train: str, kind: str = "characters", vocab_size: int = 300, **settings: Any) -> DocumentDataset:
    data = DataConfig(train=train, **settings)
    return prepare_documents(data, TokenizerConfig(kind=kind, vocab_size=vocab_size), given=None, progress=quiet)


def text_of(data: DocumentDataset, corpus: Any) -> list[str]:
    """The documents of a corpus, decoded; the stream begins and ends with the end token."""
    ids, end = corpus.ragged["ids"].values.tolist(), data.tokenizer.end_id
    assert ids[0] == end
    assert ids[-1] == end
    documents: list[list[int]] = []
    for id in ids[:-1]:
        if id == end:
            documents.append([])
        else:
            documents[-1].append(id)
    return [data.tokenizer.decode(one) for one in documents]


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe"])
def test_the_last_tenth_of_a_text_is_held_out(tmp_path: Path, kind: str) -> None:
    text = "".join(line + "\n" for line in lines(200))
    data = prepare(write(tmp_path / "a.txt", text), kind=kind)
    [train], [valid] = text_of(data, data.train), text_of(data, data.valid)
    assert train + valid == text
    assert len(valid) == pytest.approx(0.1 * len(text), abs=60)
    assert valid.startswith(tuple(WORDS))  # cut at the beginning of a line
    assert data.valid.facts["n_bytes"] == len(valid)


def test_many_documents_are_held_out_whole(tmp_path: Path) -> None:
    texts = [f"{number}. {line}" for number, line in enumerate(lines(150))]
    data = prepare(write(tmp_path / "a.txt", "\n---\n".join(texts) + "\n"), separator="---")
    train, valid = text_of(data, data.train), text_of(data, data.valid)
    assert sorted(one.rstrip("\n") for one in train + valid) == sorted(texts)
    assert len(valid) == 15
    assert data.train.facts["n_documents"] == 135


@pytest.mark.parametrize(("characters", "expected"), [(1_000_000, 200), (150_000, 150), (1_000, 100)])
def test_of_long_documents_fewer_are_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, characters: int, expected: int
) -> None:
    monkeypatch.setattr(dataset, "ENOUGH_CHARACTERS", characters)
    texts = [f"{expected} {number:04}".ljust(1_000, "x") for number in range(2_000)]
    data = prepare(write(tmp_path / "a.txt", "\n---\n".join(texts) + "\n"), separator="---")
    assert abs(data.valid.facts["n_documents"] - expected) <= 2


def test_passages_are_tokenised_like_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(line + "\n" for line in lines(300))
    file = write(tmp_path / "a.txt", text)
    monkeypatch.setattr("regard.data.documents.rows.PASSAGE_CHARACTERS", 100)
    data = prepare(file, valid=(file,), kind="bpe", vocab_size=400)
    ids = data.train.ragged["ids"].values.tolist()
    assert ids[1:-1] == data.tokenizer.encode(text)
    assert len(data.train) > 50


def test_given_files_validate(tmp_path: Path) -> None:
    train, valid = write(tmp_path / "a.txt", "abc\n" * 40), write(tmp_path / "b.txt", "cab\n")
    data = prepare(train, valid=(valid,))
    assert text_of(data, data.valid) == ["cab\n"]
    assert data.hashes.keys() == {train, valid}
    assert (data.held_out, data.n_held_out) == ("", 0)


def test_what_a_text_was_left_without_is_remembered_with_it(tmp_path: Path) -> None:
    tokenizer = prepare(write(tmp_path / "a.txt", "some text\n" * 40)).tokenizer
    records = [{"text": "some"}, {"text": ""}, {"text": " \n"}, {"text": "text"}]
    file = write(tmp_path / "b.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    told: list[str] = []
    for _ in range(2):  # the second time from the cache
        data = DataConfig(on_bad="keep-going")
        corpus = encode_documents([file], data, tokenizer, progress=lambda what, done: told.append(what))
        assert corpus.facts["n_documents"] == 2
        sentence = rf"2 bad lines, no text: {file}:2; {file}:3 ' \n'"
        assert bad_rows_of(corpus, [file]).sentences() == [sentence]
    assert told == ["encoding"]
    with pytest.raises(DataError, match=r"2 of 4 lines are bad \(50.0%, at most 1% may be\): 2 no text"):
        encode_documents([file], DataConfig(), tokenizer, progress=quiet)


@pytest.mark.parametrize("kind", ["one line", "few records"])
def test_a_long_part_is_cut_in_two(tmp_path: Path, kind: str) -> None:
    texts = lines(600)
    if kind == "one line":
        file, whole = write(tmp_path / "a.txt", " ".join(texts)), " ".join(texts)
    else:
        records = ["\n".join(texts[start : start + 200]) for start in range(0, 600, 200)]
        file = write(tmp_path / "a.jsonl", "".join(json.dumps({"text": one}) + "\n" for one in records))
        whole = "".join(records)
    data = prepare(file)
    train, [valid] = text_of(data, data.train), text_of(data, data.valid)
    assert "".join(train) + valid == whole
    assert len(valid) == pytest.approx(0.1 * len(whole), abs=60)
    assert valid.startswith(tuple(WORDS))


def test_one_line_leaves_nothing_to_validate_on(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        prepare(write(tmp_path / "a.txt", "only one line\n"))
    assert caught.value.problem == "No document is left for validation."
    assert "--valid" in caught.value.remedy


def test_a_vocabulary_of_sentences_is_refused(tmp_path: Path) -> None:
    sentences = learn(lines(50), kind="bpe", vocab_size=300)
    data = DataConfig(train=(write(tmp_path / "a.txt", "abc\n" * 40),))
    with pytest.raises(ConfigError, match="it was learned from sentences, not from running text"):
        prepare_documents(data, TokenizerConfig(), given=sentences, progress=quiet)


def test_the_column_of_the_text_is_named(tmp_path: Path) -> None:
    rows = [f"{line},{number}" for number, line in enumerate(lines(150))]
    file = write(tmp_path / "a.csv", "\n".join(["review,stars", *rows]) + "\n")
    data = prepare(file, valid=(file,), text="review")
    assert text_of(data, data.train) == lines(150)


# As if from sentences


def prepare_sentences(
    *train: str, kind: str = "bpe", given: Tokenizer | None = None, **settings: Any
) -> DocumentDataset:
    data, tokenizer = DataConfig(train=train, **settings), TokenizerConfig(kind=kind, vocab_size=400)
    return prepare_documents(data, tokenizer, given=given, progress=quiet, running=False, specials=("<mask>",))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_lines_may_be_read_as_sentences_are(tmp_path: Path, kind: str) -> None:
    texts = lines(200)
    file = write(tmp_path / "a.txt", "\n".join(texts) + "\n\n")
    data = prepare_sentences(file, kind=kind, valid=(file,))
    assert data.tokenizer.spaced
    assert data.tokenizer.id_of("<mask>") == 4
    ids = data.train.ragged["ids"].values.tolist()
    assert ids[1:-1] == [id for ids in data.tokenizer.encode_batch(texts) for id in ids]
    assert text_of(data, data.train) == [" ".join(texts)]


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_line_ends_stay_where_no_space_stands_in_front(tmp_path: Path, kind: str) -> None:
    text = "".join(line + "\n" for line in lines(200))
    file = write(tmp_path / "a.txt", text)
    data = prepare_sentences(file, kind=kind, valid=(file,))
    assert text_of(data, data.train) == [text]
    assert not data.train.facts["n_unknown"]


def test_vocabularies_of_both_kinds_are_taken(tmp_path: Path) -> None:
    texts = lines(200)
    file = write(tmp_path / "a.txt", "".join(line + "\n" for line in texts))
    for running in (True, False):
        given = learn(texts, kind="bpe", vocab_size=300, specials=["<mask>"], running=running, lowercase=True)
        data = prepare_sentences(file, given=given, valid=(file,))
        assert data.tokenizer is given
        assert text_of(data, data.train) == [("\n" if running else " ").join(texts) + ("\n" if running else "")]


def test_a_vocabulary_without_a_needed_token_is_refused_at_once(tmp_path: Path) -> None:
    given = learn(lines(50), kind="bpe", vocab_size=300)
    given.save(tmp_path / "own.json")
    data, file = DataConfig(train=("there is no such file",)), TokenizerConfig(file=str(tmp_path / "own.json"))
    with pytest.raises(ConfigError, match="The vocabulary has no token <mask>: it was learned for another task"):
        prepare_sentences(*data.train, given=given)
    with pytest.raises(ConfigError, match="The vocabulary has no token <mask>"):
        prepare_documents(data, file, given=None, progress=quiet, specials=("<mask>",))


def test_what_is_held_out_and_left_out_is_told(tmp_path: Path) -> None:
    text = "".join(line + "\n" for line in lines(200))
    file = write(tmp_path / "a.txt", text)
    data = prepare(file)
    assert data.held_out == "the last 10% of the text, held out"
    lower_case = ("lower case", "training text is lower-cased: input is lower-cased too")
    assert data.notes == (lower_case,)
    valid = write(tmp_path / "b.txt", text.encode() + b"\xff\n")
    data = prepare(file, valid=(valid,))
    assert data.held_out == ""
    assert data.notes == (
        lower_case,
        ("left out", rf"of validation, 1 bad line, not UTF-8: {valid}:201 '\xff\n'"),
    )
    data = prepare(write(tmp_path / "c.txt", text.replace("\n", "\n---\n")), separator="---")
    assert data.held_out == f"{data.valid.facts['n_documents']} of 200 documents, held out"
