from typing import Any

import pytest

from regard.config import ModelTable
from regard.errors import UsageError
from regard.training import devices, step_timing
from regard.training.batch_shape import BatchShape, ImageBatchShape
from regard.training.devices import DeviceOptions, find_devices
from regard.training.plan import Plan, plan
from regard.training.planned_batch import BatchOptions
from regard.training.step_timing import Measurement, free_memory, measure


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "PEAK_SECONDS", 0.0)
    monkeypatch.setattr(devices, "_WIDTHS", {"cpu": 64})


SMALL = ModelTable(
    preset="transformer-tiny", fields={"d_model": 16, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1}
)


def planned(**options: Any) -> Plan:
    batch = BatchOptions(**{"tokens": 240, "length": 12, **options})
    return plan(SMALL, vocab_size=50, batch=batch, devices=DeviceOptions(name="P100"))


def measured(**others: float) -> Measurement:
    """A batch of 100 FLOPs in 5 seconds beside one of 20 in 1, and an update in 2."""
    seconds = {"gradient_seconds": 5.0, "tiny_seconds": 1.0, "update_seconds": 2.0}
    return Measurement(
        devices=find_devices(DeviceOptions(name="Abacus", peak=100.0)),
        batch=BatchShape(n_sequences=1, length=5),
        **{"flops": 100.0, "tiny_flops": 20.0, **seconds, **others},
    )


class Planned:
    """As much of a plan as is asked of."""

    steps = 3
    flops_per_step = 180


def test_a_larger_batch_lies_on_the_line_through_two_smaller_ones() -> None:
    found, whole = measured(), Planned()
    assert found.seconds_per_step(whole) == 5 + 80 * 4 / 80 + 2  # type: ignore[arg-type]
    assert found.seconds(whole) == 3 * 11  # type: ignore[arg-type]
    assert found.flops_per_second(whole) == 180 / 11  # type: ignore[arg-type]
    assert found.utilisation(whole) == 180 / 11 / 100  # type: ignore[arg-type]


@pytest.mark.parametrize("others", [{"tiny_seconds": 6.0}, {"tiny_flops": 100.0}])
def test_where_there_is_no_line_a_larger_batch_costs_in_proportion(others: dict[str, float]) -> None:
    assert measured(**others).seconds_per_step(Planned()) == 5 * 1.8 + 2  # type: ignore[arg-type]


def test_a_real_step_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "BATCH_SECONDS", 100.0)
    whole = planned()
    found = measure(whole)
    assert found.batch == BatchShape(n_sequences=20, length=12, target_length=12)  # never more than was planned
    assert found.flops == whole.flops_per_step
    assert found.devices.name == "this"
    assert min(found.gradient_seconds, found.tiny_seconds, found.update_seconds) > 0
    assert found.seconds_per_step(whole) == pytest.approx(found.gradient_seconds + found.update_seconds)


@pytest.mark.parametrize(("share", "batch"), [(3.5, (3, 12, 24)), (0.6, (1, 6, 12)), (0.0, (1, 1, 3))])
def test_a_batch_is_cut_to_what_there_is_time_for(
    share: float, batch: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = planned(tokens=(240, 480))  # 20 pairs
    peak = find_devices(DeviceOptions()).peak
    monkeypatch.setattr(step_timing, "this_machine", lambda: find_devices(DeviceOptions(name="Abacus", peak=peak)))
    monkeypatch.setattr(step_timing, "BATCH_SECONDS", share * whole.flops_per_step / 20 / peak / 0.35)
    n_sequences, length, target_length = batch
    assert measure(whole).batch == BatchShape(n_sequences=n_sequences, length=length, target_length=target_length)


def of_images(preset: str, **options: Any) -> Plan:
    fields = {"vit-tiny": {"n_layers": 1}, "captioner-vit": {"encoder": {"n_layers": 1}, "decoder": {"n_layers": 1}}}
    table = ModelTable(preset=preset, fields=fields.get(preset, {}))
    return plan(table, batch=BatchOptions(**{"images": 6, **options}), devices=DeviceOptions(name="P100"))


@pytest.mark.parametrize(
    ("preset", "batch"),
    [
        ("vit-tiny", ImageBatchShape(n_images=6, size=16)),
        ("convnet", ImageBatchShape(n_images=6, size=16)),
        ("captioner-vit", ImageBatchShape(n_images=6, size=16, n_captions=5, caption_length=12)),
    ],
)
def test_a_real_step_on_images_is_timed(preset: str, batch: ImageBatchShape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "BATCH_SECONDS", 100.0)
    whole = of_images(preset, image_size=16)
    found = measure(whole)
    assert found.batch == batch  # never more than was planned
    assert found.flops == whole.flops_per_step
    assert found.tiny_flops == pytest.approx(whole.flops_per_step / 6)
    assert min(found.gradient_seconds, found.tiny_seconds, found.update_seconds) > 0


@pytest.mark.parametrize(
    ("preset", "n_images"),
    [
        ("vit-tiny", 1),
        ("resnet-20", 2),  # one place is left of four pixels, of which batch norm learns nothing from one image
    ],
)
def test_as_few_images_as_can_be_are_timed(preset: str, n_images: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "BATCH_SECONDS", 0.0)
    found = measure(of_images(preset, image_size=4))
    assert found.batch == ImageBatchShape(n_images=n_images, size=4)
    assert (found.tiny_flops, found.tiny_seconds) == (found.flops, found.gradient_seconds)


def test_a_model_too_large_for_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "free_memory", lambda: 10**5)
    with pytest.raises(UsageError) as raised:
        measure(planned())
    assert raised.value.problem.startswith("A step of transformer-tiny needs at least ")
    assert raised.value.problem.endswith(" GB, and this machine has 0.0001 GB free.")
    assert raised.value.remedy == "Measure a smaller model, or leave the measurement out."


def test_free_memory_is_known_here() -> None:
    free = free_memory()
    assert free is None or free > 2**20
