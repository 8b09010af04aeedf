import json
from pathlib import Path
from typing import Any


def test_runs_side_by_side(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, f"{trained}@40", "--data", *corpus, "--beam", 1)
    assert outcome.code == 0
    assert outcome.lines[0].split()[:3] == ["system", "parameters", "sentences/s"]
    assert outcome.lines[1].startswith(f"{trained} ")
    assert outcome.lines[4].split()[:2] == ["metric", "system"]
    assert outcome.out.count("\nsource ") == outcome.out.count("\nexpected ") == 5
    assert "where chrF differs by" in outcome.out


def test_json(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, f"{trained}@40", "--data", *corpus, "--beam", 1, "--json")
    found = json.loads(outcome.out)
    assert found["baseline"] == str(trained)
    assert [system["system"] for system in found["systems"]] == [str(trained), f"{trained}@40"]


def test_one_run_is_not_enough(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    outcome = command("compare", trained, "--data", *corpus)
    assert outcome.code == 2
    assert outcome.error == [
        "error: A comparison needs at least two runs.",
        "Name them: regard compare RUN RUN --data FILE FILE",
    ]
