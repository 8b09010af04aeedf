"""A residual network's accuracy as its blocks are ablated."""

from pathlib import Path

import pytest
from torch import nn

from regard.api import ImageClassifier
from regard.errors import UsageError
from regard.models.resnet import ResNet
from regard.tasks.images.block_ablation import check_ablatable


def test_blocks_go_one_by_one_and_one_after_another(image_run: Path) -> None:
    run = ImageClassifier.load(image_run)
    data = image_run.parent / "train"
    assert isinstance(run.model, ResNet)
    plain = run.evaluate(data, split="all")
    assert "blocks" not in plain.to_json()
    stages: list[tuple[str, int]] = []
    found = run.evaluate(data, split="all", blocks=True, progress=lambda what, done: stages.append((what, done)))
    assert found.scores == plain.scores
    possible = [name for name, kept in run.model.block_names.items() if kept]
    blocks = found.to_json()["blocks"]
    assert sorted(one["name"] for one in blocks) == possible == ["stage.0.block.0", "stage.0.block.1"]
    first, second = blocks
    assert first["alone"] >= second["alone"]
    assert first["cumulative"] == first["alone"]
    with run.model.without_blocks([first["name"], second["name"]]):
        assert second["cumulative"] == run.evaluate(data, split="all")["accuracy"]
    with run.model.without_blocks([second["name"]]):
        assert second["alone"] == run.evaluate(data, split="all")["accuracy"]
    assert stages[-1] == ("ablating blocks", 3 * 60)  # two alone, both together
    assert found.notes[-1] == "Blocks not ablated, because they change the shape: stage.1.block.0."
    table = found.sections[-1].table
    assert table is not None and table.headings == ("block removed", "accuracy, alone", "cumulative")
    assert table.rows[0] == ("nothing", f"{found['accuracy']:.2f}", "")
    assert table.rows[2] == (second["name"], f"{second['alone']:.2f}", f"{second['cumulative']:.2f}")


def test_only_residual_networks_have_blocks_to_ablate() -> None:
    with pytest.raises(UsageError) as caught:
        check_ablatable(nn.Linear(2, 2))
    assert caught.value.problem == "Block ablation needs a ResNet, and the model of this run is a Linear."
    assert caught.value.remedy == "Name a run of the task image with a ResNet, such as resnet-20."
