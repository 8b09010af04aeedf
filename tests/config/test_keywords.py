"""Settings by name are those of the tables: same keys, same types."""

import dataclasses
import typing

import pytest

from regard.config import DataConfig, DecodingConfig, TrainingConfig
from regard.config.keywords import DataSettings, DecodingSettings, RunSettings, TrainingSettings, dotted
from regard.errors import UsageError


@pytest.mark.parametrize(
    ("settings", "table"), [(DecodingSettings, DecodingConfig), (TrainingSettings, TrainingConfig)]
)
def test_typed_settings_are_the_keys_of_their_table(settings: type, table: type) -> None:
    assert typing.get_type_hints(settings) == typing.get_type_hints(table)


def test_the_settings_of_data_are_keys_of_its_table() -> None:
    hints = typing.get_type_hints(DataConfig)
    assert {name: hints[name] for name in typing.get_type_hints(DataSettings)} == typing.get_type_hints(DataSettings)


def test_every_named_setting_has_one_home() -> None:
    names = typing.get_type_hints(RunSettings)
    found = dotted(dict.fromkeys(names), origin="test")
    assert len(found) == len(names)
    assert found.keys() >= {"training.steps", "data.source", "tokenizer.vocab_size", "runtime.threads", "seed"}
    assert {f"training.{field.name}" for field in dataclasses.fields(TrainingConfig)} <= found.keys()


def test_an_unknown_name_gets_the_near_one() -> None:
    with pytest.raises(UsageError) as caught:
        dotted({"step": 3}, origin="regard.train")
    assert str(caught.value) == "regard.train: there is no setting 'step'.\nDid you mean steps?"


@pytest.mark.parametrize(
    ("name", "near"), [("lr", "learning_rate"), ("num_heads", 'settings={"model.n_heads": …}'), ("wd", "weight_decay")]
)
def test_what_others_call_a_setting_gets_ours(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"^regard.train: there is no setting '{name}'") as caught:
        dotted({name: 3}, origin="regard.train")
    assert caught.value.remedy == f"Did you mean {near}?"
