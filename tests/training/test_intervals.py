"""After which updates a run is validated and saved."""

from typing import Any

import pytest

from regard.config import TrainingConfig
from regard.training import intervals
from regard.training.intervals import last_step, save_is_due, steps_in_epochs, steps_per_epoch, validation_is_due


def test_an_epoch_ends_with_the_batches_that_are_left() -> None:
    assert steps_per_epoch(7, TrainingConfig(accumulate=3)) == 3
    assert steps_per_epoch(6, TrainingConfig(accumulate=3)) == 2


@pytest.mark.parametrize(
    ("ends", "last"),
    [
        ({"steps": 100}, 100),
        ({"epochs": 2}, 20),
        ({"steps": 100, "epochs": 2}, 20),
        ({"steps": 15, "epochs": 2}, 15),
        ({"epochs": 2, "min_steps": 30}, 30),
        ({"epochs": 2, "min_steps": 5}, 20),
        ({"minutes": 1.0}, 0),
    ],
)
def test_the_last_step_is_that_of_the_first_end(ends: dict[str, float], last: int) -> None:
    assert last_step(TrainingConfig(**ends), steps_in_epochs=20) == last


class Rows:
    """Examples whose epochs have 7, 8, 9, … batches of one."""

    def __init__(self, n: int = 7) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def order(self, epoch: int) -> list[range]:
        return [range(1)] * (self.n + epoch)


def test_the_updates_of_epochs_are_counted_one_by_one() -> None:
    rows: Any = Rows()
    assert steps_in_epochs(rows, TrainingConfig(epochs=3)) == 7 + 8 + 9
    assert steps_in_epochs(rows, TrainingConfig(epochs=3, accumulate=2)) == 4 + 4 + 5
    assert steps_in_epochs(rows, TrainingConfig(steps=3)) == 0


def test_of_very_many_examples_the_first_epoch_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "COUNTED", 20)
    rows: Any = Rows()
    assert steps_in_epochs(rows, TrainingConfig(epochs=3)) == 3 * 7
    assert steps_in_epochs(rows, TrainingConfig(epochs=2)) == 7 + 8


def due_at(training: TrainingConfig, per_epoch: int) -> list[int]:
    return [step for step in range(1001) if validation_is_due(training, step=step, steps_per_epoch=per_epoch)]


def test_a_validation_comes_at_its_interval_or_once_per_epoch() -> None:
    assert due_at(TrainingConfig(validate_every=400), 300) == [400, 800]
    assert due_at(TrainingConfig(), 300) == [300, 600, 900]
    assert due_at(TrainingConfig(), 7) == list(range(100, 1001, 100)), "short epochs are not validated each"


def test_a_checkpoint_is_saved_by_steps_or_by_time() -> None:
    training = TrainingConfig(save_every_steps=5, save_every_minutes=2.0)
    assert save_is_due(training, step=10, seconds=0.0)
    assert not save_is_due(training, step=11, seconds=119.0)
    assert save_is_due(training, step=11, seconds=120.0)
    assert not save_is_due(TrainingConfig(save_every_minutes=0.0), step=10, seconds=1e6)
