"""Sentence encoders: the mean of the states, and nothing behind it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.conftest import Saved
from tests.exchange.folders import changed, refusal

from regard.exchange.huggingface import read_folder


def sentence_encoder(saved: Saved, target: Path, pooling: Any, modules: Any = ()) -> Path:
    folder = changed(saved("bert"), target)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize(
    "pooling", [{"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, {"pooling_mode": "mean"}]
)
def test_a_sentence_encoder_takes_the_mean(pooling: Any, saved: Saved, tmp_path: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Normalize"}]
    network = read_folder(sentence_encoder(saved, tmp_path / "x", pooling, modules))
    assert (network.task, network.fields["pooling"]) == ("similarity", "mean")
    assert network.notes == ("The pooler was left out: nothing here reads it.",)


def test_other_poolings_and_more_layers(saved: Saved, tmp_path: Path) -> None:
    by_class = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    assert refusal(sentence_encoder(saved, tmp_path / "a", by_class)) == (
        "1_Pooling/config.json: pooling by cls_token has no counterpart in regard (only mean_tokens has).\n"
        "Choose a sentence encoder that takes the mean of its states."
    )
    dense = [{"type": "sentence_transformers.models.Dense"}]
    assert refusal(sentence_encoder(saved, tmp_path / "b", {"pooling_mode": "mean"}, dense)) == (
        "modules.json: a module sentence_transformers.models.Dense has no counterpart in regard.\n"
        "Choose a sentence encoder that ends with the mean of its states."
    )
    assert refusal(sentence_encoder(saved, tmp_path / "c", {"pooling_mode": "mean"}, {})) == (
        "modules.json must hold a list, not dict.\nDownload it again."
    )
