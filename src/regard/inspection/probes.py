"""The time machine: probe examples that are traced every so many steps while a model learns, into RUN/traces/.

The trainer writes whole files under their final names (`probe_folder.py`); whoever looks, another process, reads what is
there. So it works on live, finished, crashed and copied runs. Recording draws nothing at random and leaves the model as it
was: the weights of a run are the same with and without. Kept of each pass is little (`kept_arrays`): tens of kilobytes for a
small model, and never much more than a megabyte.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn
from torch.random import fork_rng

from regard.config import InspectionConfig
from regard.errors import RegardError, UsageError
from regard.inspection.lens_arrays import TOP, lens_arrays, norm_arrays
from regard.inspection.logit_rows import top_logits
from regard.inspection.named_array import NamedArray
from regard.inspection.probe_folder import (
    drop_after,
    read_examples,
    recorded_steps,
    spacing,
    thin_out,
    write_examples,
    write_step,
)
from regard.inspection.trace import MOST_BYTES, Subject, Trace, record_pass
from regard.runs.folder import RunFolder
from regard.tasks.options import Options
from regard.tasks.probe_example import ProbeExample
from regard.tasks.task import Examples, UsableTask

MOST_WRITTEN = 32  # tokens of an output: a model that has learned nothing yet would go on to the limit
MOST_NUMBERS = 500_000  # of one trace's attention weights, 1 MB in a file; of more, the mean over heads is kept
WEIGHTS = "*.weights"
# The taps of the residual stream, and of what a convolutional network has in its place.
STREAM = ("*_residual.output", "*embedding.sum", "*embedding.output")
FEATURE_MAPS = ("stem.output", "stage.*.block.*.output", "layers.*.features")


@dataclass
class ProbeRecorder:
    """Traces the probe examples of a run; for the holder of its lock.

    valid:     the validation examples of which they are chosen, where the run has none yet
    """

    run: RunFolder
    task: UsableTask[Any]
    valid: Examples
    settings: InspectionConfig
    _examples: list[ProbeExample] | None = None
    _said: set[str] = field(default_factory=set)

    def begin(self, step: int) -> None:
        """Go on from a step: delete what was recorded after it, and what a killed process left."""
        drop_after(self.run, step=step)

    def is_due(self, step: int, *, ends: bool = False) -> bool:
        """Whether the examples are to be traced after update number `step`, with which the run `ends`, or does not."""
        if not self.settings.probes or step in recorded_steps(self.run):
            return False
        return ends or step % spacing(step, self.settings.every) == 0

    def record(self, model: nn.Module, step: int) -> list[str]:
        """Trace the examples with the model as it is. Never raises: returns what failed, each thing once."""
        notes: list[str] = []
        try:
            if self._examples is None:
                self._examples, notes = self._chosen()
            with left_as_it_was(model):
                traces, failed = self._traces(model, self._examples)
            for probe, error in failed.items():
                notes += self._once(f"probe {probe}", f"probe example {probe} cannot be traced: {_reason(error)}")
            if traces:
                write_step(self.run, step, traces)
                thin_out(self.run)
        except Exception as error:  # whatever it is, it is no reason to end the training
            notes += self._once("step", f"the probe examples were not recorded at step {step:,}: {_reason(error)}")
        return notes

    def _chosen(self) -> tuple[list[ProbeExample], list[str]]:
        """The examples of the run, once they are chosen for good; and a note where they are not as the settings say."""
        notes = []
        try:
            kept = read_examples(self.run)
        except ValueError as error:
            kept, notes = (
                None,
                [f"{self.run.traces}/probes.json is damaged, and the examples were chosen anew: {error}"],
            )
        if kept is None:
            kept = self.task.probes(self.valid, self.settings.probes)
            write_examples(self.run, kept)
            if len(kept) < self.settings.probes:
                notes.append(f"the validation split has {len(kept)} probe examples, not {self.settings.probes}")
        elif len(kept) != self.settings.probes:
            notes.append(f"the run keeps its {len(kept)} probe examples: inspection.probes is for new runs")
        return kept, notes

    def _traces(
        self, model: nn.Module, examples: Sequence[ProbeExample]
    ) -> tuple[dict[int, Trace], dict[int, Exception]]:
        """The traces of the examples, and why there is none of some, by their numbers."""
        traces: dict[int, Trace] = {}
        failed: dict[int, Exception] = {}
        try:
            results = self._predict(model, examples)  # together: most of the time is Python's, and that is shared
        except Exception:
            results = [None] * len(examples)
        for probe, (example, result) in enumerate(zip(examples, results, strict=True)):
            try:
                [own] = self._predict(model, [example]) if result is None else [result]
                traces[probe] = self._trace(model, example, own)
            except Exception as error:
                failed[probe] = error
        return traces, failed

    def _predict(self, model: nn.Module, examples: Sequence[ProbeExample]) -> list[Any]:
        """What the model says of examples; an image goes by its place in the data."""
        found = self.task.predict(model, [one.input for one in examples], self._options(examples))
        if not self.task.spec.reads_images:
            return list(found)
        return [replace(result, image=one.title) for one, result in zip(examples, found, strict=True)]  # type: ignore[type-var]

    def _options(self, examples: Sequence[ProbeExample]) -> Options:
        """Greedy search with a short limit; the second texts of pairs."""
        given: dict[str, Any] = {}
        if self.task.spec.generates:
            own = self.task.config.decoding
            limit = min(own.max_length or MOST_WRITTEN, MOST_WRITTEN)
            given["decoding"] = replace(own, beam=1, n_best=1, sample=False, max_length=limit, min_length=0)
        if any(one.text_b for one in examples):
            given["texts_b"] = tuple(one.text_b for one in examples)
        return self.task.options(**given)

    def _trace(self, model: nn.Module, example: ProbeExample, result: Any) -> Trace:
        subject = Subject(task=self.task, model=model, input=example.input, options=self._options([example]))
        reading = subject.reading(result)
        arrays, _ = record_pass(subject, reading, (WEIGHTS, "logits", *STREAM, *FEATURE_MAPS), most_bytes=MOST_BYTES)
        title, output = example.title, "\n".join(result.lines())
        whole = Trace(
            title=title, output=output, reading=reading, arrays=arrays, left_out={}, formulas={}, subject=subject
        )
        left_out = {"logits": whole["logits"].shape} if "logits" in whole else {}
        return Trace(
            title=title, output=output, reading=reading, arrays=kept_arrays(whole), left_out=left_out, formulas={}
        )

    def _once(self, what: str, note: str) -> list[str]:
        """A note, if nothing was said of it before."""
        if what in self._said:
            return []
        self._said.add(what)
        return [note]


def _reason(error: Exception) -> str:
    """An error in a line."""
    text = str(error).split("\n")[0] if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
    return text.rstrip(".")


@contextmanager
def left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluate the model inside the block: each module is in its own mode again afterwards, and so is torch's generator."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        with fork_rng(devices=[]):
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training


def kept_arrays(trace: Trace) -> dict[str, NamedArray]:
    """What is kept of a pass: the attention weights, and in a few numbers the output, the residual stream and the lens.

    PATH.weights                    of every attention; of very many, the mean over its heads
    logits.top_ids, .top_values, …  the TOP likeliest outputs at each position, as trace files have it
    TAP.norm, TAP.lens, …           the length of the residual stream's vectors, and what the lens says (`lens_arrays.py`)
    """
    found = {name: trace[name] for name in trace.names(WEIGHTS)}
    if sum(array.values.size for array in found.values()) > MOST_NUMBERS:
        found = {name: _mean_over_heads(array) for name, array in found.items()}
    with suppress(UsageError):  # a recurrent network has no residual stream, and a convolutional one no lens
        found |= norm_arrays(trace)
        found |= lens_arrays(trace, TOP)
    return found | top_logits(trace, TOP) if "logits" in trace else found


def _mean_over_heads(weights: NamedArray) -> NamedArray:
    """All heads of an attention as one; its rows still sum to 1."""
    return NamedArray(weights.values.mean(axis=0, keepdims=True), weights.axes, weights.labels)
