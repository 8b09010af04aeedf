"""A run while it trains: for people (a live bar, or plain lines), for programs (JSON), for TensorBoard."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from regard.cli.options import flag
from regard.cli.scores import scores_text
from regard.cli.streams import OutputError
from regard.cli.terminal import (
    LINE_EVERY,
    Stages,
    duration,
    make_bar,
    note,
    people,
    print_facts,
    print_json,
    shell_word,
    shows,
    tell,
)
from regard.cli.throughput import Throughput
from regard.cli.training_report import report_rows
from regard.config import to_tables
from regard.errors import MissingExtraError
from regard.runs.ranking import prefers_average
from regard.runtime import ranks
from regard.tasks.baselines import advice
from regard.tasks.spec import find_spec
from regard.training.baseline import judge_run
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.next_steps import how_to_resume, next_steps

if TYPE_CHECKING:
    from rich.progress import Progress


class View(Protocol):
    """Whoever is shown the events of a run."""

    def show(self, event: Event) -> None: ...
    def close(self) -> None: ...


def make_views(run: Path, *, json: bool, tensorboard: bool, advise: bool = True) -> list[View]:
    """Return who is shown the events of a run; `advise` as for people. Of several processes the first one shows them."""
    if not shows():
        return []
    views: list[View] = [JsonView() if json else PeopleView(advise=advise)]
    return [*views, TensorBoardView(run)] if tensorboard else views


def follow(start: Callable[[Stages], Iterable[Event]], views: Sequence[View]) -> Finished:
    """Start a run, show how it is prepared, then each event to all views; return the last.

    Whoever reads may leave (`regard train --json … | head -3`), and the disk of a log may be full. Training is worth more
    than lines about it: the run goes on to its end, unseen. That a reader left is no failure; a full disk is one, then.
    """
    failure: OutputError | None = None
    preparing = Stages(unit="lines", others={"decoding": "images"}, hidden=not views)
    preparing("starting", 0)
    try:
        for event in start(preparing):
            preparing.close()
            for view in views:
                try:
                    view.show(event)
                except OutputError as error:
                    failure = error  # the only one: from now on the stream is silent
    finally:
        preparing.close()
        for view in views:
            view.close()
    assert isinstance(event, Finished)
    if failure is not None and not failure.reader_left:
        raise failure
    return event


class PeopleView:
    """A report, then a bar with validations above it; lines instead of the bar where there is no terminal.

    `advise`: whether to say at the end what can be done next; else that is the caller's part.
    """

    def __init__(self, *, advise: bool = True) -> None:
        self.advise = advise
        self.run = Path()
        self.begun_at = 0
        self.n_validations = 0
        self.best_samples: tuple[tuple[str, str, str], ...] = ()
        self._bar: Progress | None = None
        self._said = time.monotonic()

    def show(self, event: Event) -> None:
        match event:
            case Report():
                self._report(event)
            case Updated():
                self._updated(event)
            case Validated():
                self._validated(event)
            case Noted():
                note(event.text)
            case Finished():
                self._finished(event)
            case Saved():
                pass  # happens often, and is what everybody expects

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _report(self, report: Report) -> None:
        self.run, self.begun_at, self.throughput = report.run, report.step, Throughput(report)
        self.config, self.task, self.example = report.config, find_spec(report.config.task), report.example
        print_facts(report_rows(report), people())
        tell()

    def _updated(self, event: Updated) -> None:
        update = event.update
        self.throughput.add(update)
        if update.skipped:
            note(f"step {update.step:,}: NaN or infinite loss; the update is skipped")
        if people().is_terminal:
            if self._bar is None:
                self._bar = _training_bar()
            self._bar.update(self._bar.task_ids[0], completed=self.throughput.share, state=self.throughput.text())
        elif time.monotonic() - self._said >= LINE_EVERY or update.step == self.begun_at + 1:
            self._said = time.monotonic()
            tell(self.throughput.text())

    def _validated(self, event: Validated) -> None:
        if event.best:
            self.best_samples = event.validation.samples
        scores = scores_text({"loss": event.validation.loss, **event.validation.scores})
        if event.averaged:
            tell(f"average of {len(event.averaged)} checkpoints: validation {scores}", style="bold")
        else:
            best = "  ★ best so far" if event.best else ""
            tell(f"step {event.step:,}: validation {scores}{best}", style="bold" if event.best else "")
        samples = event.validation.samples
        if samples:
            show_sample(samples[self.n_validations % len(samples)], self.task.sample_labels)
        self.n_validations += 1

    def _finished(self, event: Finished) -> None:
        self.close()
        run = shell_word(self.run)
        if event.signal:
            tell(f"Stopped at step {event.step:,}; the run is saved.{' Resume it with:' if self.advise else ''}")
            if self.advise:
                tell(f"  {how_to_resume(str(self.run), self.config, processes=ranks().local_size)}", style="bold")
            return
        tell()
        if event.step == self.begun_at:
            longer = f"regard resume {run} {flag(event.limit)} N"
            tell(f"The run was already finished: {event.reason}. To train longer: {longer}")
        else:
            tell(f"Finished at step {event.step:,} after {duration(event.seconds)}: {event.reason}.")
        is_meant = bool(event.average) and prefers_average(event.average, event.best, self.config.training.best_by)
        verdict = judge_run(event.best, event.average, event.baselines, self.config)
        beside = f"; {verdict.claim}" if verdict is not None else ""
        if event.best:
            best = f"Best validation at step {event.best['step']:,}: {scores_text(event.best, intervals=True)}"
            tell(f"{best}{'' if is_meant else beside}", style="bold")
        if event.average:
            meant = f", now used as {run}" if is_meant else ""
            average = f"Average of checkpoints{meant}: {scores_text(event.average, intervals=True)}"
            tell(f"{average}{beside if is_meant else ''}", style="bold")
        for line in advice(verdict, self.config):
            tell(line)
        if not self.advise:
            return
        for sample in self.best_samples:
            show_sample(sample, self.task.sample_labels)
        tell()
        tell("Next:")
        for line in next_steps(str(self.run), self.config, example=self.example):
            tell(f"  {line}", style="bold")


def _training_bar() -> "Progress":
    from rich.progress import BarColumn, TextColumn

    bar = make_bar((BarColumn(bar_width=24), TextColumn("{task.fields[state]}", markup=False)))
    bar.add_task("training", total=1.0, state="")
    bar.start()
    return bar


SAMPLE_LETTERS = 300  # a model that has learned little may never come to an end


def show_sample(sample: tuple[str, str, str], labels: tuple[str, str, str]) -> None:
    """Show an input, what was expected, and what came, which stands out."""
    for number, (label, text) in enumerate(zip(labels, sample, strict=True)):
        on_one_line = text.replace("\n", " ⏎ ")
        shown = on_one_line if len(on_one_line) <= SAMPLE_LETTERS else f"{on_one_line[:SAMPLE_LETTERS]}…"
        tell(f"    {label:<9} {shown}", style="" if number == 2 else "dim")


class JsonView:
    """One JSON object per event on standard output; `event` says which it is."""

    def show(self, event: Event) -> None:
        print_json({"event": type(event).__name__.lower(), **event_fields(event)})

    def close(self) -> None:
        pass


def event_fields(event: Event) -> dict[str, Any]:
    """Return an event as data that JSON takes."""
    match event:
        case Report():
            machine = {**vars(event.machine), "device": str(event.machine.device)}
            return {**vars(event), "run": str(event.run), "config": to_tables(event.config), "machine": machine}
        case Updated():
            return {**dataclasses.asdict(event.update), "total_steps": event.total_steps}
        case Validated():
            validation = event.validation
            scores = {"loss": validation.loss, **validation.scores}
            outcome = {"best": event.best, "averaged": event.averaged}
            return {
                "step": event.step,
                "scores": scores,
                "intervals": validation.intervals,
                "samples": validation.samples,
                **outcome,
            }
        case Saved():
            return {"step": event.step, "path": str(event.path)}
        case Noted():
            return {"text": event.text}
        case Finished():
            baselines = {one.name: dict(one.scores) for one in event.baselines}
            return {**vars(event), "best": dict(event.best), "average": dict(event.average), "baselines": baselines}


class TensorBoardView:
    """Scalars in RUN/tensorboard: training by step, each score of a validation, and those of an average apart."""

    def __init__(self, run: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboard", "--tensorboard", "track") from None
        self._make_writer = SummaryWriter
        self._folder = run / "tensorboard"
        self._writer: Any = None

    def show(self, event: Event) -> None:
        match event:
            case Report():
                # What was written after the step from which the run goes on will be trained again.
                self._writer = self._make_writer(str(self._folder), purge_step=event.step + 1)
            case Updated():
                update = event.update
                for name in ("loss", "learning_rate", "gradient_norm"):
                    self._add(f"train/{name}", getattr(update, name), update.step)
                self._add("train/per_second", update.weight / update.seconds, update.step)
            case Validated():
                kind = "average" if event.averaged else "valid"
                for name, value in {"loss": event.validation.loss, **event.validation.scores}.items():
                    self._add(f"{kind}/{name}", value, event.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _add(self, name: str, value: float, step: int) -> None:
        if math.isfinite(value):
            self._writer.add_scalar(name, value, step)
