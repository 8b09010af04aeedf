"""Learning rates at steps that can be worked out by hand."""

import dataclasses
import math

import pytest

from regard.config import TrainingConfig
from regard.training.schedules import SCHEDULES, projected_total, scheduled_share


def rates(schedule: str, steps: list[int], *, total: int = 0, warmup: float = 100) -> list[float]:
    config = TrainingConfig(schedule=schedule, learning_rate=0.5, warmup=warmup)
    return [config.learning_rate * scheduled_share(step, config, total=total) for step in steps]


def test_inverse_sqrt_rises_in_a_line_and_falls_with_the_root() -> None:
    assert rates("inverse-sqrt", [1, 50, 100, 400, 10_000]) == pytest.approx([0.005, 0.25, 0.5, 0.25, 0.05])


def test_the_papers_formula_is_inverse_sqrt_with_a_peak() -> None:
    # Vaswani et al. 2017, section 5.3: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), with 512 and 4,000.
    config = TrainingConfig(schedule="inverse-sqrt", learning_rate=512**-0.5 * 4000**-0.5, warmup=4000)
    for step in (1, 100, 4000, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert config.learning_rate * scheduled_share(step, config, total=0) == pytest.approx(paper)


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


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warmup_below_one_is_a_share_of_the_run(schedule: str) -> None:
    steps = [1, 20, 40, 300, 799]
    assert rates(schedule, steps, total=799, warmup=0.1) == rates(schedule, steps, total=799, warmup=79.9)
    assert rates(schedule, [1], total=799, warmup=1) == [0.5]


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_minutes_are_a_budget_like_steps(schedule: str) -> None:
    """Updates of half a second each, for five minutes: as a schedule over 600 updates."""
    expected = rates(schedule, list(range(2, 601)), total=600, warmup=0.1)
    config = TrainingConfig(schedule=schedule, learning_rate=0.5, warmup=0.1, minutes=5)
    found = []
    for step in range(2, 601):
        total = projected_total(0, minutes=5, step=step, seconds=0.5 * (step - 1))
        found.append(config.learning_rate * scheduled_share(step, config, total=total))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_first_update_of_a_run_by_the_clock_has_no_rate(schedule: str) -> None:
    total = projected_total(0, minutes=5, step=1, seconds=0)
    assert scheduled_share(1, TrainingConfig(schedule=schedule, warmup=0.05), total=total) == 0


def test_the_nearer_end_counts() -> None:
    assert projected_total(100, minutes=1, step=11, seconds=1) == 100
    assert projected_total(1000, minutes=1, step=11, seconds=1) == 600
    assert projected_total(1000, minutes=0, step=11, seconds=1) == 1000
    assert projected_total(1000, minutes=1, step=1, seconds=0) == 1000
    assert projected_total(0, minutes=1, step=11, seconds=90) == 11, "the run is over, and this update its last"


def test_every_schedule_can_be_chosen() -> None:
    [schedule] = [field for field in dataclasses.fields(TrainingConfig) if field.name == "schedule"]
    assert set(schedule.metadata["choices"]) == set(SCHEDULES)
