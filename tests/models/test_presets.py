"""The sizes people know by name."""

import dataclasses

import pytest
import torch

from regard.config import ModelTable, RunConfig, from_tables, to_tables
from regard.errors import ConfigError, UsageError
from regard.models.bert import BertConfig
from regard.models.presets import (
    PRESETS,
    build_model,
    check_model,
    count_parameters,
    decided_by_data,
    default_preset,
    find_preset,
    model_config,
    resolved,
)
from regard.models.transformer import Transformer, TransformerConfig


def sizes(name: str) -> tuple[int, int, int, int, int]:
    config = model_config(ModelTable(preset=name), origin="test", source_vocab=9, target_vocab=9)
    return config.n_encoder_layers, config.n_decoder_layers, config.d_model, config.d_ff, config.n_heads


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformer-tiny", (4, 4, 128, 256, 4)),
        ("transformer-small", (3, 3, 256, 1024, 4)),
        ("transformer-base", (6, 6, 512, 2048, 8)),  # Vaswani et al. 2017, table 3
        ("transformer-big", (6, 6, 1024, 4096, 16)),  # the same
    ],
)
def test_sizes(name: str, expected: tuple[int, ...]) -> None:
    assert sizes(name) == expected


@pytest.mark.parametrize(
    # Post-norm with one shared matrix for 37,000 tokens; the paper rounds to 65 and 213 million (table 3).
    ("name", "expected"),
    [("transformer-base", 63_082_496), ("transformer-big", 214_245_376)],
)
def test_parameters_of_the_papers_models(name: str, expected: int) -> None:
    config = model_config(ModelTable(preset=name), origin="test", source_vocab=9, target_vocab=9)
    assert (config.norm_order, config.tied, config.positions) == ("post", "all", "sinusoidal")
    assert count_parameters(PRESETS[name], 37_000) == expected


@pytest.mark.parametrize("name", ["rnn", "rnn-attention", "birnn-attention"])
def test_the_recurrent_models_are_as_large_as_the_tiny_transformer(name: str) -> None:
    expected = count_parameters(PRESETS["transformer-tiny"], 8000)
    assert abs(count_parameters(PRESETS[name], 8000) / expected - 1) < 0.12


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Turc et al. 2019, table 1: L layers, H wide; H / 64 heads, 4 H inside.
        ("bert-tiny", (2, 2, 128, 512)),
        ("bert-mini", (4, 4, 256, 1024)),
        ("bert-small", (4, 8, 512, 2048)),
        ("bert-base", (12, 12, 768, 3072)),  # Devlin et al. 2019, 3
    ],
)
def test_sizes_of_the_encoders(name: str, expected: tuple[int, ...]) -> None:
    config = model_config(ModelTable(preset=name), origin="test", vocab=9)
    assert isinstance(config, BertConfig)
    assert (config.n_layers, config.n_heads, config.d_model, config.d_ff) == expected
    assert (config.max_positions, config.pooling, config.head) == (512, "class", "none")


def test_the_published_count_of_the_base_encoder() -> None:
    # The released BERT base, uncased: 30,522 tokens, with its pooler and without any head.
    assert count_parameters(PRESETS["bert-base"], 30_522) == 109_482_240


@pytest.mark.parametrize("name", ["birnn", "lstm"])
def test_the_recurrent_encoders_are_as_large_as_the_tiny_bert(name: str) -> None:
    expected = count_parameters(PRESETS["bert-tiny"], 8000)
    assert abs(count_parameters(PRESETS[name], 8000) / expected - 1) < 0.05


def test_the_task_decides_the_head() -> None:
    table = ModelTable(preset="bert-tiny", fields={"pooling": "mean", "head": "words", "n_outputs": 7})
    config = model_config(table, origin="test", vocab=50, head="sequence", n_outputs=3, n_features=0)
    assert isinstance(config, BertConfig)
    assert (config.head, config.n_outputs, config.pooling) == ("sequence", 3, "mean")
    whole = resolved(table, config)
    run = from_tables(to_tables(RunConfig(task="classify", model=whole)), origin="test")
    assert model_config(run.model, origin="test") == config
    check_model(run.model, task="classify", origin="test")


