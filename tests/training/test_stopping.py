import dataclasses
import math

import pytest

from regard.config import TrainingConfig
from regard.training.stopping import End, is_overfitted, overfitting_note, reached_end

ENDS = TrainingConfig(steps=1000, epochs=5, minutes=2, patience=3)
GOING = {"step": 999, "epoch": 4, "seconds": 119.0, "not_improved": 2}


def test_before_every_end_it_goes_on() -> None:
    assert reached_end(ENDS, **GOING) is None
    assert reached_end(TrainingConfig(), step=10**6, epoch=100, seconds=1e6, not_improved=100) is None


def test_an_end_by_epochs_waits_for_some_steps() -> None:
    ends = TrainingConfig(epochs=5, min_steps=500)
    assert reached_end(ends, step=499, epoch=50, seconds=0, not_improved=0) is None
    assert reached_end(ends, step=500, epoch=50, seconds=0, not_improved=0) == End(
        "epochs", "5 epochs and 500 steps are done"
    )
    assert reached_end(ends, step=800, epoch=5, seconds=0, not_improved=0) == End("epochs", "5 epochs are done")
    assert reached_end(ends, step=500, epoch=4, seconds=0, not_improved=0) is None


@pytest.mark.parametrize(
    ("reached", "limit", "reason"),
    [
        ({"step": 1000}, "steps", "1,000 steps are done"),
        ({"epoch": 5}, "epochs", "5 epochs are done"),
        ({"seconds": 120.0}, "minutes", "2 minutes are over"),
        ({"not_improved": 3}, "patience", "early stopping: no better loss in 3 validations"),
    ],
)
def test_each_end_has_its_reason(reached: dict[str, float], limit: str, reason: str) -> None:
    assert reached_end(ENDS, **{**GOING, **reached}) == End(limit, reason)
    by_bleu = dataclasses.replace(ENDS, best_by="bleu")
    assert reached_end(by_bleu, **{**GOING, **reached}) == End(limit, reason.replace("loss", "BLEU"))


def test_a_loss_counts_as_risen_by_two_percent() -> None:
    assert not is_overfitted(0.5, lowest=0.5)
    assert not is_overfitted(0.509, lowest=0.5)
    assert is_overfitted(0.511, lowest=0.5)
    assert not is_overfitted(0.5, lowest=math.inf), "the first validation"
    assert is_overfitted(-0.4, lowest=-0.5)


def test_the_note_on_overfitting() -> None:
    assert overfitting_note(loss=0.81234, lowest=0.62, step=1400) == (
        "the validation loss rises: it is 0.812, and was 0.620 at step 1,400. The model overfits: more dropout"
        " (model.dropout), a smaller model or more data help."
    )
