from dataclasses import replace

import pytest

from regard.errors import UsageError
from regard.training.devices import DeviceOptions
from regard.training.plan import Plan, plan
from regard.training.planned_batch import BatchOptions
from regard.training.scaling import (
    CRITICAL_IMAGES,
    CRITICAL_TOKENS,
    batch_size,
    beyond_critical,
    breaking_point,
    critical_size,
    strong_scaling,
    weak_scaling,
)


@pytest.fixture(scope="module")
def eight() -> Plan:
    batch = BatchOptions(tokens=(40_000, 80_000), length=20)
    return plan("transformer-base", batch=batch, steps=1000, devices=DeviceOptions(name="8xA100"), optimizer="adamw")


def test_strong_scaling_shares_one_step(eight: Plan) -> None:
    rows = strong_scaling(eight, 4096)
    # 2,000 sentences are enough for 1,024 devices, not for twice as many.
    assert [row.plan.devices.n_devices for row in rows] == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert {row.plan.tokens for row in rows} == {(40_000, 80_000)}
    assert {row.steps for row in rows} == {1000}
    efficiencies = [row.efficiency(sharded=False) for row in rows]
    assert efficiencies[0] == 1
    assert sorted(efficiencies, reverse=True) == efficiencies
    first, last = rows[0].plan.replicated_layout.time.seconds, rows[-1].plan.replicated_layout.time.seconds
    assert efficiencies[-1] == pytest.approx(8 * first / (1024 * last))


def test_weak_scaling_gives_each_device_as_much(eight: Plan) -> None:
    rows = weak_scaling(eight, 100)
    assert [row.plan.devices.n_devices for row in rows] == [8, 16, 32, 64]
    assert [row.plan.tokens[1] for row in rows] == [80_000, 160_000, 320_000, 640_000]
    assert len({row.plan.memory.activations for row in rows}) == 1
    # McCandlish et al. 2018: steps by 1 + critical / size.
    assert [row.steps for row in rows] == pytest.approx([1000 * (1 + 400 / size) / 6 for size in (80, 160, 320, 640)])
    assert rows[-1].seconds(sharded=True) == rows[-1].steps * rows[-1].plan.sharded_layout.time.seconds
    assert beyond_critical(rows) == 64
    assert beyond_critical(rows[:3]) is None


def test_the_size_of_a_step_is_in_target_tokens_or_images(eight: Plan) -> None:
    assert (batch_size(eight), critical_size(eight)) == (80_000, CRITICAL_TOKENS)
    images = plan("resnet-20", batch=BatchOptions(images=16), devices=DeviceOptions(name="2xA100"))
    assert (batch_size(images), critical_size(images)) == (16, CRITICAL_IMAGES)


def test_where_scaling_breaks_and_why(eight: Plan) -> None:
    rows = strong_scaling(eight, 1024)
    n_devices, reason = breaking_point(rows, sharded=True) or (0, "")
    row = next(row for row in rows if row.plan.devices.n_devices == n_devices)
    assert row.efficiency(sharded=True) < 0.5
    assert reason == row.plan.sharded_layout.time.limit
    assert breaking_point(rows[:1], sharded=True) is None
    small = replace(eight, devices=replace(eight.devices, memory=1e9))
    assert breaking_point(strong_scaling(small, 64), sharded=False) == (8, "memory")


@pytest.mark.parametrize("up_to", [8, 7, 1_000_001])
def test_more_devices_than_there_are(eight: Plan, up_to: int) -> None:
    with pytest.raises(UsageError) as raised:
        strong_scaling(eight, up_to)
    assert raised.value.problem == (f"--up-to must be above the 8 of --devices and at most 1,000,000, not {up_to:,}.")
    assert raised.value.remedy == "Such as --up-to 64."
