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
    assert facts["average"].endswith(f"; {trained} names it")
    names = [line.split()[0] for line in outcome.lines[outcome.lines.index("") + 2 :]]
    assert names == ["step-00000040", "step-00000080", "step-00000120", "average-00000120"]
    assert outcome.out.count("★ best") == 1


def test_scores_that_are_no_numbers(command: Any, own_run: Path) -> None:
    for file in own_run.glob("checkpoints/step-*/state.json"):  # as runs of the past have written infinity
        state = json.loads(file.read_bytes())
        state["validation"]["perplexity"] = state["best"]["perplexity"] = None
        file.write_text(json.dumps(state))
    outcome = command("show", own_run)
    assert outcome.code == 0
    [best] = [line for line in outcome.lines if line.startswith("best ")]
    assert ", perplexity —, " in best
    [row] = [line for line in outcome.lines if line.startswith("step-00000120 ")]
    assert " — " in row


def test_intervals(command: Any, own_run: Path) -> None:
    for file in own_run.glob("checkpoints/step-*/state.json"):
        state = json.loads(file.read_bytes())
        state["best"] |= {"accuracy": 81.25, "accuracy_low": 78.6, "accuracy_high": 83.5}
        file.write_text(json.dumps(state))
    outcome = command("show", own_run)
    [best] = [line for line in outcome.lines if line.startswith("best ")]
    assert best.endswith(", accuracy 81.2 (95 % interval 78.6 to 83.5)")


def test_json(command: Any, trained: Path) -> None:
    found = json.loads(command("show", f"{trained}@best", "--json").out)
    assert found["parameters"] == regard.load(trained).n_parameters
    assert found["config"]["task"] == "translate"
    assert len(found["checkpoints"]) == 4


def test_a_run_that_was_stopped(command: Any, own_run: Path) -> None:
    for name in ("step-00000120", "average-00000120"):
        shutil.rmtree(own_run / "checkpoints" / name)
    assert f"state       stopped; resume it with: regard resume {own_run}" in command("show", own_run).lines


def test_an_average_of_the_past_is_not_what_the_name_means(command: Any, own_run: Path) -> None:
    # The run has been trained beyond it: its record is of step 80, its newest checkpoint of step 120.
    file = own_run / "metrics.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    records = [{**one, "step": 80} if one["kind"] == "average" else one for one in records]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    [row] = [line for line in command("show", own_run).lines if line.startswith("average   ")]
    assert "means it" not in row


def test_a_run_in_training(command: Any, own_run: Path) -> None:
    with locked(RunFolder(own_run)):
        assert "state       in training by process " in command("show", own_run).out
