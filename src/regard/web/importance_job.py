"""The importance of heads, measured in the background while the page goes on: one measurement per run at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from regard.errors import RegardError
from regard.inspection.importance import MeasuredBy, measure_importance, parts_of


class StoppedError(Exception):
    """The server ends, and with it the measurement."""


@dataclass
class ImportanceJob:
    """One measurement: how far it is, what it found, or why it failed."""

    run: Any
    files: Sequence[str]
    n_examples: int
    metric: MeasuredBy
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
            found = measure_importance(
                self.run.task,
                self.run.model,
                self.run.options({}),
                list(self.files),
                metric=self.metric,
                parts="heads",
                n_examples=self.n_examples,
                progress=self._tell,
            )
            self.grid, self.state = found.to_json(), "done"
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
            "metric": self.metric,
            "examples": self.n_examples,
            "grid": self.grid,
            "error": self.error or None,
        }
