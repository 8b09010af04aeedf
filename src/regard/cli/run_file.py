"""From the options of `regard train` to the settings of a new run."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.options import check_option, flag, named
from regard.cli.refusals import refuse_options
from regard.cli.train_options import DataOptions, LearningOptions, ModelOptions, applies, key_of
from regard.config import RunConfig
from regard.errors import UsageError
from regard.tasks.spec import find_spec

if TYPE_CHECKING:
    from regard.api.new_run import NewRun


def new_run(
    what: str, data: DataOptions, model: ModelOptions, learning: LearningOptions, sets: Sequence[str] = ()
) -> "NewRun":
    """Return the settings of a new run and its ready vocabulary, if there is one; --set has the last word."""
    from regard.api.new_run import assemble, starting_point

    options = named(data, model, learning)
    spec = find_spec(starting_point(what)[0].task)
    refuse_options(spec, options, partial(applies, spec))
    changes = {**changed_keys(options), **assignments(sets)}
    return assemble(what, changes, model=model.model, vocabulary=model.vocabulary or None, origin="--set")


def changed_keys(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what options change, by the keys of a run file; a value that is not allowed is refused by its option's name."""
    changes = {}
    for name, value in options.items():
        key = key_of(name, value)
        if key and value not in (None, "", ()):
            check_option(key, value, place=flag(name))
            changes[key] = value
    return changes


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Read what is given with --set: KEY=VALUE, the key dotted."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise UsageError(f"--set takes KEY=VALUE, not '{text}'.", "Write, for example: --set training.steps=400")
        found[key.strip()] = value.strip()
    return found


def free_folder(config: RunConfig) -> Path:
    """Name a folder for a run that was given none: runs/TASK-MODEL-1, or the next number that is free."""
    number = 1
    while (path := Path("runs") / f"{config.task}-{config.model.preset}-{number}").exists():
        number += 1
    return path
