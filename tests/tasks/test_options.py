"""Options by name: a task's own, those of [data] and of [decoding]; a wrong name gets the near one."""

from typing import Any

import pytest

from regard.config import DecodingConfig, default_config
from regard.errors import ConfigError, UsageError
from regard.tasks.options import GenerationOptions, Options, make_options
from regard.tasks.translation.translator import TranslationOptions


def test_settings_change_the_runs_own_tables() -> None:
    config = default_config("translate")
    options = make_options(TranslationOptions, config, {"beam": 3, "source": "en", "align": True})
    assert options.decoding == DecodingConfig(beam=3)
    assert options.data is not None
    assert options.data.source == "en"
    assert options.align


def test_nothing_given_leaves_the_runs_own() -> None:
    assert make_options(GenerationOptions, default_config("language"), {}) == GenerationOptions()


def test_a_whole_decoding_may_be_given_and_changed() -> None:
    given: dict[str, Any] = {"decoding": DecodingConfig(beam=2, max_length=7), "beam": 4}
    options = make_options(GenerationOptions, default_config("translate"), given)
    assert options.decoding == DecodingConfig(beam=4, max_length=7)


def test_a_wrong_name_gets_the_near_one() -> None:
    with pytest.raises(UsageError) as caught:
        make_options(GenerationOptions, default_config("translate"), {"beem": 3})
    assert str(caught.value) == "'beem' does not apply to translate runs.\nDid you mean beam?"


def test_a_setting_of_another_task_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^'beam' does not apply to classify runs\."):
        make_options(Options, default_config("classify"), {"beam": 3})


def test_a_value_is_checked_as_in_a_run_file() -> None:
    with pytest.raises(ConfigError, match=r"^run\.translate: beam"):
        make_options(GenerationOptions, default_config("translate"), {"beam": 0})


def test_later_inputs_of_a_stream_know_their_numbers() -> None:
    assert GenerationOptions(seed=3).after(2).after(5) == GenerationOptions(seed=3, n_before=7)
    plain = Options(split="all")
    assert plain.after(2) is plain
