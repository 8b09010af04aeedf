"""Runs named on the command line, loaded for use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.cli.terminal import busy, note
from regard.runs.folder import Reference, RunFolder

if TYPE_CHECKING:
    from regard.api import Run


def load_runs(names: Sequence[str]) -> "list[Run]":
    """Load runs, and tell which damaged checkpoints were passed over."""
    for name in names:
        RunFolder.open(Reference.parse(name).path)  # a wrong name is told at once, before torch is loaded
    with busy(f"loading {', '.join(names)}"):
        from regard.api import load
        from regard.runtime import keep_freed_memory

        keep_freed_memory()
        runs = [load(name) for name in names]
    for run in runs:
        for text in run.notes:
            note(text)
    return runs
