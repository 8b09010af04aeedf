"""Weights and vocabulary alone: what the ten lines of Python in the card load is what the run has."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard


def code_of(folder: Path) -> str:
    """The block of Python in a card."""
    _, _, rest = (folder / "README.md").read_text().partition("```python\n")
    return rest.partition("```")[0]


def test_the_code_of_the_card_runs_as_it_stands(trained: Path, tmp_path: Path) -> None:
    run = regard.load(trained, device="cpu", threads=1)
    assert run.export("safetensors", tmp_path / "out") == ()
    names = {one.name for one in (tmp_path / "out").iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    code = f"{code_of(tmp_path / 'out')}\nimport torch\ntorch.save(weights, '../weights.pt')"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True, check=True
    )
    ids = run.task.vocabulary.source.encode("A dog runs.")
    weights = run.model.state_dict()
    assert ended.stdout == f"{len(weights)} tensors of a Transformer\n{ids}\n"
    loaded = torch.load(tmp_path / "weights.pt", weights_only=True)
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())


def run_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        exec(code_of(folder), found)
    return found


def test_images_have_no_tokens(image_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = regard.load(image_run, device="cpu", threads=1)
    run.export("safetensors", tmp_path / "out")
    found = run_here(tmp_path / "out", monkeypatch)
    assert found["weights"].keys() == run.model.state_dict().keys()
    config = found["config"]
    assert (config["task"], config["network"], config["tokenizers"]) == ("image", "ResNet", {})
    assert config["config"]["n_blocks"] == [2, 1]
    assert config["labels"] == ["lying", "none", "standing"]
    assert config["image"] == {
        "size": 8,
        "mean": list(run.task.table.mean),
        "deviation": list(run.task.table.deviation),
    }
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_each_side_has_its_tokens(
    tiny: dict[str, Any], corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**tiny, "tokenizer.shared": False, "model.tied": "target", "training.steps": 1}
    run: Any = regard.train("translate", train=corpus, run=tmp_path / "run", settings=settings)
    run.export("safetensors", tmp_path / "out")
    found = run_here(tmp_path / "out", monkeypatch)
    assert found["config"]["tokenizers"]["target_tokenizer.json"] == {
        "end": "<end>",
        "pad": "<pad>",
        "start": "<start>",
        "unknown": "<unk>",
    }
    assert found["config"]["tied"] == {"output.weight": "target_embedding.tokens.weight"}
    for side in ("source", "target"):
        file = json.loads((tmp_path / "out" / f"{side}_tokenizer.json").read_text())
        assert file == json.loads(getattr(run.task.vocabulary, side).to_json())


def test_numbers_are_those_of_the_data(regress_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = regard.load(regress_run, device="cpu", threads=1)
    run.export("safetensors", tmp_path / "out")
    run.model.load_state_dict(run_here(tmp_path / "out", monkeypatch)["weights"])
    table = run.task.table
    raw = run.predict("AAC").value  # which the run would scale once more
    expected = regard.load(regress_run, device="cpu", threads=1).predict("AAC").value
    assert (raw - table.offset) / table.scale == pytest.approx(expected, abs=1e-5)
