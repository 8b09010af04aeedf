"""Whatever is changed in a folder, it is read or refused as an error of ours; nothing else comes out of it."""

import contextlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.conftest import Saved
from tests.exchange.folders import refusal

from regard.errors import RegardError
from regard.exchange.huggingface import read_folder
from regard.models.model_config import ModelConfig

KINDS = ["gpt2", "llama, llama3", "qwen2, window", "bert, classes", "t5", "marian", "m2m100", "vit", "resnet, basic"]
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**24,
    2**60,
    10**40,
    0.5,
    -1e-30,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "word",
    "\0",
    [],
    [1, 2],
    [[1]],
    {},
    {"0": 1},
    {"rope_type": "llama3", "factor": 0, "low_freq_factor": 4, "high_freq_factor": 1},
]


def read_or_refuse(folder: Path, usual: ModelConfig | None = None) -> None:
    """Read a folder; the weights, too, where they are those of another network than usual."""
    with contextlib.suppress(RegardError):
        network = read_folder(folder)
        if network.config != usual:
            network.weights()


@pytest.mark.parametrize("name", KINDS)
def test_any_value_of_any_setting(name: str, saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved(name), folder)
    config = json.loads((folder / "config.json").read_text())
    drawn, usual = random.Random(name), read_folder(folder).config
    for key in config:
        for value in drawn.sample(VALUES, 2):
            (folder / "config.json").write_text(json.dumps({**config, key: value}))
            read_or_refuse(folder, usual)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_files_that_end_early(file: str, saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("gpt2"), folder)
    content = (folder / file).read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 4]:
        (folder / file).write_bytes(content[:length])
        assert file in refusal(folder)


def test_a_longer_file_than_its_header_says(saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("gpt2"), folder)
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"more")
    assert refusal(folder).startswith("model.safetensors is no safetensors file, or a damaged one: ")


def test_headers_with_other_bytes(saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("gpt2"), folder)
    content = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    drawn = random.Random(4)
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[drawn.randrange(8 + length)] = drawn.randrange(256)
        (folder / "model.safetensors").write_bytes(damaged)
        read_or_refuse(folder)
