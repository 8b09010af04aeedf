from typing import Any

import pytest

from regard.cli.options import (
    ScoreOptions,
    SearchOptions,
    check_option,
    explained,
    flag,
    given,
    named,
    settings_of,
    whole_numbers,
)
from regard.config import DecodingConfig
from regard.errors import ConfigError, UsageError


def test_an_option_has_the_help_of_its_setting() -> None:
    assert explained(DecodingConfig, "beam").help == "beam width; 1 is greedy search"


def test_options_go_by_the_names_of_settings() -> None:
    assert (flag("no_repeat_ngram"), flag("source"), flag("banned")) == ("--no-repeat-ngram", "--from", "--ban")
    options = named(SearchOptions(beam=3), top=None)
    assert (options["beam"], options["max_length"], options["top"]) == (3, None, None)


def test_only_what_is_given_is_a_setting() -> None:
    options = named(SearchOptions(beam=3, max_length=0), align=False, banned=(), source="", blocks=True)
    assert given(options) == {"beam": 3, "max_length": 0, "blocks": True}


def test_what_the_command_keeps_is_no_setting_of_the_evaluation() -> None:
    options = named(ScoreOptions(metrics="bleu, chrf,", lowercase=True), output="x")
    assert settings_of(options, but=("output",)) == {"metrics": ("bleu", "chrf"), "lowercase": True}


def test_a_number_of_decoding_out_of_its_range_is_refused_by_its_option() -> None:
    with pytest.raises(ConfigError) as raised:
        given({"min_length": -4})
    assert raised.value.problem == "--min-length must be at least 0, not -4."
    assert raised.value.remedy == "Correct --min-length and run the command again."


def test_a_word_that_is_no_choice_is_refused_by_its_option() -> None:
    with pytest.raises(ConfigError) as raised:
        given({"on_bad": "kep-going"})
    assert str(raised.value) == "--on-bad must be stop or keep-going, not 'kep-going'.\nDid you mean keep-going?"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("training.steps", -5, "--steps must be at least 0, not -5."),
        ("training.minutes", float("nan"), "--minutes must be a finite number, not nan."),
        ("tokenizer.vocab_size", -5, "--vocab-size must be at least 0, not -5."),
        ("seed", -1, "--seed must be at least 0, not -1."),
        ("decoding.temperature", float("nan"), "--temperature must be a finite number, not nan."),
    ],
)
def test_a_number_out_of_the_range_of_its_key_is_refused_by_its_option(key: str, value: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_option(key, value)
    assert raised.value.problem == problem


def test_whole_numbers() -> None:
    assert whole_numbers("1,20,3", option="--steps") == (1, 20, 3)


@pytest.mark.parametrize("text", ["", "1,x", "1,,2", "1.5", "2,2"])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        whole_numbers(text, option="--seeds")
    assert raised.value.problem == f"--seeds takes different whole numbers with commas between them, not '{text}'."
    assert raised.value.remedy == "Write them, for example, as --seeds 1,2,3"
