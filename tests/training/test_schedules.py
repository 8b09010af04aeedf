"""Learning rates at steps that can be worked out by hand."""

import dataclasses
import math

import pytest

from regard.config import TrainingConfig
from regard.errors import ConfigError
from regard.training.schedules import SCHEDULES, check_schedule, learning_rate


def rates(schedule: str, steps: list[int], *, total: int = 0, warmup: int = 100) -> list[float]:
    config = TrainingConfig(schedule=schedule, learning_rate=0.5, warmup=warmup)
    return [learning_rate(step, config, total=total) for step in steps]


def test_inverse_sqrt_rises_in_a_line_and_falls_with_the_root() -> None:
    assert rates("inverse-sqrt", [1, 50, 100, 400, 10_000]) == pytest.approx([0.005, 0.25, 0.5, 0.25, 0.05])


def test_the_papers_formula_is_inverse_sqrt_with_a_peak() -> None:
    # Vaswani et al. 2017, section 5.3: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), with 512 and 4,000.
    config = TrainingConfig(learning_rate=512**-0.5 * 4000**-0.5, warmup=4000)
    for step in (1, 100, 4000, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(step, config, total=0) == pytest.approx(paper)


def test_cosine_falls_to_nothing_after_the_last_update() -> None:
    halfway = 0.5 * 0.5 * (1 + math.cos(math.pi / 4))
    last = 0.5 * 0.5 * (1 + math.cos(math.pi * 399 / 400))
    assert rates("cosine", [50, 100, 200, 300, 499], total=499) == pytest.approx([0.25, 0.5, halfway, 0.25, last])


def test_linear_falls_to_nothing_after_the_last_update() -> None:
    assert rates("linear", [50, 100, 200, 499], total=499) == pytest.approx([0.25, 0.5, 0.375, 0.5 / 400])


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_updates_after_the_expected_end_learn_as_fast_as_the_last_one(schedule: str) -> None:
    last, *others = rates(schedule, [499, 500, 510], total=499)
    assert last > 0
    assert others == [last, last]
    assert rates(schedule, [30], total=20, warmup=25) == [0.5]  # a warm-up beyond the end


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_last_update_is_not_wasted(schedule: str) -> None:
    assert rates(schedule, [20], total=20, warmup=5)[0] > 0


def test_constant_stays_at_its_peak() -> None:
    assert rates("constant", [25, 100, 10_000]) == pytest.approx([0.125, 0.5, 0.5])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_warmup_the_first_rate_is_the_peak(schedule: str) -> None:
    (first,) = rates(schedule, [1], total=10**9, warmup=0)
    assert first == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_a_schedule_that_falls_to_zero_needs_an_end(schedule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_schedule(TrainingConfig(schedule=schedule, minutes=5))
    assert caught.value.problem == (
        f"The schedule '{schedule}' decays to zero at the end, and no end is given in steps or epochs."
    )
    assert caught.value.remedy == "Give --steps or --epochs, or choose another: --set training.schedule=constant"
    check_schedule(TrainingConfig(schedule=schedule, epochs=2))
    check_schedule(TrainingConfig(schedule=schedule, steps=2))


def test_a_run_has_a_schedule_that_was_chosen() -> None:
    with pytest.raises(ConfigError) as caught:
        check_schedule(TrainingConfig(schedule="auto", steps=10))
    assert str(caught.value) == (
        "training.schedule is 'auto', and a run needs the one that was chosen for it.\n"
        "Write one of inverse-sqrt, cosine, linear, constant."
    )


def test_every_schedule_that_can_be_chosen_is_one() -> None:
    [schedule] = [field for field in dataclasses.fields(TrainingConfig) if field.name == "schedule"]
    assert set(schedule.metadata["choices"]) == {*SCHEDULES, "auto"}
