"""Options of using a run: one frozen dataclass per task, all of them built on these."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, TypeVar, cast

from regard.config import DataConfig, DecodingConfig, RunConfig, changed
from regard.config.keywords import DataSettings, DecodingSettings
from regard.config.synonyms import near_name
from regard.errors import UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.tasks.spec import find_spec

Progress = Callable[[str, int], None]  # what is being done, and how many of it are
Count = Callable[[int], None]  # of one thing that is being done, how many are


def no_progress(what: str, done: int) -> None:
    """Tell nobody."""


def no_count(done: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every task understands.

    data:      how files are read (columns, languages, policy about bad rows); None for as in training
    split:     which rows of a test set that is divided: test by default, valid, train, or all
    paired:    also keep what each example adds to each metric, for paired significance tests
    baselines: what is scored beside the model
    progress:  called with what is being done and how many of it are
    """

    data: DataConfig | None = None
    split: str = ""
    paired: bool = False
    baselines: tuple[Baseline, ...] = ()
    progress: Progress = no_progress

    def after(self, n_inputs: int) -> Self:
        """The options for further inputs of a stream, of which so many were predicted in calls before."""
        return self


@dataclass(frozen=True, kw_only=True)
class GenerationOptions(Options):
    """What every task that generates text understands.

    decoding:  how output is searched for; None for the run's own settings
    seed:      of sampling
    n_before:  how many inputs of the same stream were predicted before, for an input's draws depend on its number; None
               where the inputs of a call are all there are
    banned:    words or phrases that are never written
    engine:    another engine that searches in place of our own, where it can; see `regard.decoding.engine`
    log_probs: also tell the log-probability of each token, which another engine reads back in a pass of its own
    """

    decoding: DecodingConfig | None = None
    seed: int = 1
    n_before: int | None = None
    banned: tuple[str, ...] = ()
    engine: Any = None
    log_probs: bool = True

    def after(self, n_inputs: int) -> Self:
        """The same for inputs with later numbers."""
        return dataclasses.replace(self, n_before=(self.n_before or 0) + n_inputs)


OptionsType = TypeVar("OptionsType", bound=Options)


def make_options(kind: type[OptionsType], config: RunConfig, given: Mapping[str, Any]) -> OptionsType:
    """Build a task's options from settings by name: its own, and those of the run's [data] and [decoding] to change.

    A name that the task does not have is refused, with the near one.
    """
    spec = find_spec(config.task)
    names = _names(cast(Any, kind), spec.name)
    for name in given:
        if name not in names.all:
            raise UsageError(f"'{name}' does not apply to {spec.name} runs.", near_name(name, names.all))
    # One text where several may be given is one of them, not its letters.
    own: dict[str, Any] = {
        name: (value,) if name in names.several and isinstance(value, str) else value
        for name, value in given.items()
        if name in names.own
    }
    for table, keys in (("data", names.data), ("decoding", names.decoding)):
        if settings := {name: value for name, value in given.items() if name in keys}:
            base = own.get(table) or getattr(config, table)
            own[table] = changed(base, settings, origin=f"run.{spec.verb}")
    return kind(**own)


@dataclass(frozen=True, kw_only=True)
class _Names:
    """What may be given by name: a task's own options, those of them that hold several texts, and keys of two tables."""

    own: frozenset[str]
    several: frozenset[str]
    data: frozenset[str]
    decoding: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.own | self.data | self.decoding


@cache
def _names(kind: type[Options], task: str) -> _Names:
    spec, fields = find_spec(task), dataclasses.fields(kind)
    own = frozenset(field.name for field in fields)
    return _Names(
        own=own,
        several=frozenset(field.name for field in fields if isinstance(field.default, tuple)),
        data=frozenset(key for key in DataSettings.__annotations__ if spec.reads_setting("data", key)) - own,
        decoding=frozenset(key for key in DecodingSettings.__annotations__ if spec.reads_setting("decoding", key))
        - own,
    )
