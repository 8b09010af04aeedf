"""The exception tree: its texts, its exit codes, and the near names."""

import inspect

import pytest

from regard import errors
from regard.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    LockedError,
    MissingExtraError,
    RegardError,
    RunError,
    TrainingError,
    UsageError,
    did_you_mean,
)


def test_an_error_is_a_problem_and_a_remedy() -> None:
    error = DataError("Line 3 of a.en is not UTF-8.", "Save the file as UTF-8.")
    assert str(error) == "Line 3 of a.en is not UTF-8.\nSave the file as UTF-8."
    assert (error.problem, error.remedy) == ("Line 3 of a.en is not UTF-8.", "Save the file as UTF-8.")


def test_an_error_without_a_remedy_is_one_line() -> None:
    assert str(RunError("The disk is gone.")) == "The disk is gone."


@pytest.mark.parametrize(
    ("kind", "parent", "exit_code"),
    [
        (RegardError, Exception, 1),
        (UsageError, RegardError, 2),
        (ConfigError, UsageError, 2),
        (DataError, RegardError, 1),
        (RunError, RegardError, 1),
        (CheckpointError, RunError, 1),
        (LockedError, RunError, 1),
        (TrainingError, RegardError, 1),
        (MissingExtraError, RegardError, 1),
    ],
)
def test_the_tree(kind: type[RegardError], parent: type[Exception], exit_code: int) -> None:
    assert kind.__base__ is parent
    assert kind.exit_code == exit_code


def test_the_docstring_draws_the_whole_tree() -> None:
    kinds = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RegardError)]
    assert len(kinds) == 9
    for name in kinds:
        assert name in (errors.__doc__ or "")


def test_a_missing_extra_says_how_to_install_it() -> None:
    error = MissingExtraError("polib", "Reading PO files", "formats")
    assert str(error) == (
        "Reading PO files needs the package 'polib', which is not installed.\n"
        "Install it with: pip install 'regard[formats]'"
    )


def test_a_near_name_is_offered() -> None:
    presets = ["transformer-tiny", "transformer-big", "gpt-tiny"]
    assert did_you_mean("transformer-tinny", presets) == "Did you mean transformer-tiny?"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert did_you_mean("zebra", {"pre": 1, "post": 2, "none": 3}) == "Available: none, post, pre."


def test_of_very_many_or_very_long_names_some_are_listed() -> None:
    listed = ", ".join(f"n{number:05}" for number in range(100))
    assert (
        did_you_mean("zebra", (f"n{number:05}" for number in range(60_000))) == f"Available: {listed} and 59,900 more."
    )
    assert did_you_mean("zebra", ["x" * 20_000]) == f"Available: {'x' * 100}…."


@pytest.mark.parametrize("name", ["--lr", "--image-size", "--rate", "--te", "--size"])
def test_what_only_looks_a_little_alike_is_not_offered(name: str) -> None:
    options = ["--run", "--text", "--vocab-size"]
    assert did_you_mean(name, options, otherwise="Leave it out.") == "Leave it out."
    assert did_you_mean(name, options) == "Available: --run, --text, --vocab-size."


@pytest.mark.parametrize(
    ("name", "near"),
    [("--text-b", "--text"), ("--Text", "--text"), ("--vocab", "--vocab-size"), ("--vacob-sise", "--vocab-size")],
)
def test_slips_and_first_words_are_near(name: str, near: str) -> None:
    assert did_you_mean(name, ["--run", "--text", "--vocab-size"]) == f"Did you mean {near}?"


def test_a_very_long_name_is_answered_at_once() -> None:
    assert did_you_mean("x" * 10**6, ["x" * 10**6 + "y", "steps"]).startswith("Available: ")
