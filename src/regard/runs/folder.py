"""The run folder: where each thing lies, and how people name a run (`runs/m30k`, `runs/m30k@best`).

A folder is a run when it has a `config.toml`. What a checkpoint holds is in `checkpoints.py`; which one a name means is
in `selection.py`. A run is complete in itself: a link to anything outside is refused.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.config import RunConfig, read
from regard.errors import RunError, UsageError, did_you_mean
from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, write_atomically
from regard.runs.json_files import read_json

CONFIG = "config.toml"
TASK = "task.json"
BASELINE = "baseline.safetensors"
CONTENTS = {
    CONFIG,
    TASK,
    BASELINE,
    "vocabulary",
    "metrics.jsonl",
    "README.md",
    "lock",
    "traces",
    "checkpoints",
    "engines",
}
MOST_TASK = 64 * MEGABYTE  # with the hash of each of many files
CONTENTS |= {"corpus", "tensorboard"}  # what the demo and --tensorboard leave there

Word = Literal["best", "last", "average"]
WORDS: tuple[Word, ...] = ("best", "last", "average")


@dataclass(frozen=True)
class Reference:
    """A run and which of its checkpoints: a step, a word, or None for the default (see `selection.py`)."""

    path: Path
    selector: int | Word | None = None

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read `RUN`, `RUN@400`, `RUN@best`, `RUN@last` or `RUN@average`. The folder need not exist."""
        path, at, selector = text.rpartition("@")
        # A folder's own name may hold an @; then the whole text is the path.
        if not at or "/" in selector or Path(text).is_dir():
            return cls(Path(text))
        if not path:
            raise UsageError(f"'{text}' names no run.", f"Write the folder first: RUN@{selector or 'best'}")
        if selector.isascii() and selector.isdigit():
            return cls(Path(path), int(selector))
        if selector not in WORDS:
            raise UsageError(
                f"'@{selector}' in '{text}' names no checkpoint: a step's number, best, last or average is expected.",
                did_you_mean(selector, WORDS),
            )
        return cls(Path(path), selector)

    def __str__(self) -> str:
        return str(self.path) if self.selector is None else f"{self.path}@{self.selector}"


