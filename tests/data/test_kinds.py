"""What holds for every kind of data: one pipeline, with the noun of the kind in its messages."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard.config import DataConfig, TokenizerConfig
from regard.data.captions.dataset import prepare_captions
from regard.data.captions.source import CaptionSource
from regard.data.documents.dataset import DocumentSource, prepare_documents
from regard.data.images.dataset import prepare_images
from regard.data.labelled.dataset import prepare_labelled
from regard.data.labelled.source import TagSource, TextSource, VectorSource
from regard.data.pairs.dataset import PairSource, prepare_pairs
from regard.data.pipeline.dataset import Dataset
from regard.data.pipeline.source import Progress, Source
from regard.errors import DataError

WORDS = ["the", "a", "dog", "cat", "man", "house", "tree", "sees", "finds", "runs", "red", "big", "old", "and", "under"]
CHARACTERS = TokenizerConfig(kind="characters")


def quiet(what: str, done: int) -> None:
    pass


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [f"{seed + number} {' '.join(chance.choices(WORDS, k=6))}" for number in range(count)]


def lines(path: Path, rows: Sequence[str | bytes]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((row if isinstance(row, bytes) else row.encode()) + b"\n" for row in rows))
    return str(path)


def write_pairs(folder: Path, n_bad: int, seed: int) -> str:
    bad = [f"{number}\t" for number in range(n_bad)]
    return lines(folder / "data.tsv", ["en\tde", *(f"{one}\t{one}" for one in sentences(120, seed)), *bad])


def write_documents(folder: Path, n_bad: int, seed: int) -> str:
    rows = [json.dumps({"text": one}) for one in sentences(120, seed)]
    return lines(folder / "data.jsonl", [*rows, *["[]"] * n_bad])


def write_texts(folder: Path, n_bad: int, seed: int) -> str:
    rows = [f"{one}\t{'yes' if number % 2 else 'no'}" for number, one in enumerate(sentences(120, seed))]
    return lines(folder / "data.tsv", ["text\tlabel", *rows, *["\tyes"] * n_bad])


def write_tags(folder: Path, n_bad: int, seed: int) -> str:
    tagged = [f"{word}\t{len(word)}" for one in sentences(120, seed) for word in (*one.split(), "")]
    rows = ["" if row == "\t0" else row for row in tagged]
    return lines(folder / "data.conll", [*rows, *["dog\t", ""] * n_bad])


def write_vectors(folder: Path, n_bad: int, seed: int) -> str:
    chance = np.random.default_rng(seed)
    labels = [*("ab"[number % 2] for number in range(120)), *[""] * n_bad]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "data.npz", vectors=chance.normal(size=(120 + n_bad, 3, 2)), labels=np.array(labels))
    return str(folder / "data.npz")


def save_images(folder: Path, names: Sequence[str], seed: int) -> None:
    chance = np.random.default_rng(seed)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (4, 4, 3), dtype=np.uint8)).save(folder / name)


def write_images(folder: Path, n_bad: int, seed: int) -> str:
    save_images(folder / "data", [f"{'cat' if number % 2 else 'dog'}/{number}.png" for number in range(120)], seed)
    for number in range(n_bad):
        (folder / f"data/cat/bad{number}.png").write_bytes(b"nothing")
    return str(folder / "data")


def write_captions(folder: Path, n_bad: int, seed: int) -> str:
    save_images(folder, [f"{number}.png" for number in range(120)], seed)
    rows = [f"{number}.png\t{one}" for number, one in enumerate(sentences(120, seed))]
    return lines(folder / "data.tsv", ["image\tcaption", *rows, *["0.png\t"] * n_bad])


@dataclass(frozen=True)
class Kind:
    """A kind of data: how its files are written for a test, and how they are prepared."""

    name: str
    noun: str
    write: Callable[[Path, int, int], str]
    prepare: Callable[[DataConfig, Progress], Dataset[Any]]
    source: type[Source[Any]] | None = None
    unit: str = ""  # what is held out, if not what the noun says
    n_passes: int = 4  # over a file of which nothing is known, with a vocabulary whose size is to be chosen


def pairs(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_pairs(data, CHARACTERS, vocabulary=None, progress=progress)


def documents(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_documents(data, CHARACTERS, given=None, progress=progress)


def texts(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_labelled(data, CHARACTERS, kind="class", given=None, labels=None, progress=progress)


def tags(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_labelled(data, CHARACTERS, kind="tags", given=None, labels=None, progress=progress)


def captions(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_captions(data, CHARACTERS, given=None, progress=progress)


def images(data: DataConfig, progress: Progress) -> Dataset[Any]:
    return prepare_images(data, progress=progress)


KINDS = [
    Kind("pairs", "pair", write_pairs, pairs, PairSource),
    Kind("documents", "line", write_documents, documents, DocumentSource, unit="document"),
    Kind("texts", "row", write_texts, texts, TextSource),
    Kind("tags", "sentence", write_tags, tags, TagSource),
    Kind("vectors", "sequence", write_vectors, texts, VectorSource, n_passes=2),
    Kind("images", "image", write_images, images),
    Kind("captions", "caption", write_captions, captions, CaptionSource, unit="image"),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
every_source = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.source], ids=lambda kind: kind.name)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def folders(dataset: Dataset[Any]) -> list[Path]:
    """Where the corpora of a dataset are stored."""
    return [getattr(split, "corpus", split).folder for split in (dataset.train, dataset.valid)]


@every_kind
def test_nothing_to_train_on(kind: Kind) -> None:
    with pytest.raises(DataError) as caught:
        kind.prepare(DataConfig(), quiet)
    assert caught.value.problem == "There is nothing to train on."
    assert "--train" in caught.value.remedy


@every_kind
def test_too_many_bad_rows_stop(kind: Kind, tmp_path: Path) -> None:
    file = kind.write(tmp_path, 3, 0)
    with pytest.raises(DataError) as caught:
        kind.prepare(DataConfig(train=(file,)), quiet)
    assert caught.value.problem.startswith(f"3 of 123 {kind.noun}s are bad (2.4%, at most 1% may be): 3 ")
    assert caught.value.problem.count(f"First: {file}") == 1
    assert f"leave the bad {kind.noun}s out with --on-bad keep-going." in caught.value.remedy


@every_kind
def test_bad_rows_are_left_out_and_noted(kind: Kind, tmp_path: Path) -> None:
    file, valid = kind.write(tmp_path, 3, 0), kind.write(tmp_path / "valid", 1, 1000)
    data = kind.prepare(DataConfig(train=(file,), valid=(valid,), on_bad="keep-going"), quiet)
    of_training, of_validation = [text for label, text in data.notes if label == "left out"]
    assert of_training.startswith(f"3 bad {kind.noun}s, ")
    assert file in of_training
    assert of_validation.startswith(f"of validation, 1 bad {kind.noun}, ")
    assert valid in of_validation
    assert (data.n_held_out, set(data.hashes)) == (0, {file, valid})


@every_kind
def test_what_is_held_out_is_counted_and_not_in_training(kind: Kind, tmp_path: Path) -> None:
    data = kind.prepare(DataConfig(train=(kind.write(tmp_path, 0, 0),), valid_size=20), quiet)
    assert data.n_held_out == 20
    if kind.name != "documents":  # whose passages are not its documents
        assert (len(data.train), len(data.valid)) == (100, 20)
    assert data.train_files == data.valid_files


@every_kind
def test_more_cannot_be_held_out_than_there_are(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        kind.prepare(DataConfig(train=(kind.write(tmp_path, 0, 0),), valid_size=999), quiet)
    noun = kind.unit or kind.noun
    assert caught.value.problem == f"data.valid_size asks for 999 {noun}s, and there are 120."


@every_kind
def test_the_same_content_elsewhere_is_found_in_the_cache(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kind.prepare(DataConfig(train=(kind.write(tmp_path / "here", 3, 0),), on_bad="keep-going"), quiet)
    there = kind.write(tmp_path / "there", 3, 0)
    again = kind.prepare(DataConfig(train=(there,), on_bad="keep-going"), quiet)
    assert folders(again) == folders(first)
    [left_out] = [text for label, text in again.notes if label == "left out"]
    assert there in left_out
    assert str(tmp_path / "here") not in left_out


def stored(cache: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted((cache / "corpora").rglob("*.*")) if path.is_file()}


@every_kind
def test_what_is_damaged_in_the_cache_is_built_anew_and_noted(kind: Kind, tmp_path: Path, cache: Path) -> None:
    data = DataConfig(train=(kind.write(tmp_path, 0, 0),))
    assert not [text for label, text in kind.prepare(data, quiet).notes if label == "damaged"]
    whole = stored(cache)
    for file, content in whole.items():
        if not content:
            continue
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        notes = [text for label, text in kind.prepare(data, quiet).notes if label == "damaged"]
        assert len(notes) == 1
        assert notes[0].startswith(f"in the cache, {file.parent}: not a whole corpus: ")
        assert file.name in notes[0]
        assert notes[0].endswith(". It was built anew.")
        assert stored(cache) == whole


@every_source
def test_how_often_a_file_is_parsed(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    assert kind.source is not None
    read = kind.source.read

    def counted(self: Any) -> Any:
        passes.append(self.files[0])
        return read(self)

    monkeypatch.setattr(kind.source, "read", counted)
    train, valid = kind.write(tmp_path, 0, 0), kind.write(tmp_path / "valid", 0, 1000)
    kind.prepare(DataConfig(train=(train,)), quiet)
    assert passes == [train] * kind.n_passes
    passes.clear()
    kind.prepare(DataConfig(train=(train,)), quiet)
    surveyed = kind.source is CaptionSource  # the paths of whose images are not kept
    # A second time nothing is parsed but for a vocabulary, which a run brings along where it goes on.
    assert passes == [train] * (surveyed + max(0, kind.n_passes - 2))
    passes.clear()
    kind.prepare(DataConfig(train=(train,), valid=(valid,)), quiet)
    assert passes.count(valid) == 1 + surveyed


@every_kind
def test_progress_is_told(kind: Kind, tmp_path: Path) -> None:
    said: list[str] = []
    kind.prepare(DataConfig(train=(kind.write(tmp_path, 0, 0),)), lambda what, done: said.append(what))
    assert said[-1] == ("encoding" if kind.source else "looking at the images")
