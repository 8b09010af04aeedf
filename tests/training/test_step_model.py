from dataclasses import replace
from typing import Any

import pytest

from regard.config import ModelTable
from regard.models.presets import build_model, count_parameters, find_preset, model_config
from regard.training import step_model
from regard.training.devices import Devices
from regard.training.interconnect import Interconnect, Link
from regard.training.step_model import JITTER, LAUNCH, StepTime, Work, count_units, normal_maximum, step_time

EIGHT = Devices(name="Abacus", n_devices=8, peak=2e12, precision="fp32", source="", bandwidth=1e12)
LINKS = Interconnect(n_devices=8, per_node=8, link=Link("", 1e11, 1e-6), network=Link("", 1e10, 1e-5))
WORK = Work(flops=8e12, n_examples=80, kernels=100, units=(10**6, 10**6, 10**7), state=2 * 12 * 10**6, update_flops=0.0)


def modelled(work: Work = WORK, devices: Devices = EIGHT, *, sharded: bool = False, **others: Any) -> StepTime:
    links = replace(LINKS.with_devices(devices.n_devices), **others)
    return step_time(work, devices, links, utilisation=0.5, sharded=sharded)


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_model, "JITTER", 0.0)


def test_one_device_only_computes_and_updates() -> None:
    time = modelled(devices=replace(EIGHT, n_devices=1))
    assert (time.ideal, time.compute, time.waiting, time.communication) == (8.0, 8.0, 0.0, 0.0)
    # Weights read and written, gradients read to be clipped and again, moments read and written, in four bytes each.
    assert time.update == pytest.approx(4 * 12e6 * (2 + 2 + 2 * 2) / 1e12)
    assert time.seconds == time.compute + time.update


def test_devices_share_the_flops() -> None:
    assert modelled().ideal == modelled().compute == 1.0


def test_few_examples_do_not_fill_a_device() -> None:
    small = modelled(replace(WORK, flops=8e7))
    assert small.compute == 100 * LAUNCH
    few_weights = replace(WORK, flops=8e7, units=(1000,), state=2000)
    assert modelled(few_weights).limit == "few examples per device"
    assert modelled(replace(WORK, flops=8e7, kernels=0)).compute == pytest.approx(3 * 4 * 12e6 / 1e12)
    on_cpu = replace(EIGHT, on_cpu=True, bandwidth=0.0)
    assert modelled(replace(WORK, flops=8e7), on_cpu).compute == pytest.approx(1e-5)


def test_the_slowest_device_has_a_whole_example_more(alike: None) -> None:
    assert modelled().waiting == 0
    # Of 81 examples for eight devices, one has eleven.
    assert modelled(replace(WORK, n_examples=81)).waiting == pytest.approx(11 / (81 / 8) - 1)
    assert modelled(replace(WORK, n_examples=12)).limit == "stragglers"


def test_the_more_devices_the_slower_the_slowest() -> None:
    assert modelled().waiting == pytest.approx(JITTER * normal_maximum(8))
    # The mean of the largest of so many draws, from tables of order statistics (Harter 1961).
    for n, mean in ((2, 0.5642), (8, 1.4236), (100, 2.5076)):
        assert normal_maximum(n) == pytest.approx(mean, abs=0.03)


def test_all_but_the_last_bucket_hides_behind_the_backward_pass() -> None:
    time = modelled()
    bucket, nothing = LINKS.all_reduce(4 * 12e6 / 2), LINKS.all_reduce(0)  # 48 MB in buckets of 25 MiB
    assert time.communication == pytest.approx(2 * bucket + nothing)
    assert time.exposed == pytest.approx(bucket + nothing)


def test_what_the_backward_pass_cannot_hide_is_exposed(alike: None) -> None:
    time = modelled(link=Link("", 1e7, 1e-6))
    assert time.exposed == pytest.approx(time.communication - 2 / 3)
    assert time.limit == "bandwidth"
    far = modelled(link=Link("", 1e11, 0.1))
    assert far.limit == "latency"


def test_a_processor_that_computes_carries_no_bytes() -> None:
    time = modelled(devices=replace(EIGHT, on_cpu=True))
    assert time.exposed == time.communication


def test_sharded_weights_are_gathered_twice_and_gradients_scattered() -> None:
    time = modelled(sharded=True)
    gathers = [LINKS.all_gather(4 * unit) for unit in WORK.units]
    nothing = LINKS.all_reduce(0)
    assert time.communication == pytest.approx(3 * sum(gathers) + 2 * nothing)
    # The longest has nothing to hide behind: the weights before the first block, its gradients after the last.
    assert time.exposed == pytest.approx(3 * max(gathers) + 2 * nothing)
    half = modelled(devices=replace(EIGHT, precision="bf16"), sharded=True)
    assert half.communication < time.communication


def test_sharded_each_device_updates_its_share() -> None:
    assert modelled(sharded=True).update == modelled().update / 8
    muon = replace(WORK, update_flops=1e12)
    assert modelled(muon).update == pytest.approx(modelled().update + 1)
    assert modelled(muon, sharded=True).update == pytest.approx(modelled().update / 8 + 1)
    assert modelled(muon).limit == "update"


def test_nothing_limits_a_large_step() -> None:
    assert modelled().limit == ""


def test_units_are_the_blocks_of_a_network_and_the_rest() -> None:
    config = model_config(ModelTable(preset="transformer-tiny"), origin="test", source_vocab=50, target_vocab=50)
    model = build_model(config)
    units = count_units(model)
    blocks = [*model.encoder, *model.decoder]  # type: ignore[misc]
    assert units[:-1] == tuple(sum(one.numel() for one in block.parameters()) for block in blocks)
    assert sum(units) == count_parameters(find_preset("transformer-tiny"), 50)
