"""A residual network's accuracy as its blocks are switched off."""

from pathlib import Path

import pytest

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
    assert first.together == first.alone
    with run.model.without_blocks([first.name, second.name]):
        both = run.evaluate(data, split="all").scores[1].value
    assert second.together == both
    with run.model.without_blocks([second.name]):
        assert second.alone == run.evaluate(data, split="all").scores[1].value


def test_only_residual_networks_have_blocks_to_switch_off(image_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = regard.load(image_run)
    monkeypatch.setattr(run, "model", run.model.stem)  # any other network
    with pytest.raises(UsageError, match="is no network of blocks that could be switched off"):
        from regard.inspection.block_ablation import switch_off_blocks

        switch_off_blocks(run, None)  # type: ignore[arg-type]
