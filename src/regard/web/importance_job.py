"""The importance of heads, measured in the background while the page goes on: one measurement per run at a time.

What was measured stays in the run: one that is stopped goes on from where it was, a finished one is shown when the page is
opened again.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

from regard.errors import RegardError
from regard.inspection.importance import MeasuredBy, measure_importance, parts_of
from regard.inspection.importance_folder import KeptImportance, Measurement
from regard.runs.folder import RunFolder


class StoppedError(Exception):
    """The server ends, and with it the measurement."""


@dataclass
class ImportanceJob:
    """One measurement: how far it is, what it found, or why it failed."""

    run: Any
    folder: RunFolder
    asked: Measurement
    closed: Event
    state: str = "running"
    n_done: int = 0
    n_parts: int = 0
    grid: dict[str, Any] | None = None
    error: str = ""
    _thread: Thread | None = field(default=None, repr=False)

    def start(self) -> None:
        """Begin, in a thread that does not keep the server from ending. Taps are of a thread: no trace is disturbed."""
        self.n_parts = len(parts_of(self.run.model, "heads"))
        self._thread = Thread(target=self._measure, name="importance", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until it is done; for tests."""
        if self._thread is not None:
            self._thread.join()

    def _measure(self) -> None:
        try:
            can_keep = os.access(self.folder.path, os.W_OK)  # a run may lie where nothing can be written
            found = measure_importance(
                self.run.task,
                self.run.model,
                self.run.options({}),
                list(self.asked.files),
                metric=cast(MeasuredBy, self.asked.metric),
                parts="heads",
                n_examples=self.asked.n_examples,
                progress=self._tell,
                resume_file=self.asked.parts_file(self.folder) if can_keep else None,
            ).to_json()
            if can_keep:
                self.asked.keep(self.folder, found)
            self.grid, self.state = found, "done"
        except StoppedError:
            self.state = "none"
        except RegardError as error:
            self.error, self.state = error.problem, "failed"
        except Exception as error:  # whatever it is, the page goes on
            self.error, self.state = f"This is a defect of regard: {type(error).__name__}: {error}", "failed"

    def _tell(self, what: str, done: int) -> None:
        if self.closed.is_set():
            raise StoppedError
        self.n_done = done

    def facts(self) -> dict[str, Any]:
        """What the page shows."""
        return {
            "state": self.state,
            "done": self.n_done,
            "of": self.n_parts,
            "error": self.error or None,
            **_of(self.asked, self.grid),
        }


def kept_facts(kept: KeptImportance) -> dict[str, Any]:
    """The same of a measurement that an earlier session finished."""
    n_parts = len(kept.importance["parts"])
    return {
        "state": "done",
        "done": n_parts,
        "of": n_parts,
        "error": None,
        **_of(kept.measured, kept.importance),
    }


def _of(measured: Measurement, grid: dict[str, Any] | None) -> dict[str, Any]:
    files = [Path(file).name for file in measured.files]
    return {"metric": measured.metric, "examples": measured.n_examples, "files": files, "grid": grid}
