import json
from pathlib import Path
from typing import Any


def test_a_row_a_run(command: Any, own_run: Path) -> None:
    outcome = command("runs")
    assert outcome.code == 0
    heading, row = outcome.lines
    assert heading.split() == ["run", "task", "model", "state", "step", "loss", "BLEU", "age"]
    assert row.split()[:5] == ["runs/own", "translate", "transformer-tiny", "finished", "120"]
    assert row.endswith((" s", " min"))


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


def test_none_yet(command: Any) -> None:
    Path("runs").mkdir()
    outcome = command("runs")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "There is no run in runs. Train one: regard train translate --train FILE FILE\n"


def test_no_folder(command: Any) -> None:
    outcome = command("runs", "elsewhere")
    assert outcome.code == 2
    assert outcome.error == [
        "error: There is no folder elsewhere.",
        "Name the folder that holds your runs, or begin: regard demo",
    ]
