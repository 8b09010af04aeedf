"""The timeline of probe examples: what a model wrote of them at each recorded step of its training, beside the loss.

Reads a run's folder while it is trained, afterwards, or what a crash left of it. What is damaged is skipped, and said.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from regard.errors import DataError, RegardError, RunError, UsageError
from regard.inspection.lens import in_blocks
from regard.inspection.probe_folder import read_examples, recorded_steps, trace_file, trace_files
from regard.inspection.trace import Trace
from regard.inspection.trace_file import load_trace
from regard.runs import metrics
from regard.runs.folder import RunFolder
from regard.tasks.results import one_line

_STEP = re.compile(rb'"step": (\d+)')
NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class ProbeTimeline:
    """What was recorded of a run's probe examples.

    titles, expected:  of each example, what people know it by, and what would be right
    steps:             that were recorded, the first one first
    outputs:           by step, what was written of each example; None where that is damaged or was not recorded
    losses:            by step, that of the update in training; none at step 0
    valid_losses:      by step, that of a validation, where there was one
    notes:             what was skipped
    """

    run: RunFolder
    titles: tuple[str, ...]
    expected: tuple[str, ...]
    steps: tuple[int, ...]
    outputs: Mapping[int, tuple[str | None, ...]]
    losses: Mapping[int, float]
    valid_losses: Mapping[int, float]
    notes: tuple[str, ...] = ()

    def trace(self, step: int, probe: int = 0) -> Trace:
        """The trace of an example at a recorded step, as it lies on the disk now."""
        folders = recorded_steps(self.run)
        if step not in folders:
            recorded = ", ".join(map(str, folders)) or "none"
            raise UsageError(f"Step {step:,} was not recorded in {self.run}.", f"Recorded steps: {recorded}.")
        if not 0 <= probe < len(self.titles):
            raise UsageError(
                f"There is no probe example {probe} in {self.run}.",
                f"It has {len(self.titles)}, which count from 0.",
            )
        return load_trace(trace_file(folders[step], probe))

    def traces(self, probe: int = 0) -> dict[int, Trace]:
        """The traces of an example by step, as far as they can be read."""
        found = {}
        for step in self.steps:
            if self.outputs[step][probe : probe + 1] != (None,):
                with suppress(DataError):  # thinned out, or damaged, since
                    found[step] = self.trace(step, probe)
        return found

    def lens_lines(self, probe: int = 0, position: int | None = None, *, width: int = 100) -> list[str]:
        """The logit lens at a position (where the first token is written) by step: what each sublayer would write."""
        columns: list[tuple[str, ...]] = []
        names: tuple[str, ...] = ("step", "loss")
        for step, trace in self.traces(probe).items():
            lens, loss = trace.lens(top=1), self.losses.get(step)
            place = min(trace.reading.n_given, len(lens.reads) - 1) if position is None else position
            if place >= len(lens.reads):
                continue  # not so much was written at this step
            names = ("step", "loss", *lens.sublayers, "output")
            cells = (f"{step:,}", NOTHING if loss is None else f"{loss:.3f}", *lens.cells(place))
            columns.append((*cells, one_line(lens.writes[place]).strip()))
        if not columns and position is not None:
            raise UsageError(f"Nothing was recorded at position {position} of probe example {probe}.")
        return in_blocks(names, columns, width)

    def lines(self, probes: Sequence[int] | None = None) -> list[str]:
        """For each example, or some of them, what was written at each step beside the step's loss in training."""
        lines = []
        for probe in range(len(self.titles)) if probes is None else probes:
            title, expected = self.titles[probe], self.expected[probe]
            rows = [("step", "loss", "written")]
            for step in self.steps:
                loss, output = self.losses.get(step), self.outputs[step][probe]
                shown = NOTHING if output is None else written(output, title)
                rows.append((f"{step:,}", NOTHING if loss is None else f"{loss:.3f}", shown))
            left, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
            lines += ["", f"probe {probe}: {one_line(title)}"]
            lines += [f"expected: {one_line(expected)}"] if expected else []
            lines += [f"  {step:>{left}}  {loss:>{middle}}  {text}".rstrip() for step, loss, text in rows]
        return [*lines[1:], *([""] if lines and self.notes else []), *(f"note: {note}" for note in self.notes)]

    def to_json(self) -> dict[str, Any]:
        """All of it, as data that `json.dumps` takes."""
        return {
            "run": str(self.run),
            "probes": [
                {"title": title, "expected": expected}
                for title, expected in zip(self.titles, self.expected, strict=True)
            ],
            "steps": [
                {
                    "step": step,
                    "loss": self.losses.get(step),
                    "valid_loss": self.valid_losses.get(step),
                    "outputs": list(self.outputs[step]),
                }
                for step in self.steps
            ],
            "notes": list(self.notes),
        }


def written(output: str, title: str) -> str:
    """What was written, without the input, where the output repeats that: a prompt, the name of an image."""
    return one_line(output).removeprefix(one_line(title)).strip()


def read_probes(run: RunFolder) -> ProbeTimeline:
    """Read what was recorded of a run's probe examples; RunError where nothing was."""
    folders, notes = recorded_steps(run), list[str]()
    try:
        examples = read_examples(run)
    except ValueError as error:
        examples = None
        notes.append(f"probes.json is damaged, and was skipped: {error}")
    if examples is None and not folders:
        raise RunError(
            f"{run} has no traces of probe examples: none were recorded while it was trained.",
            "Train with some: regard train … --set inspection.probes=4",
        )
    titles = dict(enumerate(one.title for one in examples or ()))
    outputs: dict[int, dict[int, str]] = {step: {} for step in folders}
    for step, folder in folders.items():
        for probe, file in trace_files(folder).items():
            try:
                trace = load_trace(file)
            except (RegardError, OSError, ValueError) as error:
                if not folder.exists():  # the trainer has thinned them out meanwhile
                    del outputs[step]
                    break
                notes.append(f"{file.relative_to(run.traces)} was skipped: {str(error).splitlines()[0]}")
                continue
            outputs[step][probe] = trace.output
            titles.setdefault(probe, trace.title)
    probes = range(max(titles, default=-1) + 1)
    losses, valid_losses, skipped = _losses(run, outputs)
    return ProbeTimeline(
        run=run,
        titles=tuple(titles.get(probe, NOTHING) for probe in probes),
        expected=tuple(examples[probe].expected if examples else "" for probe in probes),
        steps=tuple(outputs),
        outputs={step: tuple(own.get(probe) for probe in probes) for step, own in outputs.items()},
        losses=losses,
        valid_losses=valid_losses,
        notes=(*notes, *skipped),
    )


def _losses(run: RunFolder, steps: Collection[int]) -> tuple[dict[int, float], dict[int, float], list[str]]:
    """The losses of updates and of validations at some steps, and what of metrics.jsonl could not be read."""
    found: dict[str, dict[int, float]] = {"train": {}, "valid": {}}
    try:
        for number, line in enumerate(metrics.whole_lines(run.metrics_file), start=1):
            # Of a long run most lines are of other steps: they need not be read as JSON.
            step = _STEP.search(line)
            if step is None or int(step[1]) not in steps:
                continue
            record = metrics.parse(line, run.metrics_file, number)
            if record["kind"] in found and record.get("loss") is not None:
                found[record["kind"]][record["step"]] = record["loss"]
    except RunError as error:
        return found["train"], found["valid"], [f"metrics.jsonl was read in part: {str(error).splitlines()[0]}"]
    return found["train"], found["valid"], []
