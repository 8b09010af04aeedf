"""What other toolkits call our settings leads to ours, and to nothing that only looks alike."""

import dataclasses
import typing

import pytest

from regard.config import RunConfig
from regard.config.synonyms import OF_MODELS, SYNONYMS, keys_of, near_key, near_name
from regard.models.presets import PRESETS


def test_every_key_is_one_of_a_run_file_or_of_a_model() -> None:
    tables = typing.get_type_hints(RunConfig)
    known = {field.name for field in dataclasses.fields(RunConfig)}
    for table, kind in tables.items():
        if dataclasses.is_dataclass(kind) and table != "model":
            known |= {f"{table}.{field.name}" for field in dataclasses.fields(kind)}
    models = {f"model.{field.name}" for preset in PRESETS.values() for field in dataclasses.fields(preset.config)}
    assert {key for keys in SYNONYMS for key in keys} <= known | models
    assert {f"model.{name}" for name in OF_MODELS} <= models


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lr", ("training.learning_rate",)),
        ("--warmup-steps", ("training.warmup",)),
        ("--warmup", ("training.warmup",)),
        ("num_beams", ("decoding.beam",)),
        ("hidden_size", ("model.d_model",)),
        ("dropout", ("model.dropout",)),
        ("fp16", ("runtime.precision",)),
        ("zebra", ()),
    ],
)
def test_the_keys_that_a_name_may_mean(name: str, keys: tuple[str, ...]) -> None:
    assert keys_of(name) == keys


def test_a_name_leads_to_ours_and_a_slip_to_the_nearest() -> None:
    ours = ["beam", "n_best", "temperature"]
    assert near_name("num_beams", ours) == "Did you mean beam?"
    assert near_name("temp", ours) == "Did you mean temperature?"
    assert near_name("beem", ours) == "Did you mean beam?"
    assert near_name("lr", ours) == "Available: beam, n_best, temperature."
    assert near_name("lr", ours, otherwise="Leave it out.") == "Leave it out."


def test_several_that_may_be_meant_are_all_named() -> None:
    fields = ["n_encoder_layers", "n_decoder_layers", "d_model"]
    assert near_name("num_layers", fields) == "Did you mean n_encoder_layers or n_decoder_layers?"


def test_a_key_may_belong_to_another_table() -> None:
    assert near_key("lr", "training", ["learning_rate", "steps"]) == "Did you mean learning_rate?"
    assert near_key("dropout_rate", "training", ["learning_rate"]) == "Did you mean model.dropout?"
    assert near_key("beam", "training", ["learning_rate"]) == "Did you mean decoding.beam?"
    assert near_key("hidden_size", "model.encoder", ["d_model", "d_ff"]) == "Did you mean d_model?"
    assert near_key("zebra", "training", ["steps", "epochs"]) == "Available: epochs, steps."
