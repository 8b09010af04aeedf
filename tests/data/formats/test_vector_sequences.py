"""Sequences of vectors from NPZ and CSV files."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from regard.data.formats import stored_arrays
from regard.data.formats.vector_sequences import read_vector_sequences
from regard.errors import DataError


def test_each_array_of_an_npz_is_a_sequence(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, walk=np.arange(6).reshape(3, 2), rest=np.ones((1, 2)))
    found = list(read_vector_sequences(file))
    assert [one.name for one in found] == ["walk", "rest"]
    np.testing.assert_array_equal(found[0].vectors, [[0, 1], [2, 3], [4, 5]])
    assert found[0].vectors.dtype == np.float32


def test_one_padded_array_is_cut_by_its_lengths(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, vectors=np.arange(12.0).reshape(2, 3, 2), lengths=np.array([3, 1]))
    assert [len(one.vectors) for one in read_vector_sequences(file)] == [3, 1]


def test_rows_of_a_csv_are_vectors(tmp_path: Path) -> None:
    file = tmp_path / "sensor.csv"
    file.write_text("x,y\n1,2\n3,4.5\n")
    [one] = read_vector_sequences(file)
    assert (one.name, one.line) == ("sensor", 2)
    np.testing.assert_array_equal(one.vectors, [[1, 2], [3, 4.5]])


def test_a_column_tells_sequences_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("who,x\nann,1\nann,2\nbob,3\n")
    found = list(read_vector_sequences(file, group="who"))
    assert [(one.name, one.line, one.vectors.ravel().tolist()) for one in found] == [
        ("ann", 2, [1, 2]),
        ("bob", 4, [3]),
    ]


@pytest.mark.parametrize(
    ("text", "group", "problem"),
    [
        ("x,y\n1,two\n", "", "2: the column 'y' holds 'two', and a number was expected."),
        ("x,y\n1,nan\n", "", "2: the column 'y' holds 'nan', and a number was expected."),
        ("x\n1e300\n", "", "2: the column 'x' holds '1e300', and a number was expected."),
        (f"x\n{'?' * 90}\n", "", f"2: the column 'x' holds '{'?' * 20}…', and a number was expected."),
        ("x,y\n1\n", "", "2: 2 columns expected, 1 found."),
        ("w,x\na,1\nb,2\na,3\n", "w", "4: the sequence 'a' goes on after another has begun."),
        ("x,y\n", "", " no sequence is in it."),
    ],
)
def test_what_is_wrong_with_a_csv_is_told(tmp_path: Path, text: str, group: str, problem: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        list(read_vector_sequences(file, group=group))
    assert caught.value.problem == f"{file}:{problem}"


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("w,x\na,1\n")
    with pytest.raises(DataError, match=r"a\.csv has no column 'v'\."):
        list(read_vector_sequences(file, group="v"))


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"a": np.array([[1.0, np.nan]])}, " 'a' holds no number at [0, 1]."),
        ({"a": np.array([[1.0], [1e300]])}, " 'a' holds no number at [1, 0]."),
        ({"a": np.array(["x"])}, " 'a' is not (T, features) of numbers, but (1, 1) of <U1."),
        ({"a": np.ones((2, 3)), "b": np.ones((2, 4))}, " the vectors of 'b' have 4 features, those before 3."),
        (
            {"vectors": np.ones((2, 3, 1)), "lengths": np.array([3, 4])},
            " sequence 1 has the length 4, and there are 1 to 3 vectors.",
        ),
        (
            {"vectors": np.ones((2, 3, 1)), "lengths": np.array([3.0])},
            " lengths are 2 whole numbers, one a sequence, not an array (1,) of float64.",
        ),
        ({}, " no sequence is in it."),
    ],
)
def test_what_is_wrong_with_an_npz_is_told(tmp_path: Path, arrays: dict[str, np.ndarray], problem: str) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, **arrays)
    with pytest.raises(DataError) as caught:
        list(read_vector_sequences(file))
    assert caught.value.problem == f"{file}:{problem}"


def test_no_pickle_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, a=np.array([{"code": 1}], dtype=object))
    with pytest.raises(DataError, match="array 'a': it holds Python objects, which are never read"):
        list(read_vector_sequences(file))
    (tmp_path / "b.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match="not a whole NPZ file of numbers"):
        list(read_vector_sequences(tmp_path / "b.npz"))
    (tmp_path / "c.txt").write_text("1 2")
    with pytest.raises(DataError, match="sequences of vectors are read from"):
        list(read_vector_sequences(tmp_path / "c.txt"))


def test_what_is_said_of_a_whole_sequence(tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_text("who,x,Mood,y\nann,1,sad,2\nann,3,sad,4\nbob,5,gay,6\n")
    found = list(read_vector_sequences(csv, group="who", constants=("mood",)))
    assert [one.fields for one in found] == [{"mood": "sad"}, {"mood": "gay"}]
    np.testing.assert_array_equal(found[0].vectors, [[1, 2], [3, 4]])
    lacking = list(read_vector_sequences(csv, group="who", constants=("Mood", "set"), may_lack=True))
    assert [tuple(one.fields.values()) for one in lacking] == [("sad", ""), ("gay", "")]
    npz = tmp_path / "a.npz"
    np.savez(npz, vectors=np.ones((2, 3, 2)), labels=np.array([1, 0]), set=np.array(["train", "test"]))
    padded = list(read_vector_sequences(npz, constants=("labels", "set")))
    assert [tuple(one.fields.values()) for one in padded] == [("1", "train"), ("0", "test")]
    np.savez(npz, walk=np.ones((3, 2)), rest=np.ones((1, 2)), labels=np.array([0.5, 2]))
    named = list(read_vector_sequences(npz, constants=("labels",)))
    assert [(one.name, one.fields["labels"]) for one in named] == [("walk", "0.5"), ("rest", "2.0")]


def test_what_is_said_of_a_whole_sequence_does_not_change_within_it(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("who,x,mood\nann,1,sad\nann,3,gay\n")
    with pytest.raises(DataError) as caught:
        list(read_vector_sequences(file, group="who", constants=("mood",)))
    assert caught.value.problem == f"{file}:3: 'mood' changes from 'sad' to 'gay' within the sequence 'ann'."
    assert caught.value.remedy == "Correct it; or name the column that tells sequences apart with --text."
    with pytest.raises(DataError, match="has no column 'moot'") as other:
        list(read_vector_sequences(file, group="who", constants=("moot",)))
    assert other.value.remedy == "Did you mean mood?"


def test_as_many_labels_as_sequences(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, vectors=np.ones((2, 3, 2)), labels=np.ones(3))
    with pytest.raises(DataError) as caught:
        list(read_vector_sequences(file, constants=("labels",)))
    assert caught.value.problem == f"{file}: 'labels' is not 2 numbers or texts, one a sequence, but (3,) of float64."
    assert caught.value.remedy == "Save one for each sequence."
    with pytest.raises(DataError, match="there is no array 'label'") as other:
        list(read_vector_sequences(file, constants=("label",)))
    assert other.value.remedy == "Did you mean labels?"


def test_a_flipped_byte_anywhere_in_an_npz_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez_compressed(file, walk=np.arange(6.0).reshape(3, 2), labels=np.array(["x"]))
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(DataError):
            list(read_vector_sequences(file, constants=("labels",)))


def test_an_array_of_columns_and_what_a_header_may_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, walk=np.asfortranarray([[1, 2], [3, 4], [5, 6]]))
    assert next(read_vector_sequences(file)).vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    np.savez(file, vectors=np.asfortranarray(np.arange(12).reshape(2, 3, 2)))
    assert [one.vectors.tolist() for one in read_vector_sequences(file)] == np.arange(12).reshape(2, 3, 2).tolist()
    np.savez(file, vectors=np.ones((2, 3, 0)))
    with pytest.raises(DataError, match=r"'0' is not \(T, features\) of numbers, but \(3, 0\) of float64\."):
        list(read_vector_sequences(file))
    monkeypatch.setattr(stored_arrays, "MAX_BYTES", 100)
    np.savez_compressed(file, walk=np.zeros((3, 5)))
    with pytest.raises(DataError) as caught:
        list(read_vector_sequences(file))
    assert caught.value.problem == f"{file}, array 'walk': 120 bytes as a whole, at most 100 are read."
    assert caught.value.remedy == "Save it as several arrays."


def test_tags_of_vectors_in_a_csv(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("who,x,tag,mood\nann,1,on,sad\nann,2,off,sad\nbob,3,,gay\n")
    ann, bob = read_vector_sequences(file, group="who", constants=("mood",), tags="tag")
    assert (ann.tags, ann.lines, ann.fields) == (("on", "off"), (2, 3), {"mood": "sad"})
    assert (bob.tags, bob.lines) == (("",), (4,))
    np.testing.assert_array_equal(ann.vectors, [[1], [2]])
    with pytest.raises(DataError, match=r"'tga'.*\nDid you mean tag"):
        list(read_vector_sequences(file, group="who", constants=("mood",), tags="tga"))
    file.write_text("who,x\nann,1\nann,2\n")
    [one] = read_vector_sequences(file, group="who", tags="tag", may_lack=True)
    assert (one.tags, one.vectors.shape) == (("", ""), (2, 1))


def test_tags_of_vectors_in_an_npz(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    vectors = np.arange(12.0).reshape(2, 3, 2)
    np.savez(file, vectors=vectors, lengths=[3, 1], labels=[["a", "b", "a"], ["b", "", ""]])
    padded = [(one.tags, one.lines) for one in read_vector_sequences(file, tags="labels")]
    assert padded == [(("a", "b", "a"), (1, 1, 1)), (("b",), (2,))]
    np.savez(file, vectors=vectors, lengths=[3, 1], labels=["a", "b", "a", "b"])
    assert [(one.tags, one.lines) for one in read_vector_sequences(file, tags="labels")] == padded
    np.savez(file, walk=vectors[0], rest=vectors[1][:1], labels=[1, 0, 1, 0])
    assert [one.tags for one in read_vector_sequences(file, tags="labels")] == [("1", "0", "1"), ("0",)]
    np.savez(file, walk=vectors[0], labels=["a", "b", "c"])  # one sequence, though one a row
    assert [one.tags for one in read_vector_sequences(file, tags="labels")] == [("a", "b", "c")]
    np.savez(file, walk=vectors[0])
    assert [one.tags for one in read_vector_sequences(file, tags="labels", may_lack=True)] == [()]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        (
            {"labels": ["a", "b"]},
            r"'labels' is not 6 whole numbers or texts, one a vector, or \(2, 3\) of padded ones, ",
        ),
        ({"labels": np.ones(6)}, "'labels' is not 6 whole numbers or texts"),
        ({"lengths": [3, 2], "labels": ["a"] * 6}, "'labels' is not 5 whole numbers or texts"),
        ({"lengths": [3.0, 2.0], "labels": ["a"] * 5}, "lengths are 2 whole numbers"),
        ({"tags": ["a"] * 6}, "there is no array 'labels'"),
    ],
)
def test_tags_that_do_not_fit(tmp_path: Path, arrays: dict[str, object], problem: str) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, vectors=np.zeros((2, 3, 2)), **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(DataError, match=problem):
        list(read_vector_sequences(file, tags="labels"))
