"""Preprocessing of images: what a run keeps, what is decoded, and how pixels are normalised."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from regard.config import DataConfig, ModelTable
from regard.data.images.decoding import BadImageError, ImageShape
from regard.errors import DataError, UsageError
from regard.tasks.images.preprocessing import ImageInput, ImageTable, decode_inputs, split_to_score

TABLE = ImageTable(
    shape=ImageShape(4, 3), mean=(0.5, 0.25, 0.1), deviation=(0.2, 0.3, 1.0), labels=("a", "b"), counts=(3, 2)
)


def test_what_a_run_keeps_of_its_images(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "vocabulary")
    assert ImageTable.load(tmp_path / "vocabulary") == ImageTable.find(tmp_path / "vocabulary") == TABLE
    assert ImageTable.find(None) is None
    assert ImageTable.find(tmp_path) is None
    (tmp_path / "vocabulary" / "images.json").write_text('{"size": 8}')
    with pytest.raises(DataError, match=r"images\.json: not what a run keeps of its images: KeyError"):
        ImageTable.load(tmp_path / "vocabulary")


@pytest.mark.parametrize(
    "change", [{"mean": [0.5]}, {"deviation": [0.5] * 4}, {"counts": [1]}, {"mean": [10**400] * 3}, {"labels": 3}]
)
def test_values_that_do_not_belong_together(tmp_path: Path, change: dict[str, object]) -> None:
    TABLE.save(tmp_path)
    file = tmp_path / "images.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **change}))
    with pytest.raises(DataError, match=r"images\.json: not what a run keeps of its images: "):
        ImageTable.load(tmp_path)
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        ImageTable.load(tmp_path)


def test_what_follows_from_the_shape() -> None:
    data = TABLE.with_shape(DataConfig(image_size=9, channels=1))
    assert (data.image_size, data.channels) == (4, 3)
    assert TABLE.pixels == "4 × 4 pixels, in colours"
    vit, resnet = (ModelTable(preset=name) for name in ("vit-tiny", "resnet-20"))
    assert TABLE.model_fields(vit, n_outputs=2) == {"n_channels": 3, "image_size": 4, "n_outputs": 2}
    assert TABLE.model_fields(resnet, n_outputs=2) == {"n_channels": 3, "n_outputs": 2}  # it asks for no size


def test_normalising() -> None:
    images = np.random.default_rng(1).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    found = TABLE.normalise(images)
    assert (found.dtype, found.shape, found.is_contiguous()) == (torch.float32, (3, 3, 4, 5), True)
    expected = ((images / 255 - TABLE.mean) / TABLE.deviation).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
    assert torch.equal(TABLE.normalise(torch.from_numpy(images)), found)


def test_inputs_are_decoded_in_their_order(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    (tmp_path / "bad.png").write_bytes(b"x")
    inputs: list[ImageInput] = [tmp_path / "bad.png", np.zeros((6, 6), np.uint8), str(tmp_path / "red.png")]
    bad, black, red = decode_inputs(inputs, TABLE, skip_unreadable=True)
    assert (bad.name, bad.pixels) == (str(tmp_path / "bad.png"), None)
    assert bad.problem.startswith(f"{bad.name}: no image of a known kind")
    assert (black.name, black.problem, red.name) == ("array 1", "", str(tmp_path / "red.png"))
    assert black.pixels is not None and black.pixels.shape == (4, 4, 3) and not black.pixels.any()
    assert red.pixels is not None and red.pixels[0, 0].tolist() == [255, 0, 0]
    with pytest.raises(BadImageError, match="no image of a known kind"):
        decode_inputs(inputs, TABLE, skip_unreadable=False)


def test_what_is_no_image_at_all_is_an_error_even_if_unreadable_ones_are_skipped() -> None:
    with pytest.raises(UsageError, match="An image is the name of a file or an array, not int"):
        decode_inputs([3], TABLE, skip_unreadable=True)  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"^\. is a folder"):
        decode_inputs(["."], TABLE, skip_unreadable=True)


def test_the_split_to_score() -> None:
    expected = {"": ("test", False), "test": ("test", True), "valid": ("valid", True), "all": ("", False)}
    assert {split: split_to_score(split) for split in expected} == expected
