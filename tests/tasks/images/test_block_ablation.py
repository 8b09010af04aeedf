"""A residual network's accuracy as its blocks are ablated."""

from pathlib import Path

import pytest
from regard.inspection.block_ablation import ablate_blocks
from torch import nn

import regard
from regard.errors import UsageError
from regard.models.resnet import ResNet


def test_blocks_go_one_by_one_and_one_after_another(image_run: Path) -> None:
    run = regard.load(image_run)
    data = [str(image_run.parent / "train")]
    assert isinstance(run.model, ResNet)
    plain = run.evaluate(data, split="all")
    assert plain.blocks == ()
    found = run.evaluate(data, split="all", blocks=True)
    assert found.scores == plain.scores
    possible = [name for name, kept in run.model.block_names.items() if kept]
    assert sorted(one.name for one in found.blocks) == possible == ["stage.0.block.0", "stage.0.block.1"]
    first, second = found.blocks
    assert first.alone >= second.alone
    assert first.cumulative == first.alone
    with run.model.without_blocks([first.name, second.name]):
        both = run.evaluate(data, split="all").scores[1].value
    assert second.cumulative == both
    with run.model.without_blocks([second.name]):
        assert second.alone == run.evaluate(data, split="all").scores[1].value


def test_only_residual_networks_have_blocks_to_ablate(image_run: Path) -> None:
    run = regard.load(image_run)
    examples = run.task.read([str(image_run.parent / "train")], run.config.data, split="", progress=lambda *_: None)
    with pytest.raises(UsageError) as caught:
        ablate_blocks(nn.Linear(2, 2), examples, task=run.task, run="runs/x")
    assert caught.value.problem == "--blocks needs a ResNet run; runs/x is a Linear."
    assert caught.value.remedy == "Name a run of the task image with a ResNet, such as resnet-20."