@dataclass(frozen=True)
class RunFolder:
    """One run on the disk. The constructor only names it; `new`, `create` and `open` look at the disk."""

    path: Path

    @classmethod
    def new(cls, path: Path | str) -> "RunFolder":
        """Name the folder of a new run, and refuse one that is a run or holds other things; nothing is made yet."""
        run = cls(Path(path))
        run.refuse_links()
        if run.config_file.exists():
            raise RunError(
                f"{run} is already a run.", f"Resume it: regard resume {run}. Or name another folder with --run."
            )
        if run.metrics_file.exists() or any(run.checkpoints.glob("*")):
            raise RunError(
                f"{run} has the remains of a run without its {CONFIG}.",
                "Restore that file, or name another folder with --run.",
            )
        foreign = sorted(foreign_names(run.path))
        if foreign:
            raise RunError(
                f"{run} contains other files: {', '.join(foreign[:3])}{', …' if len(foreign) > 3 else ''}.",
                "A run needs a folder of its own: name another with --run.",
            )
        return run

    @classmethod
    def create(cls, path: Path | str) -> "RunFolder":
        """Make the folder of a new run. It becomes a run when its config is written."""
        run = cls.new(path)
        try:
            run.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"The folder {run} cannot be made: {error.strerror}.", "Name another folder with --run."
            ) from error
        return run

    @classmethod
    def open(cls, path: Path | str) -> "RunFolder":
        """Return the run in this folder; say what is missing and which runs are near where there is none."""
        run = cls(Path(path))
        if run.exists():
            run.refuse_links()
            return run
        if not run.path.exists():
            problem = "there is no such folder"
        elif not run.path.is_dir():
            problem = "it is a file, and a run is a folder"
        else:
            problem = f"it has no {CONFIG}"
        raise RunError(f"{run} is not a run: {problem}.", runs_nearby(run.path))

    def exists(self) -> bool:
        try:
            return self.config_file.is_file()
        except OSError:  # a folder that may not be looked into
            return False

    def refuse_links(self) -> None:
        """Refuse a run whose folders lie elsewhere, where nothing may be written or deleted."""
        for folder in (self.checkpoints, self.vocabulary, self.traces, self.engines, self.path / "tensorboard"):
            if folder.is_symlink():
                raise RunError(
                    f"{folder} is a link, and a run has its files in its own folder.",
                    "Put the folder itself in the place of the link.",
                )

    @property
    def config_file(self) -> Path:
        return self.path / CONFIG

    @property
    def task_file(self) -> Path:
        return self.path / TASK

    @property
    def baseline_file(self) -> Path:
        return self.path / BASELINE

    @property
    def vocabulary(self) -> Path:
        return self.path / "vocabulary"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def card_file(self) -> Path:
        return self.path / "README.md"

    @property
    def lock_file(self) -> Path:
        return self.path / "lock"

    @property
    def traces(self) -> Path:
        return self.path / "traces"

    @property
    def engines(self) -> Path:
        """Where the models of other engines are kept that were converted from checkpoints."""
        return self.path / "engines"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def write_task(self, task: Mapping[str, Any]) -> None:
        """Keep what the task must know again: labels, columns, statistics."""
        write_atomically(self.task_file, as_json(task, indent=2) + b"\n")

    def read_task(self) -> dict[str, Any]:
        """Return what `write_task` kept."""
        remedy = f"Copy the run again as a whole, or repeat it: regard train {self.config_file} --run ANOTHER"
        try:
            task = read_json(self.task_file, most=MOST_TASK)
        except FileNotFoundError as error:
            raise RunError(f"{self} is incomplete: it has no {TASK}.", remedy) from error
        except OSError as error:
            raise RunError(f"{self.task_file} cannot be read: {error.strerror}.", remedy) from error
        except ValueError as error:
            raise RunError(f"{self.task_file} is damaged: {error}.", remedy) from error
        if not isinstance(task, dict) or not isinstance(task.get("files", {}), dict):
            raise RunError(f"{self.task_file} is damaged: expected a table.", remedy)
        return task

    def read_config(self) -> RunConfig:
        """Read the run's settings."""
        return read(self.config_file, of_run=True)

    def __str__(self) -> str:
        return str(self.path)


def find_runs(root: Path | str) -> list[RunFolder]:
    """Return all runs under a folder, by name. Runs are not searched for inside a run or behind a link."""
    root = Path(root)
    waiting, runs = [root], []
    while waiting:
        folder = waiting.pop()
        if RunFolder(folder).exists():
            runs.append(RunFolder(folder))
        elif folder == root or not folder.is_symlink():
            waiting += subfolders(folder)[::-1]
    return runs


def foreign_names(folder: Path) -> list[str]:
    """Return the names in a folder that no run has. A run killed before its config was written leaves none."""
    items = folder.iterdir() if folder.is_dir() else ()
    return [item.name for item in items if item.name not in CONTENTS and not item.name.startswith(".")]


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, by name, without hidden ones; none where it cannot be read."""
    try:
        return sorted(item for item in folder.iterdir() if item.is_dir() and not item.name.startswith("."))
    except OSError:
        return []


def runs_nearby(path: Path) -> str:
    """Return the sentence that points from a folder that is no run to runs inside, around or beside it."""
    inside = [str(folder) for folder in subfolders(path) if RunFolder(folder).exists()]
    if inside:
        return f"There are runs in it: {', '.join(inside)}."
    if RunFolder(path.parent).exists():
        return f"Did you mean {path.parent}?"
    beside = {folder.name: str(folder) for folder in subfolders(path.parent) if RunFolder(folder).exists()}
    # Only the last name is compared: the path before it is the same for all.
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {beside[near[0]]}?"
    if beside:
        return f"Available: {', '.join(beside.values())}."
    return f"Train one with: regard train translate --train SOURCE TARGET --run {path}"
