"""Folders of CTranslate2: what stands in them, every type of numbers, names of tokens, and every refusal."""

import json
import os
import re
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import tokenizers
import torch
from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES
from tests.exchange.test_ctranslate2_networks import configured, log_probs, named, padded, rows, shaken, sources, words
from tokenizers import models

from regard.config import build
from regard.data.text.roles import SPECIALS, Roles
from regard.data.text.tokenizer import Tokenizer
from regard.errors import ConfigError, RegardError, UsageError
from regard.exchange.ctranslate2 import N_POSITIONS, TYPES, convert, position_limit, supports, token_names
from regard.models.gpt import GPTConfig
from regard.models.presets import PRESETS, build_model

PAIRS = {"source_vocab": 44, "target_vocab": 44}


def preset(name: str, **fields: Any) -> Any:
    return build(PRESETS[name].config, {**PRESETS[name].fields, **fields}, origin="test")


def converted(folder: Path, name: str, *, shaken_by: float = 0.1, **options: Any) -> Any:
    """Convert a small network, and return it."""
    config, source, target = configured(name)
    model = shaken(build_model(config, seed=1), by=shaken_by)
    convert(folder, config, model.state_dict(), source=source, target=target, **options)
    return model


# -- types of numbers ---------------------------------------------------------------------------------------------------


def test_the_types_are_the_librarys() -> None:
    assert sorted(TYPES) == sorted(ACCEPTED_MODEL_TYPES)


@pytest.mark.parametrize("compute_type", TYPES)
def test_every_type_loads_and_is_near(compute_type: str, tmp_path: Path) -> None:
    """Those that this processor lacks are turned into others on loading."""
    model = converted(tmp_path / "model", "since", shaken_by=0.03, compute_type=compute_type)
    theirs = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    tokenizer = words(40)
    names, read, written = token_names(tokenizer), sources(tokenizer, [20, 3]), rows([9, 15], tokenizer, seed=6)
    found = theirs.score_batch(named(read, names), named(written, names))
    with torch.inference_mode():
        logits = model(*padded(read), padded([[tokenizer.start_id, *row] for row in written])[0])
    for scores, row, own in zip(found, written, logits, strict=True):
        expected = log_probs(own, [*row, tokenizer.end_id])
        np.testing.assert_allclose(scores.log_probs, expected, atol=1e-4 if compute_type == "float32" else 0.15, rtol=0)


@pytest.mark.parametrize("name", ["the paper's", "t5", "gpt", "llama", "bert"])
def test_every_kind_runs_in_int8(name: str, tmp_path: Path) -> None:
    converted(tmp_path / "exact", name)
    converted(tmp_path / "int8", name, compute_type="int8")
    tokenizer = words(40)
    read = named(sources(tokenizer, [12, 3]), token_names(tokenizer))
    kinds: dict[str, Any] = {"gpt": ctranslate2.Generator, "llama": ctranslate2.Generator, "bert": ctranslate2.Encoder}
    found = []
    for folder in ("exact", "int8"):
        theirs = kinds.get(name, ctranslate2.Translator)(str(tmp_path / folder), intra_threads=1)
        if isinstance(theirs, ctranslate2.Encoder):
            found.append(np.asarray(theirs.forward_batch(read).last_hidden_state))
        elif isinstance(theirs, ctranslate2.Generator):
            found.append(np.asarray(theirs.forward_batch(read)))
        else:
            found.append(np.concatenate([one.log_probs for one in theirs.score_batch(read, read)]))
    exact, near = found
    assert 0 < np.abs(near - exact).mean() < 0.1 * np.abs(exact).std()
    assert (tmp_path / "int8" / "model.bin").stat().st_size < (tmp_path / "exact" / "model.bin").stat().st_size


@pytest.mark.parametrize("compute_type", ["int8", "int16", "float16"])
def test_the_weights_stay_as_they_are(compute_type: str, tmp_path: Path) -> None:
    config, source, target = configured("untied")
    weights = shaken(build_model(config, seed=1)).state_dict()
    before = {name: tensor.clone() for name, tensor in weights.items()}
    convert(tmp_path / "model", config, weights, source=source, target=target, compute_type=compute_type)
    assert all(torch.equal(weights[name], before[name]) for name in before)


def test_weights_of_half_precision_are_taken(tmp_path: Path) -> None:
    config, source, target = configured("gpt")
    weights = {name: tensor.bfloat16() for name, tensor in shaken(build_model(config)).state_dict().items()}
    convert(tmp_path / "half", config, weights, source=source, target=target)
    convert(
        tmp_path / "single", config, {name: one.float() for name, one in weights.items()}, source=source, target=target
    )
    assert (tmp_path / "half" / "model.bin").read_bytes() == (tmp_path / "single" / "model.bin").read_bytes()


