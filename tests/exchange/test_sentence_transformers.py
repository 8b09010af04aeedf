"""Sentence encoders: the mean of the states or the class token's, normalised or not, and nothing else behind them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.conftest import Saved
from tests.exchange.folders import changed, refusal

from regard.exchange.huggingface import read_folder
from regard.exchange.sentence_transformers import SentenceEncoder, read_sentence_encoder, write_sentence_encoder


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
    assert network.vectors == SentenceEncoder(pooling="mean", normalised=True)
    assert network.notes == ("The pooler was left out: nothing here reads it.",)


@pytest.mark.parametrize(
    "pooling", [{"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, {"pooling_mode": "cls"}]
)
def test_a_sentence_encoder_takes_the_class_token(pooling: Any, saved: Saved, tmp_path: Path) -> None:
    folder = sentence_encoder(saved, tmp_path / "x", pooling)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 16, "do_lower_case": false}')
    network = read_folder(folder)
    assert network.vectors == SentenceEncoder(pooling="class", max_length=14)
    assert network.notes[-1] == (
        "A text's vector is the state of its class token; fine-tuned on similarity, it is the mean of all states."
    )


@pytest.mark.parametrize(
    "encoder", [SentenceEncoder(), SentenceEncoder(pooling="class", normalised=True, max_length=30)]
)
def test_what_is_written_is_read_again(encoder: SentenceEncoder, tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path, encoder, d_model=8, n_positions=40)
    assert read_sentence_encoder(tmp_path) == encoder


def test_a_length_that_follows_from_the_positions_is_not_written(tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path, SentenceEncoder(max_length=38), d_model=8, n_positions=40)
    assert read_sentence_encoder(tmp_path) == SentenceEncoder()


def test_other_poolings_and_more_layers(saved: Saved, tmp_path: Path) -> None:
    both = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
    assert refusal(sentence_encoder(saved, tmp_path / "a", both)) == (
        "1_Pooling/config.json: pooling by mean_tokens, max_tokens has no counterpart in regard "
        "(known here: mean_tokens, cls_token).\n"
        "Choose a sentence encoder that takes the mean of its states, or the class token's."
    )
    dense = [{"type": "sentence_transformers.models.Dense"}]
    assert refusal(sentence_encoder(saved, tmp_path / "b", {"pooling_mode": "mean"}, dense)) == (
        "modules.json: a module sentence_transformers.models.Dense has no counterpart in regard.\n"
        "Choose a sentence encoder that is made of no more than Transformer, Pooling, Normalize."
    )
    foreign = [{"type": "their_code.Transformer"}]
    assert refusal(sentence_encoder(saved, tmp_path / "d", {"pooling_mode": "mean"}, foreign)).startswith(
        "modules.json: a module their_code.Transformer has no counterpart in regard.\n"
    )
    lower = sentence_encoder(saved, tmp_path / "e", {"pooling_mode": "mean"})
    (lower / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    assert refusal(lower).startswith(
        "sentence_bert_config.json: do_lower_case = true has no counterpart in regard (only false has).\n"
    )
    assert refusal(sentence_encoder(saved, tmp_path / "c", {"pooling_mode": "mean"}, {})) == (
        "modules.json must hold a list, not dict.\nDownload it again."
    )
