from typing import Any

import pytest

from regard.cli.options import changed, explained, whole_numbers
from regard.config import DecodingConfig, RunConfig, TokenizerConfig, TrainingConfig
from regard.errors import ConfigError, UsageError


def test_an_option_has_the_help_of_its_setting() -> None:
    assert explained(DecodingConfig, "beam").help == "hypotheses kept a sentence; 1 is greedy search"


def test_only_what_is_given_changes() -> None:
    settings = DecodingConfig(beam=7, top_k=3)
    assert changed(settings, beam=None, top_k=0, sample=True) == DecodingConfig(beam=7, top_k=0, sample=True)


@pytest.mark.parametrize(
    ("settings", "field", "value", "problem"),
    [
        (TrainingConfig(), "steps", -5, "--steps must be at least 0, not -5."),
        (TrainingConfig(), "epochs", -1, "--epochs must be at least 0, not -1."),
        (TrainingConfig(), "minutes", float("nan"), "--minutes must be a finite number, not nan."),
        (TrainingConfig(), "learning_rate", float("inf"), "--learning-rate must be a finite number, not inf."),
        (TokenizerConfig(), "vocab_size", -5, "--vocab-size must be at least 0, not -5."),
        (RunConfig(task="translate"), "seed", -1, "--seed must be at least 0, not -1."),
        (DecodingConfig(), "temperature", float("nan"), "--temperature must be a finite number, not nan."),
        (DecodingConfig(), "min_length", -4, "--min-length must be at least 0, not -4."),
    ],
)
def test_a_number_out_of_its_range_is_refused_by_its_option(
    settings: Any, field: str, value: float, problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        changed(settings, **{field: value})
    assert raised.value.problem == problem
    assert raised.value.remedy == f"Correct {problem.split()[0]} and run the command again."


def test_whole_numbers() -> None:
    assert whole_numbers("1,20,3", option="--steps") == (1, 20, 3)


@pytest.mark.parametrize("text", ["", "1,x", "1,,2", "1.5", "2,2"])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        whole_numbers(text, option="--seeds")
    assert raised.value.problem == f"--seeds takes different whole numbers with commas between them, not '{text}'."
    assert raised.value.remedy == "Write them, for example, as --seeds 1,2,3"
