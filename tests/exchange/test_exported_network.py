"""Networks of ours that have no counterpart, and weights that do not fit: every message."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import build
from regard.errors import ConfigError, UsageError
from regard.exchange.exported_network import export_network
from regard.exchange.huggingface import write_folder
from regard.models.presets import PRESETS, build_model

SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 8, "n_heads": 2, "d_ff": 8}
PAIRS = {"source_vocab": 9, "target_vocab": 9, **SIZES}
MARIAN, PEGASUS, RESNET = "MarianMTModel", "PegasusForConditionalGeneration", "ResNetForImageClassification"
OURS = [
    ("gpt-nano", {"vocab": 9, "window": 4}, "model.window = 4", "GPT2LMHeadModel"),
    (
        "llama-nano",
        {"vocab": 9, "window": 4, "biases": "all"},
        "model.biases = all with model.window = 4",
        "MistralForCausalLM",
    ),
    ("bert-tiny", {"vocab": 0, "n_features": 3}, "model.n_features = 3", "BertModel"),
    (
        "bert-tiny",
        {"vocab": 9, "head": "sequence", "n_outputs": 2, "pooling": "mean"},
        "model.pooling = mean",
        "BertForSequenceClassification",
    ),
    (
        "t5-tiny",
        {"source_vocab": 9, "target_vocab": 9, "feed_forward": "gated", "activation": "gelu"},
        "model.feed_forward = gated with model.activation = gelu",
        "T5ForConditionalGeneration",
    ),
    ("transformer-tiny", PAIRS, "model.norm = rms", PEGASUS),
    ("transformer-tiny", {**PAIRS, "norm": "layer"}, "model.feed_forward = gated", PEGASUS),
    ("transformer-base", {**PAIRS, "positions": "rotary"}, "model.positions = rotary", MARIAN),
    (
        "transformer-base",
        {**PAIRS, "positions": "none", "norm_order": "pre"},
        "model.positions = none",
        PEGASUS,
    ),
    (
        "transformer-base",
        {**PAIRS, "join_positions": "concatenate"},
        "model.join_positions = concatenate",
        MARIAN,
    ),
    ("transformer-base", {**PAIRS, "norm_order": "none"}, "model.norm_order = none", MARIAN),
    (
        "transformer-base",
        {**PAIRS, "norm_order": "pre", "tied": "none"},
        "model.tied = none",
        PEGASUS,
    ),
    ("resnet-20", {"n_channels": 3, "n_outputs": 2}, "model.stem = small", RESNET),
    (
        "plain-20",
        {"n_channels": 3, "n_outputs": 2, "stem": "large"},
        "model.skip = none",
        RESNET,
    ),
]


@pytest.mark.parametrize(
    ("preset", "fields", "problem", "their_class"), OURS, ids=[f"{one[0]}: {one[2]}" for one in OURS]
)
def test_settings_of_ours_without_a_counterpart(
    preset: str, fields: dict[str, Any], problem: str, their_class: str
) -> None:
    config = build(PRESETS[preset].config, {**PRESETS[preset].fields, **fields}, origin="test")
    with pytest.raises(ConfigError) as caught:
        export_network(config, build_model(config).state_dict())
    assert str(caught.value) == (
        f"{problem} has no counterpart in the transformers package's {their_class}.\n"
        "Export it in another format, or train a model without that setting."
    )


def test_models_of_ours_without_a_counterpart() -> None:
    config = build(
        PRESETS["rnn"].config, {**PRESETS["rnn"].fields, "source_vocab": 9, "target_vocab": 9}, origin="test"
    )
    with pytest.raises(ConfigError) as caught:
        export_network(config, build_model(config).state_dict())
    assert str(caught.value) == (
        "Recurrent has no counterpart in the transformers package.\n"
        "Models that have one: Bert, GPT, Llama, ResNet, T5, Transformer, ViT."
    )


def test_weights_and_labels_that_do_not_fit() -> None:
    sizes = {"vocab": 9, "head": "sequence", "n_outputs": 2}
    config = build(PRESETS["bert-tiny"].config, {**PRESETS["bert-tiny"].fields, **sizes}, origin="test")
    weights = build_model(config).state_dict()
    with pytest.raises(ConfigError, match=r"^There are 3 labels for 2 outputs\.\nGive a label for each output\.$"):
        export_network(config, weights, labels=("a", "b", "c"))
    fit = "The weights do not fit the model's config: head.output.bias has"
    remedy = "Give the weights of the same model (model.state_dict())."
    others: dict[str, Any] = {f"{fit} [3], not [2].": {**weights, "head.output.bias": torch.zeros(3)}}
    others[f"{fit} None, not [2]."] = {key: one for key, one in weights.items() if key != "head.output.bias"}
    for problem, given in others.items():
        with pytest.raises(ConfigError, match=f"^{re.escape(problem)}\n{re.escape(remedy)}$"):
            export_network(config, given)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    config = build(PRESETS["gpt-nano"].config, {**PRESETS["gpt-nano"].fields, "vocab": 9}, origin="test")
    (tmp_path / "file").write_text("")
    problem = r"file cannot be written: File exists\.\nGive another folder, or free some space\."
    with pytest.raises(UsageError, match=problem):
        write_folder(tmp_path / "file", config, build_model(config).state_dict())
