"""Configs and tensors that have no counterpart, or do not fit each other: every message names the setting or the tensor."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.exchange.conftest import Saved
from tests.exchange.folders import changed, refusal
from torch import Tensor

from regard.exchange.architectures import ARCHITECTURES

# -- settings of theirs -------------------------------------------------------------------------------------------------

NO_COUNTERPART = [
    ("gpt2", {"activation_function": "relu"}, "activation_function = relu", "known here: gelu_new, gelu_pytorch_tanh"),
    ("gpt2", {"n_inner": 64}, "n_inner = 64", "only 128 has"),
    ("gpt2", {"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon = 1e-06", "only 1e-05 has"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = true", "only false has"),
    ("gpt2", {"tie_word_embeddings": False}, "tie_word_embeddings = false", "only true has"),
    ("bert", {"hidden_act": "relu"}, "hidden_act = relu", "only gelu has"),
    (
        "bert",
        {"position_embedding_type": "relative_key"},
        "position_embedding_type = relative_key",
        "only absolute has",
    ),
    ("bert", {"layer_norm_eps": 1e-5}, "layer_norm_eps = 1e-05", "only 1e-12 has"),
    ("bert", {"is_decoder": True}, "is_decoder = true", "only false has"),
    (
        "bert, classes",
        {"problem_type": "multi_label_classification"},
        "problem_type = multi_label_classification",
        "classes exclude each other",
    ),
    (
        "t5",
        {"feed_forward_proj": "gated-tanh"},
        "feed_forward_proj = gated-tanh",
        "known here: relu, gelu, silu, gated-relu, gated-gelu, gated-silu",
    ),
    ("t5", {"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon = 1e-05", "only 1e-06 has"),
    ("marian", {"normalize_before": True}, "normalize_before = true", "only false has"),
    (
        "marian",
        {"normalize_embedding": True},
        "normalize_embedding = true",
        "embeddings are a sum of tokens and positions",
    ),
    ("marian", {"decoder_ffn_dim": 64}, "decoder_ffn_dim = 64", "as in the encoder: 48"),
    ("marian", {"decoder_attention_heads": 2}, "decoder_attention_heads = 2", "as in the encoder: 4"),
    (
        "marian",
        {"activation_function": "tanh"},
        "activation_function = tanh",
        "known here: relu, gelu, gelu_new, silu, swish",
    ),
    ("marian", {"decoder_vocab_size": 41}, "decoder_vocab_size = 41", "with one matrix for source and target: 40"),
    (
        "marian",
        {"tie_word_embeddings": False},
        "tie_word_embeddings = false",
        "with one matrix for source and target, it is the output layer's too",
    ),
    ("marian", {"max_position_embeddings": 10**6}, "max_position_embeddings = 1000000", "at most 65,536"),
    ("m2m100", {"tie_word_embeddings": False}, "tie_word_embeddings = false", "only true has"),
    ("m2m100", {"d_model": 2}, "d_model = 2", "their positions need 4 features"),
    ("pegasus", {"normalize_before": False}, "normalize_before = false", "only true has"),
    ("vit", {"qkv_bias": False}, "qkv_bias = false", "only true has"),
    ("resnet, basic", {"hidden_sizes": [4, 6]}, "hidden_sizes = [4, 6]", "stages double their width: [4, 8]"),
    ("resnet, basic", {"hidden_act": "gelu"}, "hidden_act = gelu", "only relu has"),
    ("resnet, basic", {"layer_type": "deep"}, "layer_type = deep", "known here: basic, bottleneck"),
    ("resnet, bottleneck", {"downsample_in_bottleneck": True}, "downsample_in_bottleneck = true", "only false has"),
    ("llama", {"mlp_bias": True}, "mlp_bias = true", "only false has"),
    ("llama", {"hidden_act": "gelu"}, "hidden_act = gelu", "only silu has"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5", "whole heads turn"),
    ("mistral, window", {"sliding_window": 1}, "sliding_window = 1", "a window holds another token at least"),
    (
        "qwen2, window",
        {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types = ['full_attention', 'sliding_attention']",
        "all layers have one window",
    ),
    (
        "qwen2, window",
        {"layer_types": ..., "max_window_layers": 1},
        "max_window_layers = 1",
        "all layers have one window",
    ),
]


@pytest.mark.parametrize(
    ("name", "settings", "problem", "reason"), NO_COUNTERPART, ids=[f"{one[0]}: {one[2]}" for one in NO_COUNTERPART]
)
def test_settings_without_a_counterpart(
    name: str, settings: dict[str, Any], problem: str, reason: str, saved: Saved, tmp_path: Path
) -> None:
    assert refusal(changed(saved(name), tmp_path / "other", **settings)) == (
        f"config.json: {problem} has no counterpart in regard ({reason}).\nChoose a model without that setting."
    )


@pytest.mark.parametrize("kind", ["yarn", "dynamic", "longrope"])
def test_other_ways_of_slowing_rotary_angles(kind: str, saved: Saved, tmp_path: Path) -> None:
    newer = changed(saved("llama"), tmp_path / "newer", rope_parameters={"rope_type": kind, "factor": 2.0})
    known = "has no counterpart in regard (known here: default, linear, llama3).\nChoose a model without that setting."
    assert refusal(newer) == f"config.json: rope_parameters: rope_type = {kind} {known}"
    older = {"rope_parameters": ..., "rope_scaling": {"type": kind, "factor": 2.0}}
    assert refusal(changed(saved("llama"), tmp_path / "older", **older)) == (
        f"config.json: rope_scaling: type = {kind} {known}"
    )


WRONG_VALUES = [
    ("gpt2", {"n_layer": "3"}, "config.json: n_layer must be a whole number, not '3'."),
    ("gpt2", {"n_layer": True}, "config.json: n_layer must be a whole number, not true."),
    ("gpt2", {"n_layer": -1}, "config.json: n_layer must be a whole number, not -1."),
    ("gpt2", {"vocab_size": ...}, "config.json does not say vocab_size."),
    ("gpt2", {"resid_pdrop": "none"}, "config.json: resid_pdrop must be a number, not 'none'."),
    ("gpt2", {"eos_token_id": "end"}, "config.json: eos_token_id must be a whole number, not 'end'."),
    ("marian", {"scale_embedding": 1}, "config.json: scale_embedding must be true or false, not 1."),
    ("marian", {"activation_function": 3}, "config.json: activation_function must be text, not 3."),
    ("llama", {"rope_parameters": [1]}, "config.json: rope_parameters must be a table, not [1]."),
    ("resnet, basic", {"depths": [2, "1"]}, "config.json: depths must be whole numbers, not [2, '1']."),
    ("vit", {"image_size": [16, 8]}, "config.json: image_size = [16, 8] is no square."),
    (
        "bert, classes",
        {"id2label": {"0": "bad", "2": "good"}},
        "config.json: id2label must name the classes 0 to 1, each by a text.",
    ),
    (
        "bert, classes",
        {"id2label": ..., "num_labels": 10**9},
        "config.json: num_labels must be from 1 to 1,000,000, not 1000000000.",
    ),
    ("gpt2", {"architectures": "GPT2"}, "config.json: architectures must be words, not 'GPT2'."),
]


@pytest.mark.parametrize(("name", "settings", "problem"), WRONG_VALUES, ids=[one[2] for one in WRONG_VALUES])
def test_values_of_another_type(
    name: str, settings: dict[str, Any], problem: str, saved: Saved, tmp_path: Path
) -> None:
    assert refusal(changed(saved(name), tmp_path / "other", **settings)).split("\n")[0] == problem


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        (
            "gpt2",
            {"n_layer": 10**9},
            "config.json: model.n_layers must be at least 1 and at most 1,000, not 1000000000.",
        ),
        ("gpt2", {"n_head": 0}, "config.json: model.n_heads must be at least 1, not 0."),
        (
            "gpt2",
            {"n_positions": 2**40},
            "config.json: model.context must be at least 1 and at most 16,777,216, not 1099511627776.",
        ),
        (
            "gpt2",
            {"n_head": 5},
            "config.json: A width of 32 cannot be divided among 5 heads.\n"
            "Download the model again, with the config.json of its weights.",
        ),
        ("gpt2", {"n_layer": 999}, "FOLDER lacks the tensor transformer.h.3.ln_1.weight, which GPT2LMHeadModel has by"),
        (
            "vit",
            {"image_size": 2**24, "patch_size": 1, "hidden_size": 2**16},
            "config.json: The network is too large for any machine",
        ),
    ],
    ids=["layers", "no heads", "positions", "heads", "more layers", "patches"],
)
def test_absurd_sizes(name: str, settings: dict[str, Any], problem: str, saved: Saved, tmp_path: Path) -> None:
    assert refusal(changed(saved(name), tmp_path / "other", **settings)).startswith(problem)


def test_an_unknown_architecture_is_told_the_known_ones(saved: Saved, tmp_path: Path) -> None:
    known = ", ".join(name for one in ARCHITECTURES for name in one.classes)
    assert refusal(changed(saved("gpt2"), tmp_path / "a", architectures=["RobertaForMaskedLM"])) == (
        "config.json names the architecture RobertaForMaskedLM, which has no counterpart in regard.\n"
        f"Choose a model of one of: {known}."
    )
    assert refusal(changed(saved("gpt2"), tmp_path / "b", architectures=..., model_type=...)).startswith(
        "config.json names no architecture, which has no counterpart in regard.\n"
    )


def test_code_that_comes_with_a_model_is_not_run(saved: Saved, tmp_path: Path) -> None:
    assert refusal(changed(saved("gpt2"), tmp_path / "other", auto_map={"AutoModel": "code.Model"})) == (
        "config.json needs code that comes with the model (auto_map), and regard runs none.\n"
        "Choose a model of an architecture that regard has."
    )


def test_quantised_weights(saved: Saved, tmp_path: Path) -> None:
    assert refusal(changed(saved("llama"), tmp_path / "other", quantization_config={"bits": 4})) == (
        "config.json: the weights are quantised (quantization_config).\nChoose a model that is not quantised."
    )


# -- tensors -----------------------------------------------------------------------------------------------------------


def with_tensors(folder: Path, target: Path, **changes: Tensor | None) -> Path:
    """A copy of a folder with other tensors; None for those that are missing."""
    shutil.copytree(folder, target)
    tensors = {**load_file(folder / "model.safetensors"), **changes}
    save_file({key: one for key, one in tensors.items() if one is not None}, target / "model.safetensors")
    return target


NORM = "transformer.h.1.ln_1.weight"
AGAIN = "\nDownload the model again, with the config.json of its weights."


def test_a_tensor_that_is_missing(saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_tensors(saved("gpt2"), tmp_path / "x", **{NORM: None})) == (
        f"FOLDER lacks the tensor {NORM}, which GPT2LMHeadModel has by its config.json.{AGAIN}"
    )


def test_a_tensor_too_many(saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_tensors(saved("gpt2"), tmp_path / "x", extra=torch.zeros(2))) == (
        f"model.safetensors holds extra, for which GPT2LMHeadModel has no place by its config.json.{AGAIN}"
    )


def test_a_tensor_of_another_shape(saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_tensors(saved("gpt2"), tmp_path / "x", **{NORM: torch.ones(31)})) == (
        f"model.safetensors: {NORM} has the shape [31], and by config.json it must have [32].{AGAIN}"
    )


def test_a_tensor_that_holds_no_floats(saved: Saved, tmp_path: Path) -> None:
    assert refusal(with_tensors(saved("gpt2"), tmp_path / "x", **{NORM: torch.ones(32, dtype=torch.int8)})) == (
        f"model.safetensors: {NORM} holds int8, not floats.\nChoose a model that is not quantised."
    )


def test_a_tied_matrix_that_differs(saved: Saved, tmp_path: Path) -> None:
    folder = with_tensors(saved("gpt2"), tmp_path / "x", **{"lm_head.weight": torch.zeros(40, 32)})
    assert refusal(folder) == (
        "model.safetensors: lm_head.weight and transformer.wte.weight are one matrix by config.json, and differ.\n"
        "Choose a model whose weights fit its config (tie_word_embeddings)."
    )


def test_two_names_of_one_tensor(saved: Saved, tmp_path: Path) -> None:
    name = "embeddings.LayerNorm"
    folder = with_tensors(saved("bert"), tmp_path / "x", **{f"{name}.gamma": torch.ones(32)})
    assert re.fullmatch(
        rf"model\.safetensors: {name}\.(gamma|weight) and {name}\.(gamma|weight) are two names of one tensor\.\n"
        r"Download the model again\.",
        refusal(folder),
    )
