"""Throughput while a run is trained: a smoothed loss, tokens (or images) per second, and the time left."""

import math
import time

from regard.cli.terminal import duration
from regard.training.events import Report
from regard.training.loop import Update

MEMORY = 20  # updates over which numbers are smoothed


class Throughput:
    """Fed with every update of a session."""

    def __init__(self, report: Report) -> None:
        self.first_step = self.step = report.step
        self.total_steps = report.total_steps
        self.time_limit = 60 * report.config.training.minutes
        self.before = report.seconds
        self.loss = math.nan
        self.per_second = 0.0
        self.unit = report.throughput_unit
        self._began = time.monotonic()

    def add(self, update: Update) -> None:
        """Take in one update."""
        self.step = update.step
        weight = 1 / min(MEMORY, update.step - self.first_step)
        speed = update.weight / update.seconds
        self.per_second += weight * (speed - self.per_second)
        if math.isfinite(update.loss):
            self.loss = update.loss if math.isnan(self.loss) else self.loss + weight * (update.loss - self.loss)

    @property
    def trained(self) -> float:
        """For how many seconds the run has been trained, validations included: what its limit counts."""
        return self.before + time.monotonic() - self._began

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        by_steps = self.step / self.total_steps if self.total_steps else 0.0
        by_time = self.trained / self.time_limit if self.time_limit else 0.0
        return min(1.0, max(by_steps, by_time))

    @property
    def seconds_left(self) -> float:
        """How long the run still has, validations included as they were so far."""
        elapsed = time.monotonic() - self._began
        ends = []
        if self.total_steps:
            ends.append((self.total_steps - self.step) * elapsed / max(1, self.step - self.first_step))
        if self.time_limit:
            ends.append(self.time_limit - self.trained)
        return max(0.0, min(ends, default=0.0))

    def text(self) -> str:
        """All of it in a line."""
        of = f"/{self.total_steps:,}" if self.total_steps else ""
        speed = f"{self.per_second:,.0f} {self.unit}/s"
        return f"step {self.step:,}{of}  loss {self.loss:.3f}  {speed}  {duration(self.seconds_left)} left"
