"""Runs named on the command line, loaded for use."""

from collections.abc import Sequence
from typing import Any

from regard.cli.options import check_option
from regard.cli.terminal import busy, note


def load_runs(names: Sequence[str], *, threads: int = 0, **settings: Any) -> list[Any]:
    """Load runs, each as the kind that it is, and tell which damaged checkpoints were skipped; settings as of `load`."""
    check_option("runtime.threads", threads)
    with busy(f"loading {', '.join(names)}"):
        from regard.api import load
        from regard.runtime import keep_freed_memory

        keep_freed_memory()
        runs = [load(name, threads=threads, **settings) for name in names]
    for run in runs:
        for text in run.notes:
            note(text)
    return runs
