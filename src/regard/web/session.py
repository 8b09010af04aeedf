"""The session of a page: the runs it may open, the traces it has asked for, and one thread in which models run.

A browser names runs and traces by what this session called them, never by a path: nothing else of the disk can be reached.
Runs go by the names that they were opened with; RUN@STEP is another checkpoint of one of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Event, Lock
from typing import Any, TypeVar

from regard.config import RunConfig
from regard.errors import RegardError, UsageError, did_you_mean
from regard.inspection.importance import MeasuredBy
from regard.inspection.importance_folder import Measurement, kept_importances
from regard.inspection.probe_folder import recorded_steps
from regard.inspection.trace import Trace
from regard.runs.folder import Reference, RunFolder
from regard.runs.names import find
from regard.web.importance_job import ImportanceJob, kept_facts
from regard.web.run_inputs import InputExample, accepted_input, examples_of, probe_input, validation_files
from regard.web.trace_bundle import Bundle, trace_bundle
from regard.web.trace_request import TraceRequest, asked_trace

MOST_TRACES = 12
MOST_TRACE_BYTES = 2**30  # of all traces that are kept
MOST_LOADED = 4  # checkpoints that are in memory beside those that were opened
Found = TypeVar("Found")


class UnknownError(UsageError):
    """What a page asked for under a name that the session does not know."""


class BusyError(UsageError):
    """What is asked for is being done already."""


@dataclass(frozen=True, kw_only=True)
class KeptTrace:
    """A trace that the page may ask about, and what it is of."""

    id: str
    run: str
    trace: Trace
    step: int | None = None
    ablated: tuple[str, ...] = ()
    forced: tuple[int, ...] = ()

    @property
    def n_bytes(self) -> int:
        return sum(self.trace[name].values.nbytes for name in self.trace.kept)


class OpenedRun:
    """A run that the page may look into: its folder, and its model, or why there is none yet."""

    def __init__(self, name: str, *, load: Callable[[str], Any], given: str = "") -> None:
        self.name = name
        self.given = given  # an input that was named when the session was opened
        self.reference = Reference.parse(name)
        self.folder = RunFolder.open(self.reference.path)
        self._load = load
        self._run: Any = None
        self._examples: list[InputExample] | None = None

    @cached_property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.folder.read_config()

    def run(self) -> Any:
        """The loaded run; raises what is wrong with it, and tries anew the next time."""
        if self._run is None:
            self._run = self._load(self.name)
        return self._run

    @property
    def has_probes(self) -> bool:
        """Whether probe examples were recorded while it trained."""
        return bool(recorded_steps(self.folder))

    def examples(self) -> list[InputExample]:
        """Inputs to begin with: the probe examples, else some of the validation data."""
        if self._examples is None:
            self._examples = examples_of(self.folder, self.run(), given=self.given)
        return self._examples

    def facts(self) -> dict[str, Any]:
        """What the page knows of the run."""
        facts: dict[str, Any] = {
            "name": self.name,
            "task": self.config.task,
            "model": self.config.model.preset,
            "steps": list(find(self.folder)),
            "probes": self.has_probes,
            "problem": None,
        }
        try:
            run = self.run()
        except RegardError as error:
            return facts | {"problem": {"error": error.problem, "advice": error.remedy}}
        examples = self.examples()
        return facts | {
            "model": run.config.model.preset or type(run.model).__name__,
            "parameters": run.n_parameters,
            "checkpoint": run.checkpoint.path.name,
            "step": run.checkpoint.step,
            "verb": run.spec.verb,
            "accepts": accepted_input(run),
            "blank": run.spec.blank,
            "generates": run.spec.generates,
            "example": next((one.text for one in examples if one.text), ""),
            "examples": [one.to_json() for one in examples],
            "notes": list(run.notes),
        }


class Session:
    """Runs that were opened, and what was asked of them."""

    def __init__(self, names: Sequence[str], *, input: str = "", data: Sequence[str] = (), threads: int = 0) -> None:
        self.input = input
        self.data = tuple(data)
        self.closed = Event()
        self._threads = threads
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._opened = {name: OpenedRun(name, load=self._load, given=input) for name in dict.fromkeys(names)}
        self._others: OrderedDict[str, OpenedRun] = OrderedDict()
        self._traces: OrderedDict[str, KeptTrace] = OrderedDict()
        self._n_traces = 0
        self._jobs: dict[str, ImportanceJob] = {}
        self._lock, self._aside = Lock(), Lock()

    def _load(self, name: str) -> Any:
        from regard.api import load

        return load(name, threads=self._threads, engine="torch")

    def work(self, do: Callable[[], Found]) -> Found:
        """Do something with a model, in the one thread in which models run."""
        return self._worker.submit(do).result()

    def work_aside(self, do: Callable[[], Found]) -> Found:
        """Do something long with a model that need not be waited for by what else is asked, one at a time. Taps are of a
        thread: no trace is disturbed."""
        with self._aside:
            return do()

    def close(self) -> None:
        """Let threads and streams end."""
        self.closed.set()
        self._worker.shutdown(wait=False, cancel_futures=True)

    # --- runs ---------------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The runs that were opened."""
        return list(self._opened)

    def opened(self, name: str) -> OpenedRun:
        """A run by its name, or another checkpoint of it."""
        with self._lock:
            if name in self._opened:
                return self._opened[name]
            if name in self._others:
                self._others.move_to_end(name)
                return self._others[name]
            folders = {own.reference.path for own in self._opened.values()}
            base, at, _ = name.rpartition("@")
            if not at or not any(base == str(folder) for folder in folders):
                raise UnknownError(f"The run '{name[:200]}' is not open here.", did_you_mean(name[:200], self._opened))
            other = OpenedRun(name, load=self._load)
            self._others[name] = other
            while len(self._others) > MOST_LOADED:
                self._others.popitem(last=False)
            return other

    def load(self) -> list[str]:
        """Load the runs; return what there is to tell. One without a model is refused, unless it has probes to show and no
        checkpoint of it was named."""
        notes = []
        for name, opened in self._opened.items():
            try:
                notes += self.work(opened.run).notes
            except RegardError as error:
                if not opened.has_probes or opened.reference.selector is not None:
                    raise
                notes.append(f"{name} is shown without its model: {error.problem}")
        return notes

    def facts(self) -> dict[str, Any]:
        """What the page begins with."""
        import regard

        runs = self.work(lambda: [own.facts() for own in self._opened.values()])
        return {"version": regard.__version__, "live": True, "input": self.input, "runs": runs}

    def input_is_example(self, name: str) -> bool:
        """Whether the input of the session is no text, and stands before the examples of a run."""
        return bool(self.input) and accepted_input(self.work(self.opened(name).run)) == "image"

    # --- traces -------------------------------------------------------------------------------------------------------

    def trace(self, request: TraceRequest) -> KeptTrace:
        """Trace an input, and keep the trace."""
        opened = self.opened(request.run)

        def record() -> tuple[Trace, int]:
            run = opened.run()
            return asked_trace(run, request, opened.examples), run.checkpoint.step

        trace, step = self.work(record)
        return self.keep(trace, run=request.run, step=step, ablated=tuple(request.ablate), forced=tuple(request.force))

    def probe(self, run: str, step: int, probe: int) -> KeptTrace:
        """The trace of a probe example at a recorded step, from its file."""
        trace = self.work(lambda: probe_input(self.opened(run).folder, step, probe))
        return self.keep(trace, run=run, step=step)

    def keep(
        self, trace: Trace, *, run: str, step: int, ablated: tuple[str, ...] = (), forced: tuple[int, ...] = ()
    ) -> KeptTrace:
        """Give a trace a name; the oldest ones go where there are too many, or they are too large together."""
        with self._lock:
            self._n_traces += 1
            kept = KeptTrace(id=f"t{self._n_traces}", run=run, trace=trace, step=step, ablated=ablated, forced=forced)
            self._traces[kept.id] = kept
            while len(self._traces) > MOST_TRACES or (
                len(self._traces) > 2 and sum(one.n_bytes for one in self._traces.values()) > MOST_TRACE_BYTES
            ):
                self._traces.popitem(last=False)
            return kept

    def bundle(self, kept: KeptTrace) -> Bundle:
        """A kept trace as the page has it."""
        facts, arrays = self.work(lambda: trace_bundle(kept.trace))
        own = self.own_facts(kept.run, kept.step, ablated=kept.ablated, forced=kept.forced)
        return {**facts, **own, "id": kept.id}, arrays

    def own_facts(
        self, run: str, step: int | None, *, ablated: Sequence[str] = (), forced: Sequence[int] = ()
    ) -> dict[str, Any]:
        """What the page knows of a trace beside what is in it."""
        config = self.opened(run).config
        facts = {"name": run, "task": config.task, "model": config.model.preset, "step": step}
        return {"run": facts, "ablated": list(ablated), "forced": list(forced)}

    def kept(self, id: str) -> KeptTrace:
        """A trace by its name."""
        with self._lock:
            if id not in self._traces:
                raise UnknownError(
                    f"The trace '{id[:20]}' is no longer here: only the last {MOST_TRACES} are kept.",
                    "Send the input again.",
                )
            self._traces.move_to_end(id)
            return self._traces[id]

    # --- importance ---------------------------------------------------------------------------------------------------

    def measure(self, name: str, *, n_examples: int, metric: MeasuredBy) -> ImportanceJob:
        """Begin to measure the importance of a run's heads, on the data of the session, else the run's validation data."""
        opened = self.opened(name)
        run, folder = self.work(opened.run), opened.folder
        files = self.data or validation_files(run)
        if not files:
            raise UsageError(
                f"The validation data of {name} is not in files of its own, or no longer there.",
                "Name a test set when the page is started: --data FILE…",
            )
        with self._lock:
            known = self._jobs.get(name)
            if known is not None and known.state == "running":
                raise BusyError(f"The heads of {name} are being measured.", "Wait until that is done.")
            asked = Measurement(
                checkpoint=run.checkpoint.path.name,
                metric=metric,
                parts="heads",
                n_examples=n_examples,
                files=tuple(files),
            )
            job = ImportanceJob(run=run, folder=folder, asked=asked, closed=self.closed)
            job.start()
            self._jobs[name] = job
        return job

    def measurement(self, name: str) -> ImportanceJob | None:
        """The last measurement of a run in this session, if there is one."""
        self.opened(name)
        return self._jobs.get(name)

    def importance(self, name: str) -> dict[str, Any]:
        """What is known of the importance of a run's heads: measured in this session, else the last that was kept."""
        job = self.measurement(name)
        if job is not None:
            return job.facts()
        opened = self.opened(name)
        for kept in kept_importances(opened.folder, self.work(opened.run).checkpoint.path.name):
            if kept.measured.parts == "heads":
                return kept_facts(kept)
        return {"state": "none"}