def test_what_reads_vectors_passes_the_check_before_the_data_is_known() -> None:
    fields = {"vocab": 0, "n_features": 5, "head": "sequence", "n_outputs": 2}
    check_model(ModelTable(preset="birnn", fields=fields), task="classify", origin="run.toml")
    with pytest.raises(ConfigError) as caught:
        check_model(ModelTable(preset="birnn", fields={"pooling": "first"}), task="classify", origin="run.toml")
    assert (
        str(caught.value)
        == "run.toml: model.pooling must be class, mean or last, not 'first'.\nAvailable: class, last, mean."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert-tiny", ("vocab", "head", "n_outputs", "n_features")),
        ("lstm", ("vocab", "head", "n_outputs", "n_features")),
        ("transformer-tiny", ("source_vocab", "target_vocab")),
        ("gpt-nano", ("vocab",)),
    ],
)
def test_what_is_not_the_users_to_choose(name: str, expected: tuple[str, ...]) -> None:
    assert decided_by_data(find_preset(name)) == expected


def test_counting_agrees_with_a_model_that_exists() -> None:
    config = model_config(ModelTable(preset="transformer-tiny"), origin="test", source_vocab=50, target_vocab=50)
    model = build_model(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == count_parameters(
        PRESETS["transformer-tiny"], 50
    )


def test_the_run_files_fields_come_before_the_presets_and_the_vocabulary_before_both() -> None:
    table = ModelTable(preset="transformer-tiny", fields={"d_ff": 512, "norm_order": "post", "source_vocab": 3})
    config = model_config(table, origin="run.toml", source_vocab=70, target_vocab=70)
    assert (config.d_ff, config.norm_order, config.source_vocab, config.d_model) == (512, "post", 70, 128)


def test_a_resolved_table_survives_the_run_file() -> None:
    table = ModelTable(preset="transformer-tiny", fields={"d_ff": 512})
    config = model_config(table, origin="test", source_vocab=70, target_vocab=70)
    whole = resolved(table, config)
    assert set(whole.fields) == {field.name for field in dataclasses.fields(TransformerConfig)}
    run = from_tables(to_tables(RunConfig(task="translate", model=whole)), origin="test")
    assert model_config(run.model, origin="test") == config


def test_the_seed_decides_the_first_weights() -> None:
    table = ModelTable(preset="transformer-tiny", fields={"n_encoder_layers": 1, "n_decoder_layers": 1})
    config = model_config(table, origin="test", source_vocab=9, target_vocab=9)
    first, again, other = (build_model(config, seed=seed) for seed in (1, 1, 2))
    assert isinstance(first, Transformer)
    assert isinstance(again, Transformer)
    assert isinstance(other, Transformer)
    assert torch.equal(first.output.weight, again.output.weight)
    assert not torch.equal(first.output.weight, other.output.weight)


def test_every_preset_says_what_it_is_for() -> None:
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.about
        assert preset.tasks


def test_no_such_preset() -> None:
    with pytest.raises(UsageError) as caught:
        find_preset("transformer-tinny")
    assert str(caught.value) == "There is no model 'transformer-tinny'.\nDid you mean transformer-tiny?"


def test_no_such_field() -> None:
    with pytest.raises(ConfigError) as caught:
        model_config(
            ModelTable(preset="transformer-tiny", fields={"d_modle": 64}),
            origin="run.toml",
            source_vocab=9,
            target_vocab=9,
        )
    assert str(caught.value) == "run.toml: there is no key model.d_modle.\nDid you mean d_model?"


def test_a_field_of_another_type() -> None:
    with pytest.raises(ConfigError) as caught:
        model_config(
            ModelTable(preset="transformer-tiny", fields={"dropout": "much"}),
            origin="run.toml",
            source_vocab=9,
            target_vocab=9,
        )
    assert str(caught.value) == (
        "run.toml: model.dropout must be a number, not 'much'.\nCorrect model.dropout and run the command again."
    )


def test_a_table_is_checked_before_the_data_is_known() -> None:
    check_model(ModelTable(preset="transformer-tiny", fields={"d_model": 64}), task="translate", origin="run.toml")
    with pytest.raises(ConfigError) as caught:
        check_model(ModelTable(preset="transformer-tiny", fields={"d_modle": 64}), task="translate", origin="run.toml")
    assert str(caught.value) == "run.toml: there is no key model.d_modle.\nDid you mean d_model?"


def test_a_model_of_other_tasks_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        check_model(ModelTable(preset="transformer-tiny"), task="classify", origin="run.toml")
    assert caught.value.problem == "transformer-tiny does not support the task 'classify'."


def test_the_default_of_a_task_is_its_smallest_model() -> None:
    assert default_preset("translate") == "transformer-tiny"
    for task in ("mask", "classify", "tag", "regress"):
        assert default_preset(task) == "bert-tiny"
