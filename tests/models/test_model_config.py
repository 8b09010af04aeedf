"""The configs of all models: every field explains itself, and declares the range or the choices that it is held to."""

import dataclasses
from typing import Any

import pytest

from regard.errors import ConfigError
from regard.models.captioner import DECODERS, ENCODERS
from regard.models.model_config import ModelConfig
from regard.models.presets import PRESETS

INSIDE = [type(one) for one in (*ENCODERS.values(), *DECODERS.values())]
CONFIGS: list[type[ModelConfig]] = [*dict.fromkeys(preset.config for preset in PRESETS.values()), *INSIDE]
every_config = pytest.mark.parametrize("config", CONFIGS)


def declared(name: str) -> list[tuple[type[ModelConfig], dataclasses.Field[Any]]]:
    """The fields of all configs that declare this."""
    return [
        (config, field)
        for config in CONFIGS
        for field in dataclasses.fields(config)
        if field.metadata.get(name) is not None
    ]


def ids(value: Any) -> str:
    return value.name if isinstance(value, dataclasses.Field) else value.__name__


def refusal(config: type[ModelConfig], name: str, value: Any) -> str:
    """What is said of a config with this value, where all else is as it must be."""
    needed = {one.name: 12 for one in dataclasses.fields(config) if one.default is dataclasses.MISSING}
    with pytest.raises(ConfigError) as caught:
        config(**{**needed, name: value})
    return str(caught.value)


@every_config
def test_every_field_has_help_and_every_number_a_range(config: type[ModelConfig]) -> None:
    for field in dataclasses.fields(config):
        assert field.metadata["help"], field.name
        limits = {field.metadata["least"], field.metadata["above"]} - {None}
        assert limits or field.type in (str, bool) or field.metadata["kinds"], field.name
        assert field.metadata["choices"] or field.type is not str, field.name


@pytest.mark.parametrize(("config", "field"), declared("least"), ids=ids)
def test_a_number_below_its_range_is_refused(config: type[ModelConfig], field: dataclasses.Field[Any]) -> None:
    wrong = field.metadata["least"] - 1
    upper = "" if field.metadata["below"] is None else f" and below {field.metadata['below']}"
    assert refusal(config, field.name, (3, wrong) if isinstance(field.default, tuple) else wrong) == (
        f"model.{field.name} must be at least {field.metadata['least']}{upper}, not {wrong}.\n"
        f"Correct model.{field.name} and run the command again."
    )


@pytest.mark.parametrize(("config", "field"), declared("below"), ids=ids)
def test_a_number_above_its_range_is_refused(config: type[ModelConfig], field: dataclasses.Field[Any]) -> None:
    assert refusal(config, field.name, 1.0).startswith(f"model.{field.name} must be at least 0 and below 1, not 1.0.\n")


@pytest.mark.parametrize(("config", "field"), declared("choices"), ids=ids)
def test_a_word_that_is_no_choice_is_refused_with_the_near_one(
    config: type[ModelConfig], field: dataclasses.Field[Any]
) -> None:
    *others, last = field.metadata["choices"]
    assert refusal(config, field.name, f"{last}x") == (
        f"model.{field.name} must be {', '.join(others)} or {last}, not '{last}x'.\nDid you mean {last}?"
    )


def test_a_number_that_must_be_above_another() -> None:
    for config, field in declared("above"):
        assert refusal(config, field.name, 0.0).startswith(f"model.{field.name} must be above 0, not 0.0.\n")
    assert refusal(config, field.name, float("nan")).startswith(f"model.{field.name} must be a finite number, not nan.")
