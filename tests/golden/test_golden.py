"""What holds of the golden numbers on any machine: they cover the package, and a run that is repeated has the same ones."""

import dataclasses
from pathlib import Path

import pytest
from tests.golden.run import BY_NAME, RUNS, Result, Run, Workshop, differences, read_stored, settings_of

from regard.config import default_config, override
from regard.models.presets import PRESETS, check_model
from regard.tasks.spec import TASKS

RESULT = Result(
    sha256="a", values="b", beside={"x/ema": "c"}, losses={"1": 0.5}, validation={"loss": 0.25}, samples=[["in", "out"]]
)


def test_every_task_and_every_architecture_has_a_run() -> None:
    assert {run.task for run in RUNS} == set(TASKS)
    assert {PRESETS[run.model].config for run in RUNS if run.model} == {preset.config for preset in PRESETS.values()}


def test_every_run_has_its_numbers() -> None:
    _, stored = read_stored()
    assert list(stored) == list(BY_NAME)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_package_knows_the_settings_of_a_run(run: Run, tmp_path: Path) -> None:
    preset = run.model or BY_NAME[run.init].model
    config = override(default_config(run.task), {"model.preset": preset, **settings_of(run, tmp_path)})
    check_model(config.model, task=run.task, origin=run.name)


def test_a_run_that_is_repeated_comes_to_the_same(tmp_path: Path) -> None:
    first, second = (Workshop(tmp_path / name).train(BY_NAME["classify-bert"]) for name in ("first", "second"))
    assert first == second
    assert len(first.losses) > 1


def test_equal_results_do_not_differ() -> None:
    assert differences(RESULT, dataclasses.replace(RESULT)) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"losses": {"1": 0.75}}, "losses 1: 0.5 was expected, 0.75 came"),
        ({"validation": {}}, "validation loss: 0.25 was expected, None came"),
        ({"beside": {"x/ema": "d"}}, "beside x/ema: 'c' was expected, 'd' came"),
        ({"samples": []}, "samples: [['in', 'out']] was expected, [] came"),
        ({"sha256": "d"}, "weights: other names or order, the same values"),
        ({"sha256": "d", "values": "e"}, "weights: other values"),
    ],
)
def test_a_difference_is_told(change: dict[str, object], told: str) -> None:
    assert differences(RESULT, dataclasses.replace(RESULT, **change)) == [told]  # type: ignore[arg-type]


def test_a_run_without_stored_numbers_is_told() -> None:
    assert differences(None, RESULT)
