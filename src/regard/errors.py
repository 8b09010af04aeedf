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

import math
from collections.abc import Iterable

LONGEST_SHOWN, MOST_SHOWN = 100, 100  # letters of a name, and names, that a sentence lists
LONGEST_NAME = 300  # letters; edits of longer ones take too long to count


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
    """Return the sentence that points to the nearest valid name; where none is near, `otherwise`, or the names."""
    names = sorted(choices)
    near = min(names, key=lambda one: (_distance(name, one), name[:1] != one[:1]), default="")
    if _distance(name, near) < math.inf:
        return f"Did you mean {near}?"
    shown = [one if len(one) <= LONGEST_SHOWN else f"{one[:LONGEST_SHOWN]}…" for one in names[:MOST_SHOWN]]
    rest = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return otherwise or f"Available: {', '.join(shown)}{rest}."


def plain_name(name: str) -> str:
    """Return a name without what an option has of its own: --Batch-Size as batch_size."""
    return name.strip("-").replace("-", "_").lower()


def _distance(name: str, other: str) -> float:
    """How many edits a name is from what may have been meant; infinitely many past a third of the letters, or three.

    The first words of a longer name are near, too: --vocab for --vocab-size.
    """
    short, long = sorted((plain_name(name), plain_name(other)), key=len)
    most = min(3, len(long) // 3)
    if len(long) <= LONGEST_NAME and len(long) - len(short) <= most and (edits := _edits(short, long)) <= most:
        return edits
    return most if len(short) > 2 and long.startswith(f"{short}_") else math.inf


def _edits(name: str, other: str) -> int:
    """Count the edits between two names: insertions, deletions, substitutions, and letters that have changed places."""
    table = [list(range(len(other) + 1))]
    for i, letter in enumerate(name, start=1):
        table.append([i])
        for j, against in enumerate(other, start=1):
            fewest = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (letter != against))
            if i > 1 and j > 1 and (letter, against) == (other[j - 2], name[i - 2]):
                fewest = min(fewest, table[i - 2][j - 2] + 1)
            table[i].append(fewest)
    return table[-1][-1]
