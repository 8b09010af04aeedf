"""The training state: what is read back, and what is refused because training never writes it."""

from typing import Any

import pytest

from regard.training.state import Cursor, TrainingState

BEST = {"step": 4, "loss": 1.5, "bleu": None}
STATE = TrainingState(
    cursor=Cursor(step=6, epoch=1, batches=2),
    seconds=3.5,
    order={"seed": 1},
    best=BEST,
    validation=BEST,
    validated=[4, 6],
    not_improved=1,
)


def test_a_state_comes_back() -> None:
    assert TrainingState.from_json(STATE.as_json()) == STATE
    assert TrainingState.from_json({"place": {}}) == TrainingState()


@pytest.mark.parametrize(
    "change",
    [
        {"place": None},
        {"place": 3},
        {"place": {"step": "6"}},
        {"place": {"step": -1}},
        {"place": {"step": 6, "batches": 10**30}},
        {"place": {"step": 6, "other": 1}},
        {"other": 1},
        {"seconds": "3"},
        {"seconds": -1},
        {"seconds": float("nan")},
        {"seconds": 1e300},
        {"order": [1]},
        {"order": {"seed": "1"}},
        {"best": "x"},
        {"best": {"loss": 1.5}},
        {"best": {"step": "4", "loss": 1.5}},
        {"validation": [1]},
        {"validation": {"loss": "x"}},
        {"validated": 3},
        {"validated": ["x"]},
        {"best_by": ["loss"]},
        {"worse": "x"},
    ],
)
def test_what_training_never_writes_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        TrainingState.from_json({**STATE.as_json(), **change})


def test_a_state_without_its_place_is_refused() -> None:
    with pytest.raises(ValueError, match="it lacks its cursor"):
        TrainingState.from_json({name: value for name, value in STATE.as_json().items() if name != "place"})
