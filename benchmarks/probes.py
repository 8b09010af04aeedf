"""What the time machine costs: the time of a trace of all probe examples, as a share of the updates between two of them.

Trains the demo's translator and a small language model, recording far more often than a run would, to have enough
to measure. The share is that of a record among as many updates as lie between two by default. It must stay below 2 %.
"""

import shutil
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import SHAKESPEARE, find_running_text, find_text
from benchmarks.rounds import BUILD, options, report, table, tell, threads_of

from regard import runtime
from regard.cli.demo import TABLES
from regard.config import InspectionConfig, RunConfig, from_tables
from regard.inspection.probe_folder import recorded_steps, trace_files
from regard.inspection.probes import ProbeRecorder
from regard.runs.folder import RunFolder
from regard.training.events import Noted, Updated
from regard.training.run import train

FOLDER = BUILD / "probes"
MOST_SHARE = 0.02
N_PROBES = 4
STEPS_PER_ROUND = 10


def main() -> None:
    arguments = options("What recording probe examples costs.", rounds=9).parse_args()
    threads, n_rounds = threads_of(arguments), 1 if arguments.quick else arguments.rounds
    runtime.keep_freed_memory()
    found = {}
    for name, config in configs(threads=threads, rounds=n_rounds, quick=arguments.quick).items():
        tell(f"training {name}")
        found[name] = measure(config, FOLDER / name)
    every = InspectionConfig().every
    rows = [
        [
            name,
            f"{1000 * one['seconds_per_step']:.0f} ms",
            f"{1000 * one['seconds_per_record']:.0f} ms",
            f"{one['share']:.2%}",
            f"{one['bytes_per_trace'] / 1000:.0f} kB",
        ]
        for name, one in found.items()
    ]
    text = "\n".join(
        [
            f"{N_PROBES} probe examples every {every} updates; {threads} threads, medians of {n_rounds} records; "
            f"at most {MOST_SHARE:.0%} is wanted.",
            "",
            table(["", "an update", "a record", "share", "a trace"], rows),
        ]
    )
    report("probes", text, {"threads": threads, "every": every, "runs": found}, quick=arguments.quick)


def configs(*, threads: int, rounds: int, quick: bool) -> dict[str, RunConfig]:
    """The runs: as many updates as there are rounds to record, and the round that warms up."""
    every = 2 if quick else STEPS_PER_ROUND
    steps = every * (rounds + 1)
    text = find_text(Path("built-in"))  # which is the demo's, wherever Multi30k is
    common: dict[str, Any] = {
        "runtime": {"device": "cpu", "threads": threads},
        "inspection": {"probes": N_PROBES, "every": every},
    }
    training = {"steps": steps, "validate_every": 10**6, "validate_samples": 0}
    demo = {**TABLES, "training": {**TABLES["training"], **training}}
    data = {"train": list(text.train), "valid": list(text.valid)}
    language = {"task": "language", "model": {"preset": "llama-nano"}, "training": training}
    return {
        "translate (the demo)": from_tables({**demo, **common, "data": data}, origin="benchmark"),
        "language (llama-nano)": from_tables(
            {**language, **common, "data": {"train": [find_running_text(SHAKESPEARE)]}}, origin="benchmark"
        ),
    }


class TimedRecorder(ProbeRecorder):
    """A recorder that looks at the clock."""

    seconds: list[float]

    def record(self, *arguments: Any) -> list[str]:
        began = time.perf_counter()
        notes = super().record(*arguments)
        self.seconds.append(time.perf_counter() - began)
        return notes


def measure(config: RunConfig, path: Path) -> dict[str, Any]:
    """Train a run; the medians of what an update and a record took, and the mean size of a trace."""
    from regard.training import session

    shutil.rmtree(path, ignore_errors=True)
    TimedRecorder.seconds, updates = [], []
    session.ProbeRecorder, kept = TimedRecorder, session.ProbeRecorder  # type: ignore[misc]
    try:
        for event in train(config, path):
            if isinstance(event, Updated):
                updates.append(event.update.seconds)
            elif isinstance(event, Noted):
                tell(event.text)
    finally:
        session.ProbeRecorder = kept  # type: ignore[misc]
    update, record = median(updates[1:]), median(TimedRecorder.seconds[1:])
    folders = recorded_steps(RunFolder(path)).values()
    sizes = [file.stat().st_size for folder in folders for file in trace_files(folder).values()]
    return {
        "seconds_per_step": update,
        "seconds_per_record": record,
        "share": record / (InspectionConfig().every * update),
        "bytes_per_trace": sum(sizes) / len(sizes),
        "records": len(TimedRecorder.seconds),
    }


if __name__ == "__main__":
    main()