# -- what stands in a folder --------------------------------------------------------------------------------------------


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_of_a_translator(tmp_path: Path) -> None:
    converted(tmp_path / "runs" / "model", "the paper's")
    folder = tmp_path / "runs" / "model"
    assert files_of(folder) == ["config.json", "model.bin", "shared_vocabulary.json"]
    assert files_of(tmp_path / "runs") == ["model"]
    assert json.loads((folder / "shared_vocabulary.json").read_text()) == token_names(words(40))
    config = config_of(folder)
    assert (config["unk_token"], config["eos_token"]) == ("<unk>", "<end>")
    assert config["bos_token"] == config["decoder_start_token"] == "<start>"
    assert not config["add_source_bos"] and not config["add_source_eos"]
    assert config["layer_norm_epsilon"] == 1e-5


def test_a_folder_with_two_vocabularies(tmp_path: Path) -> None:
    converted(tmp_path / "model", "two vocabularies")
    assert json.loads((tmp_path / "model" / "source_vocabulary.json").read_text()) == token_names(words(40))
    assert json.loads((tmp_path / "model" / "target_vocabulary.json").read_text()) == token_names(words(43))


def test_a_folder_of_a_language_model(tmp_path: Path) -> None:
    converted(tmp_path / "model", "llama, every head its keys")
    assert files_of(tmp_path / "model") == ["config.json", "model.bin", "vocabulary.json"]
    config = config_of(tmp_path / "model")
    assert (config["unk_token"], config["bos_token"], config["eos_token"]) == ("<unk>", "<end>", "<end>")
    assert config["layer_norm_epsilon"] == 1e-2


def test_one_matrix_is_written_once(tmp_path: Path) -> None:
    """Of tied weights, and of the positions of both sides; the table of sinusoids is the largest of all."""
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 16, "tied": "all"}
    config = preset("transformer-base", **PAIRS, **sizes)
    weights = build_model(config).state_dict()
    convert(tmp_path / "model", config, weights, source=words(40), target=words(40))
    n_numbers = sum({tensor.data_ptr(): tensor.numel() for tensor in weights.values()}.values())
    size = (tmp_path / "model" / "model.bin").stat().st_size
    assert size < 4 * (n_numbers + N_POSITIONS * 16) + 6000


def test_a_vocabulary_map_leaves_only_its_candidates(tmp_path: Path) -> None:
    given = "".join(f"w{number}\tw1 w2\n" for number in range(40)).encode()
    converted(tmp_path / "model", "since", vocabulary_map=given)
    assert (tmp_path / "model" / "vmap.txt").read_bytes() == given
    theirs = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    read = named(sources(words(40), [12, 3, 7]), token_names(words(40)))
    options = {"beam_size": 1, "max_decoding_length": 12}
    found = [
        {token for one in theirs.translate_batch(read, use_vmap=mapped, **options) for token in one.hypotheses[0]}
        for mapped in (False, True)
    ]
    assert found[1] <= {"w1", "w2", *SPECIALS}
    assert not found[0] <= {"w1", "w2", *SPECIALS}


# -- names of tokens ----------------------------------------------------------------------------------------------------


def imported(tokens: list[str], specials: list[str], roles: Roles) -> Tokenizer:
    """A tokenizer as somebody else's, whose special tokens have their own names and roles."""
    library = tokenizers.Tokenizer(models.WordLevel({token: id for id, token in enumerate(tokens)}, unk_token=""))
    library.add_special_tokens(specials)
    return Tokenizer(library, roles)


def test_names_are_the_tokens_by_id() -> None:
    tokenizer = words(40)
    names = token_names(tokenizer)
    assert names[:5] == [*SPECIALS, "w0"]
    assert {name: id for id, name in enumerate(names)} == tokenizer.vocabulary


def test_rows_without_a_token_have_names_of_their_own() -> None:
    tokenizer = imported(["</s>", "a", "<unused_1>"], ["</s>"], Roles(end="</s>", rows=6))
    assert token_names(tokenizer) == ["</s>", "a", "<unused_1>", "<unused_0>", "<unused_2>", "<unused_3>"]


def test_tokens_without_a_row_have_no_name() -> None:
    tokenizer = imported(["<unk>", "</s>", "a", "b"], ["<unk>", "</s>"], Roles(end="</s>", unknown="<unk>", rows=3))
    assert token_names(tokenizer) == ["<unk>", "</s>", "a"]


