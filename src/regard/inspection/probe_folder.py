"""The folder RUN/traces on the disk: the probe examples of a run, and a folder of traces for each recorded step.

    traces/probes.json    traces/step-00000400/probe-0.trace

A step's folder is written under a temporary name and renamed: it is whole or not there, whenever the trainer is killed. How
many steps there are is bounded: of too many, every second one goes, so that the distance between them grows with the run.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from regard.inspection.trace import Trace
from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, delete_tree, disk_errors, remove_leftovers, temporary_name, write_atomically
from regard.runs.folder import RunFolder
from regard.runs.json_files import read_json
from regard.tasks.probe_example import ProbeExample

MOST_STEPS = 64  # that are kept
MOST_EXAMPLES = 64 * MEGABYTE  # of probes.json, with the pixels of images
_STEP, _TRACE = re.compile(r"step-([0-9]{8,})"), re.compile(r"probe-([0-9]{1,4})\.trace")


def spacing(step: int, every: int) -> int:
    """How many updates lie between two records at this step, so that no more than MOST_STEPS fill the run so far."""
    n_intervals = step // every
    while n_intervals >= MOST_STEPS:
        n_intervals, every = n_intervals // 2, every * 2
    return every


def recorded_steps(run: RunFolder) -> dict[int, Path]:
    """The steps that were recorded, the first one first, and the folder of each; no link is followed."""
    if run.traces.is_symlink():
        return {}
    found = {
        int(match[1]): path
        for path in run.traces.glob("step-*")
        if (match := _STEP.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()
    }
    return dict(sorted(found.items()))


def trace_file(folder: Path, probe: int) -> Path:
    """Where the trace of a probe example lies in a step's folder."""
    return folder / f"probe-{probe}.trace"


def trace_files(folder: Path) -> dict[int, Path]:
    """The traces in a step's folder, by the numbers of their probe examples."""
    found = ((_TRACE.fullmatch(path.name), path) for path in folder.glob("probe-*.trace"))
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def write_step(run: RunFolder, step: int, traces: Mapping[int, Trace]) -> None:
    """Write the traces of a step, by the numbers of their probe examples; a TrainingError where that cannot be done."""
    folder = run.traces / f"step-{step:08d}"
    temporary = temporary_name(folder)
    with disk_errors(run.path, needed=0):
        try:
            delete_tree(temporary)  # what a killed process of the same number left
            temporary.mkdir()
            for probe, trace in traces.items():
                trace.save(trace_file(temporary, probe))
            _delete(folder)
            temporary.rename(folder)
        except BaseException:
            delete_tree(temporary)
            raise


def thin_out(run: RunFolder) -> None:
    """Where too many steps were recorded, keep the first, the last and every second one."""
    steps = recorded_steps(run)
    while len(steps) > MOST_STEPS:
        kept = {*list(steps)[::2], max(steps)}
        for step in [step for step in steps if step not in kept]:
            _delete(steps.pop(step))


def drop_after(run: RunFolder, *, step: int) -> None:
    """Delete what was recorded after a step, from which a run goes on, and what a killed process left half-written."""
    remove_leftovers(run.traces)
    for recorded, folder in recorded_steps(run).items():
        if recorded > step:
            _delete(folder)


def _delete(folder: Path) -> None:
    """Delete a step's folder, if it is there. Its name goes first, so that a kill leaves no half of it under that name."""
    doomed = temporary_name(folder, purpose="gone")
    with suppress(FileNotFoundError):
        folder.rename(doomed)
    delete_tree(doomed)


def write_examples(run: RunFolder, examples: Sequence[ProbeExample]) -> None:
    """Keep the probe examples of a run, for good."""
    with disk_errors(run.path, needed=0):
        run.traces.mkdir(exist_ok=True)
    write_atomically(_examples_file(run), as_json({"probes": [one.to_json() for one in examples]}, indent=1) + b"\n")


def read_examples(run: RunFolder) -> list[ProbeExample] | None:
    """The probe examples of a run; None where it has none yet, ValueError where the file cannot be read or is damaged."""
    try:
        found = read_json(_examples_file(run), most=MOST_EXAMPLES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    probes = found.get("probes") if isinstance(found, dict) else None
    if not isinstance(probes, list):
        raise ValueError("it has no probe examples")
    return [ProbeExample.from_json(one) for one in probes]


def _examples_file(run: RunFolder) -> Path:
    return run.traces / "probes.json"
