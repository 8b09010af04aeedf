import dataclasses
from pathlib import Path
from typing import Any

import pytest

from regard.cli.seeds import is_complete, is_run_of
from regard.config import ModelTable, override, read
from regard.runs.folder import RunFolder
from regard.training.summary import summarise

AS_ASKED: dict[str, Any] = {
    "n_heads": 1,
    "d_model": 32,
    "d_ff": 64,
    "dropout": 0.0,
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
}
AS_ASKED |= {"norm": "layer", "positions": "sinusoidal", "feed_forward": "plain", "activation": "relu"}


@pytest.fixture
def asked(trained: Path, corpus: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings of the trained run as somebody asked for them: paths from here, any threads, a few fields."""
    monkeypatch.chdir(Path(corpus[0]).parent)
    config = read(trained / "config.toml")
    return dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, train=tuple(Path(file).name for file in corpus)),
        model=dataclasses.replace(config.model, fields=AS_ASKED),
        runtime=dataclasses.replace(config.runtime, threads=0),
    )


def test_a_run_has_the_settings_that_were_asked_for(trained: Path, asked: Any) -> None:
    assert is_run_of(RunFolder(trained), asked)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"data.train": ["b.en", "b.de"]},
        {"training.steps": 121},
        {"runtime.threads": 2},
        {"model.dropout": 0.1},
        {"model.preset": "transformer-small"},
        {"tokenizer.vocab_size": 330},
    ],
)
def test_other_settings_are_another_run(trained: Path, asked: Any, change: dict[str, Any]) -> None:
    assert not is_run_of(RunFolder(trained), override(asked, change))


def test_what_followed_the_data_need_not_be_asked_for(classify_run: Path) -> None:
    config = read(classify_run / "config.toml")
    assert config.model.fields["pooling"] == "mean"
    fields = {name: value for name, value in config.model.fields.items() if name != "pooling"}
    assert is_run_of(
        RunFolder(classify_run),
        dataclasses.replace(config, model=ModelTable(preset=config.model.preset, fields=fields)),
    )
    other = dataclasses.replace(
        config, model=ModelTable(preset=config.model.preset, fields={**fields, "pooling": "class"})
    )
    assert not is_run_of(RunFolder(classify_run), other)


def test_a_field_that_was_changed_and_now_is_not_asked_for(trained: Path, asked: Any) -> None:
    fields = {name: value for name, value in AS_ASKED.items() if name != "dropout"}
    without = dataclasses.replace(asked, model=dataclasses.replace(asked.model, fields=fields))
    assert not is_run_of(RunFolder(trained), without)


def test_a_complete_run_has_met_its_end_is_validated_there_and_averaged(trained: Path) -> None:
    summary = summarise(RunFolder(trained))
    assert is_complete(summary)
    assert not is_complete(dataclasses.replace(summary, end=None))
    assert not is_complete(dataclasses.replace(summary, average={}))
    unscored = tuple(dataclasses.replace(one, scores={}) if one.step == 120 else one for one in summary.checkpoints)
    assert not is_complete(dataclasses.replace(summary, checkpoints=unscored))
    config = override(summary.config, {"training.average": 0})
    assert is_complete(dataclasses.replace(summary, average={}, config=config))


def test_fields_that_are_lists_in_the_file_are_the_same_settings(image_run: Path) -> None:
    config = read(image_run / "config.toml")
    fields = {"n_blocks": (2, 1), "width": 8}
    asked = dataclasses.replace(config, model=dataclasses.replace(config.model, fields=fields))
    assert is_run_of(RunFolder(image_run), asked)
    assert not is_run_of(RunFolder(image_run), override(asked, {"model.n_blocks": [2, 2]}))
