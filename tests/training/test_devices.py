from typing import Any

import pytest

from regard.errors import UsageError
from regard.training import devices as module
from regard.training.devices import DEVICES, TERA, DeviceOptions, Devices, find_devices


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEAK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WIDTHS", {"cpu": 64})


@pytest.mark.parametrize(
    ("text", "number", "name", "peak", "precision"),
    [
        ("8xP100", 8, "P100", 9.5, "fp32"),
        ("p100", 1, "P100", 9.5, "fp32"),
        ("2 × A100", 2, "A100", 312, "bf16"),
        ("4*RTX 4090", 4, "RTX4090", 165.2, "bf16"),
        ("rtx-3090", 1, "RTX3090", 71, "bf16"),
    ],
)
def test_devices_as_people_write_them(text: str, number: int, name: str, peak: float, precision: str) -> None:
    found = find_devices(DeviceOptions(name=text))
    assert (found.n_devices, found.name, found.peak, found.precision) == (number, name, peak * TERA, precision)
    assert not found.on_cpu


def test_the_papers_devices_are_as_its_footnote_has_them() -> None:
    assert {name: DEVICES[name].peaks["fp32"] for name in ("K80", "K40", "M40", "P100")} == {
        "K80": 2.8,
        "K40": 3.7,
        "M40": 6.0,
        "P100": 9.5,
    }


def test_a_precision_can_be_chosen() -> None:
    assert find_devices(DeviceOptions(name="A100", precision="fp32")).peak == 19.5 * TERA


def test_a_peak_can_be_given_of_any_device() -> None:
    found = find_devices(DeviceOptions(name="2xAbacus", peak=3.0))
    assert found == Devices(name="Abacus", n_devices=2, peak=3.0, precision="fp32", source="as given")
    assert found.label == "2 Abacus"
    assert find_devices(DeviceOptions(name="A100", peak=3.0, precision="bf16")).precision == "bf16"


def test_of_this_machine_the_peak_is_measured() -> None:
    found = find_devices(DeviceOptions())
    assert (found.name, found.label, found.n_devices) == ("this", "this machine", 1)
    assert found.peak > 0
    assert found.source.startswith("measured on ")


def test_the_fastest_product_is_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 0.5, 0.6, 0.6, 1.2])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(module, "PEAK_SECONDS", 1.0)
    assert find_devices(DeviceOptions()).peak == pytest.approx(2 * 64**3 / 0.1)


@pytest.mark.parametrize(
    ("text", "options", "problem", "remedy"),
    [
        ("P10", {}, "Unknown device 'P10'.", "Did you mean P100? For any other, give --peak."),
        ("8x", {}, "Unknown device '8x'.", "Available: "),
        ("0xP100", {}, "--devices must be like 8xP100 or A100, not '0xP100'.", "Name at least one device."),
        (" ", {}, "--devices must be like 8xP100 or A100, not ' '.", "Name at least one device."),
        ("2xthis", {}, "'this' is one machine, not 2.", "Leave the number out; --processes has several on it."),
        ("P100", {"precision": "bf16"}, "P100 does not support bf16.", "It supports fp32."),
        ("A100", {"precision": "fp3"}, "--precision must be auto, fp32 or bf16, not 'fp3'.", "Did you mean fp32?"),
    ],
)
def test_devices_that_cannot_be(text: str, options: dict[str, Any], problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_devices(DeviceOptions(name=text, **options))
    assert raised.value.problem == problem
    assert raised.value.remedy.startswith(remedy)
