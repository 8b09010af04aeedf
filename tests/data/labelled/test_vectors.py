"""Labelled sequences of vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.formats import Bad
from regard.data.labelled.vectors import LabelledVectors, are_vectors, read_labelled_vectors
from regard.errors import DataError


def read(*files: str, split: str = "", labelled: bool = True, **settings: Any) -> list[LabelledVectors | Bad]:
    return list(
        read_labelled_vectors(files, DataConfig(**settings), splits=(split,) if split else (), labelled=labelled)
    )


def labels(found: list[LabelledVectors | Bad]) -> list[tuple[int, str]]:
    return [(one.line, one.reason if isinstance(one, Bad) else one.label) for one in found]


@pytest.fixture
def npz(tmp_path: Path) -> str:
    vectors = np.arange(12.0).reshape(3, 2, 2)
    np.savez(
        tmp_path / "a.npz", vectors=vectors, lengths=[2, 1, 2], labels=["up", "down", " "], set=["train", "dev", "x"]
    )
    return str(tmp_path / "a.npz")


@pytest.fixture
def csv(tmp_path: Path) -> str:
    file = tmp_path / "a.csv"
    file.write_text("who,x,y,label\nann,1,2,sad\nann,3,4,sad\nbob,5,6,gay\ncat,7,8,\n")
    return str(file)


def test_an_npz_has_an_array_of_labels(npz: str) -> None:
    found = read(npz)
    assert labels(found) == [(1, "up"), (2, "down"), (3, "empty label")]
    assert isinstance(found[1], LabelledVectors)
    np.testing.assert_array_equal(found[1].vectors, [[4, 5]])
    assert labels(read(npz, labelled=False)) == [(1, "up"), (2, "down"), (3, "")]


def test_the_sequences_of_a_split(npz: str) -> None:
    assert labels(read(npz, split_column="set", split="train")) == [(1, "up"), (3, "unknown split")]
    with pytest.raises(DataError, match="in no good row does the column 'set' say 'test'"):
        read(npz, split_column="set", split="test")


def test_a_column_of_a_csv_is_the_label(csv: str) -> None:
    found = read(csv, text="who")
    assert labels(found) == [(2, "sad"), (4, "gay"), (5, "empty label")]
    assert isinstance(found[0], LabelledVectors)
    np.testing.assert_array_equal(found[0].vectors, [[1, 2], [3, 4]])
    assert [one.vectors.shape for one in read(csv, text="who", labelled=False) if isinstance(one, LabelledVectors)] == [
        (2, 2),
        (1, 2),
        (1, 2),
    ]


def test_a_csv_may_lack_labels_for_prediction(tmp_path: Path) -> None:
    file = tmp_path / "b.csv"
    file.write_text("who,x,y\nann,1,2\n")
    assert labels(read(str(file), text="who", labelled=False)) == [(2, "")]
    assert labels(read(str(file), text="who", label="mood", labelled=False)) == [(2, "")]
    with pytest.raises(DataError) as caught:
        read(str(file), text="who")
    assert caught.value.problem == f"{file} holds 2 columns: x and y."
    assert caught.value.remedy == "Say which is the label with --label."


def test_all_files_have_one_width(npz: str, tmp_path: Path) -> None:
    other = str(tmp_path / "b.npz")
    np.savez(other, vectors=np.ones((1, 2, 3)), labels=["up"])
    with pytest.raises(DataError) as caught:
        read(npz, other)
    assert caught.value.problem == f"{other}: its vectors have 3 features, those of the files before 2."
    assert caught.value.remedy == "Give all files the same features."


def test_one_vector_an_example_is_no_sequence(tmp_path: Path) -> None:
    file = str(tmp_path / "flat.npz")
    np.savez(file, vectors=np.ones((6, 3)), labels=list("abcabc"))
    with pytest.raises(DataError) as caught:
        read(file)
    assert caught.value.problem == (
        f"{file}: 'vectors' is (6, 3), one vector an example, and sequences of them were expected."
    )
    assert caught.value.remedy == ("Save it as 'vectors' of (6, length, 3), the length being 1 if there is only one.")


def test_what_holds_vectors() -> None:
    assert are_vectors(["a.npz"], TokenizerConfig())
    assert are_vectors(["a.csv"], TokenizerConfig(kind="vectors"))
    assert not are_vectors(["a.csv"], TokenizerConfig())


def test_equal_sequences_are_held_out_together(npz: str) -> None:
    first, second = ([one.key for one in read(npz) if isinstance(one, LabelledVectors)] for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


def test_missing_files_are_errors_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_labelled_vectors([str(tmp_path / "c.npz")], DataConfig())
    with pytest.raises(DataError, match="No file was given"):
        read_labelled_vectors([], DataConfig())


def test_tags_in_the_place_of_a_label(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("who,x,tag\nann,1,on\nann,2, off \nbob,3,on\nbob,4,\n")
    ann, bob = read_labelled_vectors([str(file)], DataConfig(text="who"), tagged=True)
    assert isinstance(ann, LabelledVectors)
    assert (ann.labels, ann.lines, ann.vectors.shape) == (("on", "off"), (2, 3), (2, 1))
    assert bob == Bad(str(file), 5, "empty tag", "bob")
    unlabelled = list(read_labelled_vectors([str(file)], DataConfig(text="who"), tagged=True, labelled=False))
    assert [one.vectors.shape for one in unlabelled if isinstance(one, LabelledVectors)] == [(2, 1), (2, 1)]
