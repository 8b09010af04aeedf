"""Tensors of GGUF files: the numbers of every type that the package reads, and bounds that are kept."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tests.exchange.gguf_files import Draft, Type

from regard.errors import DataError
from regard.exchange.gguf_header import GgufHeader, StoredTensor, read_gguf_header
from regard.exchange.gguf_tensors import GgufTensors, find_gguf_tensors

UNREADABLE = ("Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64", "Q1_0")
READABLE = [one for one in Type if one.name not in UNREADABLE]


def file_of(folder: Path, numbers: np.ndarray[Any, Any], kind: gguf.GGMLQuantizationType) -> GgufTensors:
    draft = Draft({"general.architecture": "llama"}, {"a": (numbers, kind), "b": (np.ones(3, np.float32), Type.F32)})
    path = draft.write(folder / "model.gguf")
    return find_gguf_tensors(path, read_gguf_header(path))


@pytest.mark.parametrize("kind", READABLE, ids=[one.name for one in READABLE])
def test_numbers_of_every_type(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    n_numbers, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    # Small bytes: whatever of them is a scale, it is finite.
    blocks = np.random.default_rng(1).integers(0, 60, (5, 2 * n_bytes), dtype=np.uint8)
    tensors = file_of(tmp_path, blocks, kind)
    assert tensors.shapes == {"a": (5, 2 * n_numbers), "b": (3,)}
    assert tensors.files == {"a": tensors.path, "b": tensors.path}
    assert tensors.quantised == ([] if kind.name in ("F32", "F16", "BF16") else [kind.name])
    with tensors.reading() as read:
        found, ones = read("a"), read("b")
    assert found.dtype == torch.float32
    assert found.count_nonzero() > 0
    np.testing.assert_array_equal(found.numpy(), gguf.dequantize(blocks, kind))
    assert ones.tolist() == [1, 1, 1]


def test_eight_bits_are_whole_numbers_with_a_scale(tmp_path: Path) -> None:
    """Q8_0 (llama.cpp): 32 whole numbers of one byte behind a scale in half precision."""
    whole = np.arange(-64, 64, dtype=np.int8).reshape(2, 2, 32)
    scales = np.array([[[0.5], [0.25]], [[2], [0.125]]], np.float16)
    blocks = np.concatenate([scales.view(np.uint8), whole.view(np.uint8)], axis=2).reshape(2, 68)
    with file_of(tmp_path, blocks, Type.Q8_0).reading() as read:
        np.testing.assert_array_equal(read("a").numpy(), (whole * scales.astype(np.float32)).reshape(2, 64))


@pytest.mark.parametrize("name", UNREADABLE)
def test_types_that_cannot_be_dequantised(name: str, tmp_path: Path) -> None:
    kind = Type[name]
    header = GgufHeader(metadata={}, tensors={"a": StoredTensor((1, 256), kind.value, 32)}, file_size=4096)
    with pytest.raises(DataError) as caught:
        find_gguf_tensors(tmp_path / "model.gguf", header)
    assert str(caught.value) == (
        f"{tmp_path / 'model.gguf'}: a is of the type {name}, which cannot be dequantised.\n"
        "Choose a file of the same model in F16, Q8_0 or Q4_K_M."
    )


def test_a_type_that_the_package_does_not_know(tmp_path: Path) -> None:
    header = GgufHeader(metadata={}, tensors={"a": StoredTensor((2,), 777, 32)}, file_size=4096)
    with pytest.raises(DataError) as caught:
        find_gguf_tensors(tmp_path / "model.gguf", header)
    assert str(caught.value) == (
        f"{tmp_path / 'model.gguf'}: a is of the type 777, which the installed package gguf does not know.\n"
        "Update it (pip install --upgrade gguf), or choose a file in F16 or Q8_0."
    )


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"a": StoredTensor((3, 5), 0, 64)}, "a should end at byte 124, and the file has 100 bytes."),
        (
            {"a": StoredTensor((2**63, 2**63), 0, 64)},
            f"a should end at byte {2**128 + 64:,}, and the file has 100 bytes.",
        ),
        ({"a": StoredTensor((4,), 0, 2**60)}, f"a should end at byte {2**60 + 16:,}, and the file has 100 bytes."),
        (
            {"a": StoredTensor((4,), 0, 32), "b": StoredTensor((12,), 0, 0)},
            "a begins inside another tensor.",
        ),
        ({"a": StoredTensor((4, 33), 8, 32)}, "rows of a have 33 numbers, no multiple of 32."),
    ],
    ids=["too large", "far too large", "too late", "overlap", "crooked rows"],
)
def test_places_that_cannot_be(tensors: dict[str, StoredTensor], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with pytest.raises(DataError) as caught:
        find_gguf_tensors(path, GgufHeader(metadata={}, tensors=tensors, file_size=100))
    assert str(caught.value) == f"{path} is no GGUF file, or a damaged one: {problem}\nDownload it again."


def test_numbers_that_are_none(tmp_path: Path) -> None:
    for number in (np.nan, np.inf):
        tensors = file_of(tmp_path, np.array([1, number], np.float32), Type.F32)
        with tensors.reading() as read, pytest.raises(DataError) as caught:
            read("a")
        assert str(caught.value) == (
            f"{tensors.path} is no GGUF file, or a damaged one: a holds NaN or infinite numbers.\nDownload it again."
        )


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    tensors = file_of(tmp_path, np.ones(50, np.float32), Type.F32)
    tensors.path.write_bytes(tensors.path.read_bytes()[:200])
    with tensors.reading() as read, pytest.raises(DataError, match="a damaged one: a reaches beyond its end"):
        read("a")
    tensors.path.unlink()
    with pytest.raises(DataError, match=r"cannot be read: No such file or directory\.\nDownload it again\."):
        tensors.reading().__enter__()
