"""The exception tree: every error that a person can meet.

    RegardError                 exit code 1
    ├── UsageError              exit code 2: a wrong argument or name
    │   └── ConfigError         a key or a value of a run file
    ├── DataError               a file of text, a corpus, a vocabulary
    ├── RunError                a run folder
    │   ├── CheckpointError     a checkpoint that is missing, damaged or of another model
    │   └── LockedError         another process trains this run
    ├── TrainingError           training cannot go on
    └── MissingExtraError       an optional dependency is not installed

An error says in its first line what was expected and what came (with file and line), and in its second what to do.
"""

import difflib
from collections.abc import Iterable


class RegardError(Exception):
    """Something a person can put right; reaches the terminal as two lines, never as a traceback."""

    exit_code = 1

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}\n{remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class UsageError(RegardError):
    """A wrong argument, or a name that does not exist."""

    exit_code = 2


class ConfigError(UsageError):
    """A key or a value of a run file that does not fit."""


class DataError(RegardError):
    """A file that cannot be read as what it should be."""


class RunError(RegardError):
    """A run folder that is missing, incomplete, or of another kind."""


class CheckpointError(RunError):
    """A checkpoint that is missing, damaged, or does not fit the model."""


class LockedError(RunError):
    """Another process is training this run."""


class TrainingError(RegardError):
    """Training cannot go on: the loss is NaN or infinite, the disk is full."""


class MissingExtraError(RegardError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed.",
            f"Install it with: pip install 'regard[{extra}]'",
        )


def did_you_mean(name: str, choices: Iterable[str], *, otherwise: str = "") -> str:
    """Return the sentence that points to the nearest valid name; where none is near, `otherwise`, or all names.

    Where there is something else to say, a name must be nearer to be named.
    """
    names = sorted(choices)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7 if otherwise else 0.6)
    if near:
        return f"Did you mean {near[0]}?"
    return otherwise or f"Available: {', '.join(names)}."
