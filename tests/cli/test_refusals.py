"""Runs and options that a command cannot use are refused by the runs' config.toml, before torch is loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import make_app
from regard.cli.options import flag
from regard.cli.refusals import check_runs, refuse_options
from regard.errors import RunError, UsageError
from regard.tasks.spec import TASKS


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Make the folder of a run of a task, with nothing in it but its config."""

    def make(task: str) -> str:
        folder = tmp_path / task
        folder.mkdir()
        (folder / "config.toml").write_text(f'task = "{task}"\n')
        return str(folder)

    return make


def test_the_task_of_the_first_run_is_returned(run: Any) -> None:
    assert check_runs("evaluate", [run("mask"), run("tag")], {"on_bad": "stop"}) is TASKS["mask"]


@pytest.mark.parametrize(
    ("command", "task", "problem", "remedy"),
    [
        ("translate", "classify", "a Classifier, not a Translator", "predict"),
        ("generate", "image", "an ImageClassifier, not a LanguageModel", "predict"),
        ("predict", "translate", "a Translator, not a run that regard predict can use", "translate"),
        ("embed", "caption", "a Captioner, not a run that regard embed can use", "predict"),
    ],
)
def test_a_run_of_another_kind_names_its_command(run: Any, command: str, task: str, problem: str, remedy: str) -> None:
    name = run(task)
    with pytest.raises(UsageError) as raised:
        check_runs(command, [name], {})
    assert raised.value.problem == f"{name} is {problem}: it was trained for the task '{task}'."
    assert raised.value.remedy == f"Use it with: regard {remedy} {name}"


def test_a_run_that_is_none_is_told() -> None:
    with pytest.raises(RunError, match=r"^nowhere is not a run"):
        check_runs("evaluate", ["nowhere"], {})


@pytest.mark.parametrize(
    ("command", "task", "options", "problem", "remedy"),
    [
        ("evaluate", "classify", {"by_length": True}, "--by-length", "Leave it out."),
        ("evaluate", "classify", {"beam": 2}, "--beam", "Leave it out."),
        ("evaluate", "classify", {"source": "x", "text": ""}, "--from", "Leave it out."),
        ("evaluate", "language", {"beam": 2}, "--beam", "Leave it out."),
        ("predict", "image", {"on_bad": "stop"}, "--on-bad", "Leave it out."),
        ("evaluate", "tag", {"text_b": "x", "text": ""}, "--text-b", "Did you mean --text?"),
        ("evaluate", "mask", {"output": "x"}, "--output", "Leave it out."),
        ("evaluate", "caption", {"picture": "x.png"}, "--picture", "Leave it out."),
        ("compare", "classify", {"picture": "x.png"}, "--picture", "Leave it out."),
        ("predict", "mask", {"text": "x"}, "--text", "Leave it out."),
        ("predict", "caption", {"text": "x"}, "--text", "Leave it out."),
        ("predict", "classify", {"max_length": 2}, "--max-length", "Leave it out."),
        ("predict", "regress", {"top": 2}, "--top", "Leave it out."),
        ("predict", "image", {"seed": 2}, "--seed", "Leave it out."),
    ],
)
def test_options_that_do_not_apply(
    run: Any, command: str, task: str, options: dict[str, Any], problem: str, remedy: str
) -> None:
    with pytest.raises(UsageError) as raised:
        check_runs(command, [run(task)], options)
    assert raised.value.problem == f"{problem} does not apply to {task} runs."
    assert raised.value.remedy == remedy


@pytest.mark.parametrize(("task", "new"), [("language", "--text"), ("caption", "--image")])
def test_an_option_that_has_another_name_for_a_task(run: Any, task: str, new: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_runs("evaluate", [run(task)], {"source": "review"})
    assert str(raised.value) == f"--from is now called {new} where the task is {task}.\nWrite {new} instead."


@pytest.mark.parametrize(
    ("command", "task", "options"),
    [
        ("evaluate", "translate", {"beam": 2, "metrics": "wer", "by_length": True, "output": "x", "source": "en"}),
        ("evaluate", "caption", {"beam": 2, "metrics": "wer", "output": "x", "split": "all", "on_bad": "stop"}),
        ("evaluate", "image", {"blocks": True, "picture": "x.png", "output": "x"}),
        ("evaluate", "classify", {"picture": "x.png", "text_b": "x", "split_column": "x"}),
        ("compare", "translate", {"picture": "x.png", "lowercase": True}),
        ("predict", "caption", {"n_best": 2, "seed": 3, "picture": "x.png"}),
        ("predict", "mask", {"top": 2}),
        ("generate", "language", {"temperature": 0.5, "banned": ("x",)}),
    ],
)
def test_options_that_apply(run: Any, command: str, task: str, options: dict[str, Any]) -> None:
    check_runs(command, [run(task)], options)


def test_options_that_are_not_given_are_not_refused() -> None:
    refuse_options(TASKS["tag"], {"beam": None, "align": False, "banned": (), "source": ""}, lambda name: False)


def test_nothing_heavy_is_needed() -> None:
    program = "import sys, regard.cli.refusals; print(*({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("command", ["predict", "evaluate", "compare"])
def test_what_tasks_claim_are_options_of_the_command(command: str) -> None:
    known = {
        name for argument in make_app([command])[command].assemble_argument_collection() for name in argument.names
    }
    claimed = {flag(name) for spec in TASKS.values() for name in spec.options.get(command, ())}
    assert claimed <= known
