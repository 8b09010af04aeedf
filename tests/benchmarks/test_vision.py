"""The image benchmark gives everybody the same work, and refuses to time anything else."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.vision import CASES, PEERS, Case, ReadyImages
from safetensors.torch import load_file

from benchmarks import vision


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vision, "FOLDER", tmp_path)
    monkeypatch.setattr(vision, "N_IMAGES", 24)
    monkeypatch.setattr(vision, "N_BATCH", 8)


def test_all_networks_see_grey_and_coloured_images() -> None:
    assert {(case.model, case.size, case.channels) for case in CASES.values()} == {
        (model, *images) for model in PEERS for images in ((28, 1), (32, 3))
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_everybody_begins_with_the_same_loss_on_the_same_images(case: Case) -> None:
    vision.prepare_images(case, n_updates=5)
    trainer = vision.make_trainer(case, threads=torch.get_num_threads())
    images = ReadyImages(**load_file(vision.FOLDER / f"{case.name}.safetensors"))
    order = [*trainer.examples.order(0), *trainer.examples.order(1)][:5]
    assert images.order.tolist() == [indices.tolist() for indices in order]
    batch = trainer.collate(order[4])
    task: Any = trainer.task
    assert torch.equal(images.images[images.order[4]], task.table.normalise(batch.images))
    assert torch.equal(images.labels[images.order[4]], batch.labels)

    ours = vision.our_first_loss(trainer)
    sizes = vision.network_config(task.config, task)
    for peer in PEERS[case.model]:
        network = vision.peer_network(peer, sizes)
        assert vision.count_parameters(network) == vision.count_parameters(trainer.model)
        theirs = vision.peer_first_loss(peer, sizes, images, smoothing=trainer.config.label_smoothing)
        assert abs(theirs - ours) < vision.SAME_LOSS


def test_images_are_a_function_of_the_seed() -> None:
    (first, labels), (again, _), (other, _) = (vision.made_up(9, size=4, channels=3, seed=seed) for seed in (1, 1, 2))
    assert (first.shape, first.dtype, labels.shape) == ((9, 4, 4, 3), np.uint8, (9,))
    assert (first == again).all()
    assert (first != other).any()


@dataclass
class Told:
    """A child that has said only what it is."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"parameters": 1001, "first_loss": 2.3}, "torch.nn has 1,001 parameters, not 1,000."),
        ({"parameters": 1000, "first_loss": 2.31}, "torch.nn begins with a loss of 2.31, not 2.3."),
    ],
)
def test_another_network_is_refused(facts: dict[str, Any], problem: str) -> None:
    ours: Any = Told("regard", {"parameters": 1000, "first_loss": 2.3})
    theirs: Any = Told("torch.nn", facts)
    case = CASES["resnet-20-28"]
    vision.check_equal_work(case, [ours, ours])
    with pytest.raises(SystemExit) as caught:
        vision.check_equal_work(case, [ours, theirs])
    assert str(caught.value) == f"resnet-20, 28 × 28 grey: {problem}"


def test_a_ratio_is_of_speeds() -> None:
    ours, theirs = [{"seconds": 1.0}, {"seconds": 2.0}], [{"seconds": 1.5}, {"seconds": 3.0}]
    assert vision.faster(ours, theirs, "seconds") == pytest.approx(1.5)
