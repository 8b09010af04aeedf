"""Refusals before torch is loaded: runs that a command does not take, and options that do not apply to their task."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from regard.cli.options import flag, given, near_option
from regard.errors import UsageError
from regard.runs.folder import Reference, RunFolder
from regard.tasks.spec import TASKS, TaskSpec, find_spec, wrong_kind


def check_runs(command: str, runs: Sequence[str], options: Mapping[str, Any]) -> TaskSpec:
    """Refuse runs and options that a command cannot use, by the runs' config.toml alone; return the first run's task.

    options: all of the command's by their names, those that are not given too: the near name is one of them
    """
    specs = [find_spec(RunFolder.open(Reference.parse(run).path).read_config().task) for run in runs]
    for run, spec in zip(runs, specs, strict=True):
        if not spec.serves(command):
            raise wrong_kind(run, spec, _wanted(command))
    refuse_options(specs[0], options, partial(specs[0].takes_option, command))
    return specs[0]


def refuse_options(spec: TaskSpec, options: Mapping[str, Any], takes: Callable[[str], bool]) -> None:
    """Refuse options that are given and do not apply to a task; `takes` tells whether one does."""
    for name in given(options):
        if new := spec.renamed.get(f"data.{name}", "").partition(".")[2]:
            raise UsageError(
                f"{flag(name)} is now called {flag(new)} where the task is {spec.name}.", f"Write {flag(new)} instead."
            )
        if not takes(name):
            near = near_option(
                flag(name), [flag(other) for other in options if takes(other)], otherwise="Leave it out."
            )
            raise UsageError(f"{flag(name)} does not apply to {spec.name} runs.", near)


def _wanted(command: str) -> str:
    """What kind of run a command takes."""
    kinds = [spec.run for spec in TASKS.values() if spec.serves(command)]
    return f"a {kinds[0]}" if len(kinds) == 1 else f"a run that regard {command} can use"
