"""What was measured of the importance of a run's parts, in RUN/traces: the file by which a measurement that was stopped goes
on, and the report of a finished one, which the page shows when it is opened again.

    traces/importance-0123456789ab.jsonl        part by part, while it is measured (importance_file)
    traces/importance-0123456789ab-heads.json   the whole, of one checkpoint
"""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.regular_files import MEGABYTE
from regard.runs.disk import as_json, disk_errors, write_atomically
from regard.runs.folder import RunFolder
from regard.runs.json_files import read_json

FORMAT = 1
MOST_BYTES = 64 * MEGABYTE


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What is measured: of which checkpoint, by which metric, on so many examples (0 for all) of which files."""

    checkpoint: str
    metric: str
    parts: str
    n_examples: int
    files: tuple[str, ...]

    def _file(self, run: RunFolder, suffix: str) -> Path:
        paths = (str(Path(file).resolve()) for file in self.files)
        asked = "\n".join((self.checkpoint, f"{self.n_examples} {self.metric}", *paths))
        name = hashlib.sha256(asked.encode()).hexdigest()[:12]
        return run.traces / f"importance-{name}{suffix}"

    def parts_file(self, run: RunFolder) -> Path:
        """Where the parts that are measured are kept; in a folder that is made, if it is not there."""
        with disk_errors(run.path, needed=0):
            run.traces.mkdir(exist_ok=True)
        return self._file(run, ".jsonl")

    def keep(self, run: RunFolder, found: dict[str, Any]) -> None:
        """Write the report of a finished measurement, as its `to_json` has it."""
        own = asdict(self) | {"files": [Path(file).name for file in self.files]}
        write_atomically(
            self._file(run, f"-{self.parts}.json"), as_json({"format": FORMAT, **own, "importance": found}) + b"\n"
        )


@dataclass(frozen=True, kw_only=True)
class KeptImportance:
    """A finished measurement as it was kept: `measured.files` has names alone, since a run may have been moved."""

    measured: Measurement
    importance: dict[str, Any]


def kept_importances(run: RunFolder, checkpoint: str) -> list[KeptImportance]:
    """The finished measurements of a checkpoint, the newest first; what is damaged, or of a later format, is left out."""
    found = []
    for path in run.traces.glob("importance-*.json"):
        try:
            content, written = read_json(path, most=MOST_BYTES), path.stat().st_mtime
            own = _of_json(content)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if own.measured.checkpoint == checkpoint:
            found.append((written, path.name, own))
    return [own for _, _, own in sorted(found, key=lambda one: one[:2], reverse=True)]


def _of_json(content: Any) -> KeptImportance:
    if content["format"] != FORMAT:
        raise ValueError("of another format")
    measured = Measurement(
        checkpoint=str(content["checkpoint"]),
        metric=str(content["metric"]),
        parts=str(content["parts"]),
        n_examples=int(content["n_examples"]),
        files=tuple(map(str, content["files"])),
    )
    importance = content["importance"]
    if not {"examples", "whole", "parts"} <= set(importance):
        raise ValueError("no importance")
    return KeptImportance(measured=measured, importance=dict(importance))
