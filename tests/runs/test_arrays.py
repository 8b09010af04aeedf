"""Arrays in a small file: the same bytes for the same arrays, and nothing but regular files of bounded size."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.runs.arrays import load_arrays, save_arrays

ARRAYS = {"b": np.arange(6, dtype=np.uint64).reshape(2, 3), "a": np.array([0.5], np.float32), "none": np.empty((0, 4))}
FACTS = {"task": "tag", "scores": {"z": 1.5, "a": None}}


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "one.safetensors"
    save_arrays(file, ARRAYS, facts=FACTS)
    arrays, facts = load_arrays(file, most=10_000)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].tolist()) == (array.dtype, array.tolist())
        assert arrays[name].shape == array.shape
    assert json.dumps(facts) == json.dumps(FACTS)  # in their order
    save_arrays(tmp_path / "two.safetensors", dict(reversed(ARRAYS.items())), facts=FACTS)
    assert (tmp_path / "two.safetensors").read_bytes() == file.read_bytes()


def test_a_view_is_written_as_it_looks(tmp_path: Path) -> None:
    save_arrays(tmp_path / "t", {"t": np.arange(6).reshape(2, 3).T}, facts={})
    assert load_arrays(tmp_path / "t", most=10_000)[0]["t"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_single_number_has_no_axis(tmp_path: Path) -> None:
    save_arrays(tmp_path / "t", {"t": np.array(1.5)}, facts={})
    assert load_arrays(tmp_path / "t", most=10_000)[0]["t"].shape == ()


def test_files_of_others(tmp_path: Path) -> None:
    file = tmp_path / "one.safetensors"
    save_arrays(file, ARRAYS, facts=FACTS)
    content = file.read_bytes()
    with pytest.raises(OSError, match="it has more than"):
        load_arrays(file, most=len(content) - 1)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(OSError, match="it is a link, not a file"):
        load_arrays(tmp_path / "link", most=10_000)
    header = int.from_bytes(content[:8], "little")
    for damaged in (
        b"",
        content[:20],
        content[:-1],
        content.replace(b'"facts"', b'"facto"'),
        content.replace(b"U64", b"Q99"),
        (2**40).to_bytes(8, "little") + content[8:],
        content[: 8 + header].replace(b"tag", b"t\\g") + content[8 + header :],
    ):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"\w"):
            load_arrays(file, most=10_000)
