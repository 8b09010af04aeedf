"""Which engine is asked for: by name, with which numbers, workers and threads."""

from dataclasses import dataclass

from regard.decoding.engine.library import EngineSettings
from regard.errors import UsageError, did_you_mean
from regard.exchange.ctranslate2 import TYPES

ENGINES = ("auto", "torch", "ctranslate2")
MOST_THREADS = 256  # of all workers together; far more and the library crashes


@dataclass(frozen=True, kw_only=True)
class EngineWish:
    """Which engine is asked for; workers and threads: 0 for as measured on this machine.

    shortlist: only what the tokens of a source may become is written, learned from the training pairs
    """

    name: str = "auto"
    compute_type: str = "float32"
    shortlist: bool = False
    workers: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise UsageError(f"There is no engine '{self.name}'.", did_you_mean(self.name, ENGINES))
        if self.compute_type not in TYPES:
            raise UsageError(f"There is no compute type '{self.compute_type}'.", did_you_mean(self.compute_type, TYPES))
        if self.shortlist and self.name == "torch":
            raise UsageError("A shortlist is for ctranslate2, and the engine is to be torch.", "Leave one out.")
        for name, asked in (("workers", self.workers), ("threads", self.threads)):
            if not 0 <= asked <= MOST_THREADS:
                raise UsageError(
                    f"--engine-{name} must be from 0 (as measured) to {MOST_THREADS}, not {asked}.",
                    "Give as many as the machine has cores, or fewer.",
                )
        if self.workers * self.threads > MOST_THREADS:
            raise UsageError(
                f"--engine-workers {self.workers} with --engine-threads {self.threads} each are"
                f" {self.workers * self.threads:,} threads, and at most {MOST_THREADS} are allowed.",
                "Give as many as the machine has cores, or fewer.",
            )

    @property
    def kind(self) -> tuple[str, ...]:
        """What tells the engines of the same weights apart."""
        return (self.compute_type, "shortlist") if self.shortlist else (self.compute_type,)

    def settings(self, measured: EngineSettings) -> EngineSettings:
        """The measured settings, with those that are asked for in their place."""
        threads = self.threads or measured.threads
        return EngineSettings(
            workers=self.workers or measured.workers,
            threads=threads,
            threads_for_one=self.threads or measured.threads_for_one,
        )
