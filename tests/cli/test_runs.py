import json
import shutil
from pathlib import Path
from typing import Any

from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.training.summary import summarise


def test_a_row_a_run(command: Any, own_run: Path) -> None:
    outcome = command("runs")
    assert outcome.code == 0
    heading, row = outcome.lines
    assert heading.split() == [
        *("run", "task", "model", "state", "step", "loss", "score"),
        *("loss", "of", "average", "score", "of", "average", "age"),
    ]
    assert row.split()[:5] == ["runs/own", "translate", "transformer-tiny", "finished", "120"]
    assert row.endswith((" s", " min"))
    summary = summarise(RunFolder(own_run))
    scores = [[f"{found['loss']:.3f}", "BLEU", f"{found['bleu']:.1f}"] for found in (summary.best, summary.average)]
    assert row.split()[5:11] == [*scores[0], *scores[1]]


def test_without_an_average_there_is_no_column_for_it(command: Any, own_run: Path) -> None:
    shutil.rmtree(own_run / "checkpoints" / "average-00000120")
    assert command("runs").lines[0].split()[5:] == ["loss", "score", "age"]


def test_a_loss_that_is_no_number(command: Any, own_run: Path) -> None:
    for file in own_run.glob("checkpoints/*/state.json"):
        file.write_text(json.dumps({**json.loads(file.read_bytes()), "best": {"step": 40, "loss": None}}))
    outcome = command("runs")
    assert (outcome.code, outcome.lines[1].split()[5]) == (0, "—")


def test_json(command: Any, own_run: Path) -> None:
    [found] = [json.loads(line) for line in command("runs", "--json").lines]
    assert (found["run"], found["state"], found["step"]) == ("runs/own", "finished", 120)
    assert set(found["average"]) == {"step", "loss", "perplexity", "bleu", "chrf"}


def test_a_damaged_run_does_not_hide_the_others(command: Any, own_run: Path) -> None:
    bad = own_run.with_name("bad")
    bad.mkdir()
    (bad / "config.toml").write_text("task = \n")
    outcome = command("runs")
    assert (outcome.code, len(outcome.lines)) == (0, 2)
    assert outcome.err.startswith("note: runs/bad is left out. runs/bad/config.toml is not valid TOML: ")


def test_a_live_run_shows_the_step_that_it_is_at(command: Any, own_run: Path) -> None:
    shutil.rmtree(own_run / "checkpoints")
    record = {"kind": "train", "step": 57, "epoch": 3, "loss": 1.5}
    with locked(RunFolder(own_run)):
        (own_run / "metrics.jsonl").write_text(f'{json.dumps({**record, "step": 56})}\n{json.dumps(record)}\n{{"kind":')
        assert command("runs").lines[1].split()[3:6] == ["in", "training", "57"]
        assert "\nreached     step 57 of 120, epoch 3\n" in command("show", own_run).out
        for damaged in ("", "no JSON\n", '{"kind": "train"'):
            (own_run / "metrics.jsonl").write_text(damaged)
            assert command("runs").lines[1].split()[5] == "0"
    (own_run / "metrics.jsonl").write_text(f"{json.dumps(record)}\n")
    assert command("runs").lines[1].split()[4] == "0"  # from where it would be resumed


def test_none_yet(command: Any) -> None:
    Path("runs").mkdir()
    outcome = command("runs")
    assert (outcome.code, outcome.out) == (0, "")
    assert (
        outcome.err == "There is no run in runs. Train one: regard train translate --train FILE FILE, or: regard demo\n"
    )


def test_no_folder(command: Any) -> None:
    outcome = command("runs", "elsewhere")
    assert outcome.code == 2
    assert outcome.error == [
        "error: There is no folder elsewhere.",
        "Name the folder that holds your runs, or begin: regard demo",
    ]