@pytest.mark.parametrize(
    ("roles", "unknown"),
    [
        (Roles(end="</s>"), "</s>"),
        (Roles(end="</s>", pad="<pad>"), "<pad>"),
        (Roles(end="</s>", pad="<pad>", rows=8), "<unused_2>"),
        (Roles(end="</s>", unknown="<unk>", rows=8), "<unk>"),
    ],
)
def test_a_vocabulary_without_an_unknown_token(roles: Roles, unknown: str, tmp_path: Path) -> None:
    tokenizer = imported(["</s>", "<pad>", "<unk>", "a", "b"], ["</s>", "<pad>", "<unk>"], roles)
    config = build(
        GPTConfig,
        {"vocab": tokenizer.vocab_size, "n_layers": 1, "n_heads": 1, "d_model": 8, "context": 8},
        origin="test",
    )
    convert(tmp_path / "model", config, build_model(config).state_dict(), source=tokenizer, target=tokenizer)
    assert config_of(tmp_path / "model")["unk_token"] == unknown
    theirs = ctranslate2.Generator(str(tmp_path / "model"), intra_threads=1)
    logits = np.asarray(theirs.forward_batch([[name] for name in token_names(tokenizer)]))
    with torch.inference_mode():
        expected = build_model(config).eval()(torch.arange(tokenizer.vocab_size)[:, None])
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_names_may_be_any_characters(tmp_path: Path) -> None:
    """And the unknown token that the target has need not be one of the source's."""
    source = imported(["</s>", "😀", "\n", " ", "\u2028", "a b", "\x00", "é"], ["</s>"], Roles(end="</s>"))
    config = preset("transformer-tiny", source_vocab=8, target_vocab=44, tied="none")
    model = build_model(config).eval()
    convert(tmp_path / "model", config, model.state_dict(), source=source, target=words(40))
    theirs = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    [found] = theirs.score_batch([token_names(source)], [["w1"]])
    with torch.inference_mode():
        logits = model(torch.arange(8)[None], torch.tensor([8]), torch.tensor([[words(40).start_id, 5]]))
    expected = log_probs(logits[0], [5, words(40).end_id])
    np.testing.assert_allclose(found.log_probs, expected, atol=1e-4, rtol=0)


def test_a_text_begins_with_what_stands_in_front_of_every_text(tmp_path: Path) -> None:
    roles = Roles(end="</s>", start="<s>", prefix=("<s>",))
    tokenizer = imported(["</s>", "<s>", "a"], ["</s>", "<s>"], roles)
    config = build(GPTConfig, {"vocab": 3, "n_layers": 1, "n_heads": 1, "d_model": 8, "context": 8}, origin="test")
    convert(tmp_path / "model", config, build_model(config).state_dict(), source=tokenizer, target=tokenizer)
    assert config_of(tmp_path / "model")["bos_token"] == "<s>"


# -- how long -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        (preset("transformer-base", **PAIRS), N_POSITIONS),
        (preset("transformer-base", **PAIRS, positions="none"), N_POSITIONS),
        (preset("transformer-base", **PAIRS, positions="learned", max_positions=77), 77),
        (preset("transformer-tiny", **PAIRS), None),
        (preset("t5-tiny", **PAIRS), None),
        (preset("gpt-nano", vocab=44), 64),
        (preset("llama-nano", vocab=44), None),
        (preset("bert-tiny", vocab=44), 512),
    ],
)
def test_how_long_a_sequence_may_be(config: Any, limit: int | None) -> None:
    assert position_limit(config) == limit


def test_the_last_position(tmp_path: Path) -> None:
    converted(tmp_path / "model", "the paper's")
    theirs = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    options = {"beam_size": 1, "max_decoding_length": 1, "max_input_length": 0}
    theirs.translate_batch([["w1"] * N_POSITIONS], **options)
    with pytest.raises(RuntimeError, match=f"positions >= {N_POSITIONS}"):
        theirs.translate_batch([["w1"] * (N_POSITIONS + 1)], **options)


# -- refusals -----------------------------------------------------------------------------------------------------------

UNSUPPORTED = [
    (preset("transformer-base", **PAIRS, window=32), "model.window = 32"),
    (preset("transformer-base", **PAIRS, norm_order="none"), "model.norm_order = none"),
    (preset("transformer-base", **PAIRS, positions="fraction"), "model.positions = fraction"),
    (preset("transformer-base", **PAIRS, join_positions="concatenate"), "model.join_positions = concatenate"),
    (preset("gpt-nano", vocab=44, window=7), "model.window = 7"),
    (preset("llama-nano", vocab=44, window=7), "model.window = 7"),
    (preset("bert-tiny", vocab=0, n_features=3), "model.n_features = 3"),
]


