"""The library CTranslate2, opened: a model's folder, and how many batches and threads it computes with."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """How it computes: many inputs as so many batches at a time, each by so many threads; one input by threads alone."""

    workers: int = 1
    threads: int = 1
    threads_for_one: int = 1

    def of(self, n_inputs: int) -> tuple[int, int]:
        """Workers and threads for so many inputs."""
        if n_inputs == 1 and self.threads_for_one != self.threads:
            return 1, self.threads_for_one
        return self.workers, self.threads


class Engine:
    """What all kinds share: the folder, and instances of the library opened when first asked for.

    name: as signatures of scores have it: the library, its version, its type
    """

    library_class: str
    compared: str  # what of it is compared with the network's before it is trusted

    def __init__(self, folder: Path, *, settings: EngineSettings) -> None:
        self.folder = folder
        self.name = folder.name.rpartition("-")[0]
        self.settings = settings
        self._opened: dict[tuple[int, int], Any] = {}
        # Its threads let go of what they call in Python before that ends: later they would abort the process.
        weakref.finalize(self, self._opened.clear)

    def open(self, n_inputs: int) -> Any:
        """The library's own object for so many inputs."""
        settings = self.settings.of(n_inputs)
        if settings not in self._opened:
            self._opened[settings] = self._new(*settings)
        return self._opened[settings]

    def _new(self, workers: int, threads: int) -> Any:
        import ctranslate2

        with _kept_threads():
            make = getattr(ctranslate2, self.library_class)
            return make(str(self.folder), device="cpu", inter_threads=workers, intra_threads=threads)


@contextmanager
def _kept_threads() -> Iterator[None]:
    """Keep torch's number of threads, which the library would set to its own."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
