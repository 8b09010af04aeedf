import json
import shutil
from pathlib import Path
from typing import Any

import regard
from regard.runs.folder import RunFolder
from regard.runs.lock import locked


def test_what_a_run_is_and_reached(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("show", trained)
    assert outcome.code == 0
    n_parameters = regard.load(trained).n_parameters
    facts = {line[:12].strip(): line[12:] for line in outcome.lines[: outcome.lines.index("")]}
    assert facts["model"] == f"transformer-tiny, {n_parameters:,} parameters"
    assert facts["training"] == ", ".join(corpus)
    assert facts["state"] == "finished: 120 steps are done"
    assert facts["reached"].startswith("step 120 of 120, epoch ")
    assert facts["best"].startswith("step ")
    assert facts["average"].startswith("loss ")
    names = [line.split()[0] for line in outcome.lines[outcome.lines.index("") + 2 :]]
    assert names == ["step-00000040", "step-00000080", "step-00000120", "average-00000120"]
    assert outcome.out.count("★ best") == 1


def test_json(command: Any, trained: Path) -> None:
    found = json.loads(command("show", f"{trained}@best", "--json").out)
    assert found["parameters"] == regard.load(trained).n_parameters
    assert found["config"]["task"] == "translate"
    assert len(found["checkpoints"]) == 4


def test_a_run_that_was_stopped(command: Any, own_run: Path) -> None:
    for name in ("step-00000120", "average-00000120"):
        shutil.rmtree(own_run / "checkpoints" / name)
    assert f"state       stopped; go on with: regard resume {own_run}" in command("show", own_run).lines


def test_a_run_in_training(command: Any, own_run: Path) -> None:
    with locked(RunFolder(own_run)):
        assert "state       in training by process " in command("show", own_run).out
