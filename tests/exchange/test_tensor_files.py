"""Files of strangers: damaged ones, pickled ones, links, pipes, and an index that names what it must not."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.exchange.conftest import Saved
from tests.exchange.folders import changed, refusal

from regard.exchange.huggingface import read_folder

DOWNLOAD = (
    "Download the model first, and give its folder, with config.json, model.safetensors and the tokenizer's files."
)


def test_no_folder_and_no_weights(saved: Saved, tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere") == (f"There is no folder FOLDER, and regard downloads nothing.\n{DOWNLOAD}")
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty") == (
        f"FOLDER is no folder of the transformers package: there is no config.json in it.\n{DOWNLOAD}"
    )
    folder = changed(saved("gpt2"), tmp_path / "bare")
    (folder / "model.safetensors").unlink()
    assert refusal(folder) == (
        "FOLDER holds no model.safetensors, and regard downloads nothing.\nDownload the weights into the folder, too."
    )


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"a": ', b"\xff\xfe", b"[" * 100_000], ids=["", "list", "cut", "bytes", "deep"]
)
def test_a_config_that_is_none(content: bytes, saved: Saved, tmp_path: Path) -> None:
    folder = changed(saved("gpt2"), tmp_path / "x")
    (folder / "config.json").write_bytes(content)
    assert re.match(
        r"config\.json (is not valid JSON: .+\.|must hold a table, not list\.)\nDownload it again\.", refusal(folder)
    )


def test_pickled_weights_are_refused_unless_asked_for(saved: Saved, tmp_path: Path) -> None:
    folder = changed(saved("gpt2"), tmp_path / "x")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "model.pt"):
        if not (folder / name).exists():
            (folder / "pytorch_model.bin").rename(folder / name)
        assert refusal(folder) == (
            "FOLDER holds no model.safetensors, and regard downloads nothing.\n"
            f"Convert {name} to safetensors, or allow pickled weights (--allow-pickle) if you trust its source."
        )
        assert read_folder(folder, allow_pickle=True).weights()


class Harmful:
    def __reduce__(self) -> Any:
        return os.system, ("touch harm",)


@pytest.mark.parametrize("content", [{"a": Harmful()}, [1, 2], {"a": 3}], ids=["code", "list", "number"])
def test_whatever_else_was_pickled_is_refused(
    content: Any, saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = changed(saved("gpt2"), tmp_path / "x")
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    assert re.match(
        r"pytorch_model\.bin holds (more than tensors, or is damaged \(\w+\)|something else than tensors by name)\.\n"
        r"Use safetensors\.",
        refusal(folder, allow_pickle=True),
    )
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_out_of_the_folder(name: str, saved: Saved, tmp_path: Path) -> None:
    folder = changed(saved("gpt2"), tmp_path / "x")
    (folder / name).unlink()
    (folder / name).symlink_to(saved("gpt2") / name)
    assert refusal(folder) == (
        f"{name} is a link that leads out of its folder, or nowhere.\nPut the file itself in its place."
    )


def test_a_pipe_is_not_waited_for(saved: Saved, tmp_path: Path) -> None:
    folder = changed(saved("gpt2"), tmp_path / "x")
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    assert refusal(folder).startswith("model.safetensors cannot be read: it is a pipe, not a file.")
    os.mkfifo(folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "it is a pipe, not a file" in refusal(folder, allow_pickle=True)


def with_index(saved: Saved, target: Path, weight_map: Any) -> Path:
    folder = changed(saved("gpt2"), target)
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


@pytest.mark.parametrize(
    "name", ["../part.safetensors", "/etc/part.safetensors", "a\\b.safetensors", "part.bin", "a\0.safetensors"]
)
def test_an_index_that_names_other_files(name: str, saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_index(saved, tmp_path / "x", {"wte.weight": name})) == (
        f"model.safetensors.index.json names the file '{name}', which is no .safetensors file of its folder.\n"
        "Do not use this folder: an index names only files beside it."
    )


@pytest.mark.parametrize("weight_map", [None, [], {}, {"a": 3}], ids=str)
def test_an_index_that_names_none(weight_map: Any, saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_index(saved, tmp_path / "x", weight_map)) == (
        "model.safetensors.index.json does not say which file holds which tensor (weight_map).\nDownload it again."
    )


def test_an_index_whose_files_are_missing_too_many_or_say_the_same(saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_index(saved, tmp_path / "a", {"x": "part.safetensors", "y": "other.safetensors"})) == (
        "FOLDER lacks the file other.safetensors, which model.safetensors.index.json names.\nDownload it too."
    )
    many = {str(number): f"{number}.safetensors" for number in range(1001)}
    assert refusal(with_index(saved, tmp_path / "b", many)) == (
        "model.safetensors.index.json names 1,001 files, more than 1,000.\nDownload it again."
    )
    twice = with_index(saved, tmp_path / "c", {"x": "part.safetensors", "y": "other.safetensors"})
    shutil.copy(twice / "part.safetensors", twice / "other.safetensors")
    assert re.match(r"part\.safetensors and other\.safetensors both hold transformer\.\S+\.\n", refusal(twice))
