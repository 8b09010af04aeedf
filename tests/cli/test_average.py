import json
from pathlib import Path
from typing import Any

import pytest


def test_the_newest(command: Any, own_run: Path) -> None:
    outcome = command("average", own_run, "--last", 2)
    assert outcome.code == 0
    assert outcome.out == f"{own_run}/checkpoints/average-00000120\n"
    assert outcome.err == f"Averaged steps 80, 120; {own_run} and {own_run}@average now name the result:\n"


def test_chosen_steps(command: Any, own_run: Path) -> None:
    outcome = command("average", own_run, "--steps", "40,80", "--json")
    found = json.loads(outcome.out)
    assert found == {
        "run": str(own_run),
        "checkpoint": f"{own_run}/checkpoints/average-00000080",
        "steps": [40, 80],
    }


@pytest.mark.parametrize("flags", [(), ("--last", "2", "--steps", "40,80")])
def test_one_of_the_two_is_needed(command: Any, flags: tuple[str, ...]) -> None:
    outcome = command("average", "runs/own", *flags)
    assert outcome.code == 2
    assert outcome.error == [
        "error: An average needs either --last or --steps.",
        "For example: regard average runs/own --last 5",
    ]