def refusal(folder: Path, config: Any, **options: Any) -> RegardError:
    """What is said; no weight is looked at before, and nothing is left behind."""
    given = {"source": words(40), "target": words(40), **options}
    before = files_of(folder.parent)
    with pytest.raises(RegardError) as caught:
        convert(folder, config, {}, **given)
    assert files_of(folder.parent) == before
    return caught.value


@pytest.mark.parametrize(("config", "setting"), UNSUPPORTED, ids=[setting for _, setting in UNSUPPORTED])
def test_settings_without_a_counterpart(config: Any, setting: str, tmp_path: Path) -> None:
    assert supports(config) == setting
    error = refusal(tmp_path / "model", config)
    assert isinstance(error, ConfigError)
    assert str(error) == (
        f"{setting} has no counterpart in CTranslate2.\n"
        "Export it in another format, or train a model without that setting."
    )


@pytest.mark.parametrize("name", ["rnn", "birnn", "vit-tiny", "captioner-vit"])
def test_models_without_a_counterpart(name: str, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {
        "rnn": PAIRS,
        "birnn": {"vocab": 44},
        "vit-tiny": {"n_channels": 3, "image_size": 16, "n_outputs": 3},
        "captioner-vit": {"n_channels": 3, "image_size": 16, "vocab": 44},
    }
    kinds = {"rnn": "Recurrent", "birnn": "RecurrentEncoder", "vit-tiny": "ViT", "captioner-vit": "Captioner"}
    config = preset(name, **sizes[name])
    assert supports(config) == kinds[name]
    assert str(refusal(tmp_path / "model", config)) == (
        f"{kinds[name]} has no counterpart in CTranslate2.\nModels that have one: Bert, GPT, Llama, T5, Transformer."
    )


@pytest.mark.parametrize("name", ["transformer-tiny", "transformer-base", "t5-tiny", "gpt2", "llama-mini", "bert-tiny"])
def test_presets_that_have_a_counterpart(name: str) -> None:
    sizes = PAIRS if name.startswith(("transformer", "t5")) else {"vocab": 44}
    assert supports(preset(name, **sizes)) == ""


def test_tokenizers_of_another_network(tmp_path: Path) -> None:
    fit = "and the tokenizer has 47 tokens.\nGive the tokenizers that the model was trained with."
    pairs, other = preset("transformer-base", **PAIRS), {"source": words(43), "target": words(43)}
    assert str(refusal(tmp_path / "model", pairs, **other)) == f"model.source_vocab is 44, {fit}"
    assert str(refusal(tmp_path / "model", pairs, target=words(43))) == f"model.target_vocab is 44, {fit}"
    assert str(refusal(tmp_path / "model", preset("gpt-nano", vocab=44), **other)) == f"model.vocab is 44, {fit}"


def test_an_unknown_type(tmp_path: Path) -> None:
    error = refusal(tmp_path / "model", preset("gpt-nano", vocab=44), compute_type="int8_float23")
    assert isinstance(error, UsageError)
    assert str(error) == "There is no compute type 'int8_float23'.\nDid you mean int8_float32?"


def test_a_vocabulary_map_needs_a_source(tmp_path: Path) -> None:
    assert str(refusal(tmp_path / "model", preset("gpt-nano", vocab=44), vocabulary_map=b"w1\tw2\n")) == (
        "A vocabulary map says what source tokens become, and this model has no source.\n"
        "Leave it out, or convert an encoder-decoder."
    )


def test_a_folder_that_is_there(tmp_path: Path) -> None:
    folder, file, link = (tmp_path / name for name in ("folder", "file", "link"))
    folder.mkdir()
    file.write_text("")
    link.symlink_to("nowhere")
    for path in (folder, file, link):
        assert str(refusal(path, preset("gpt-nano", vocab=44))) == f"{path} is there already.\nGive a new folder."


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config, source, target = configured("gpt")
    weights = build_model(config).state_dict()
    problem = (
        r"file/model cannot be written: (File exists|Not a directory)\.\nGive another folder, or free some space\.$"
    )
    with pytest.raises(UsageError, match=problem):
        convert(tmp_path / "file" / "model", config, weights, source=source, target=target)
    assert files_of(tmp_path) == ["file"]


def test_what_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=re.escape("cannot be written: No space left on device.")):
        converted(tmp_path / "model", "gpt")
    assert files_of(tmp_path) == []


def test_weights_that_are_missing_leave_nothing(tmp_path: Path) -> None:
    config, source, target = configured("gpt")
    with pytest.raises(KeyError, match=r"embedding\.tokens\.weight"):
        convert(tmp_path / "model", config, {}, source=source, target=target)
    assert files_of(tmp_path) == []
