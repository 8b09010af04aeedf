"""`regard train TASK --help` shows the options and defaults of the task, and no others."""

from typing import Any

import pytest

from regard.api import with_defaults
from regard.cli.train_help import OPTIONS, end_text
from regard.cli.train_options import applies
from regard.config import RunConfig
from regard.tasks.spec import TASKS


def words(outcome: Any) -> list[str]:
    """What is shown, without the boxes and line ends around it."""
    return str(outcome.out).replace("│", " ").split()


@pytest.mark.parametrize("task", TASKS)
def test_the_help_of_a_task_has_its_options(command: Any, task: str) -> None:
    outcome = command("train", task, "--help")
    assert outcome.code == 0
    assert outcome.lines[0] == f"Usage: regard train {task} --train FILE… [OPTIONS]"
    shown = {word for word in words(outcome) if word in OPTIONS}
    mentioned = {"--steps", "--epochs", "--minutes", "--init"}  # by other options, too; all of them apply everywhere
    assert shown | mentioned == {option for option, name in OPTIONS.items() if applies(TASKS[task], name)} | mentioned
    assert (
        TASKS[task].files.split()
        == words(outcome)[words(outcome).index("data:") + 1 :][: len(TASKS[task].files.split())]
    )
    assert f"regard models {task}" in " ".join(words(outcome))


def test_without_a_task_the_tasks_are_listed_and_what_all_have(command: Any) -> None:
    outcome = command("train", "--help")
    shown = " ".join(words(outcome))
    for spec in TASKS.values():
        assert f"{spec.name} {spec.about}" in shown
    assert "--train" in shown
    assert "--batch-tokens" not in shown


@pytest.mark.parametrize("task", TASKS)
def test_the_help_says_when_a_run_ends_by_itself(task: str) -> None:
    end = with_defaults(RunConfig(task=task)).training
    ends = f"after {end.steps:,} steps" if end.steps else f"after {end.epochs} epochs, not before {end.min_steps} steps"
    if end.patience:
        ends += f", earlier after {end.patience} validations without improvement"
    assert end_text(TASKS[task]) == f"Without --steps, --epochs or --minutes a run ends {ends}."
