"""What to do next with a run: commands that it takes."""

from pathlib import Path

import pytest

from regard.config import ModelTable, RunConfig
from regard.training.next_steps import how_to_repeat, how_to_resume, next_steps

PRESET = RunConfig(task="classify", model=ModelTable(preset="bert-tiny"))
CUSTOM = RunConfig(task="classify")


def test_commands_for_a_preset() -> None:
    assert next_steps("my run", PRESET) == [
        "regard predict 'my run' \"…\"",
        "regard evaluate 'my run' --data TEST-FILES",
        "regard plot 'my run'",
    ]
    assert next_steps("run", PRESET, example="--data FILE.npz")[0] == "regard predict run --data FILE.npz"
    assert how_to_resume("my run", PRESET) == "regard resume 'my run'"
    assert how_to_resume("my run", PRESET, processes=2) == "regard resume 'my run' --processes 2"
    assert "`regard train config.toml --run ANOTHER` repeats" in how_to_repeat(PRESET)


def test_python_for_a_custom_network() -> None:
    assert next_steps("my run", CUSTOM) == [
        'run = regard.load("my run", model=YourNetwork(…))',
        "run.predict(…)",
        'run.evaluate("TEST-FILE")',
        "regard plot 'my run'",
    ]
    assert how_to_resume("run", CUSTOM) == 'regard.resume("run", model=YourNetwork(…))'
    assert "needs that network" in how_to_repeat(CUSTOM)


@pytest.mark.parametrize(
    ("run", "command"),
    [
        ("vectors_run", "regard predict run --data FILE.npz"),
        ("pairs_run", 'regard predict run "…" --text-b "…"'),
        ("classify_run", 'regard predict run "…"'),
    ],
)
def test_what_a_run_recommends_it_takes(run: str, command: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(run)
    assert f"\n    {command}\n" in (folder / "README.md").read_text()
