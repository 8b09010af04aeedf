"""A source: files of one kind of data, whose good examples can be read as often as needed, each time as a stream.

A kind defines only what is its own: what a row is called, how its files are read, what decides the validation split, what
a survey counts. What every kind passes through stands in this folder once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import ClassVar, Generic, Protocol, TypeVar

from regard.config import DataConfig
from regard.data.formats.rows import Bad
from regard.data.pipeline.bad_rows import BadRows
from regard.data.pipeline.hashes import content_hash
from regard.data.pipeline.validation_split import HeldOut, ValidationSplit
from regard.errors import DataError

Progress = Callable[[str, int], None]  # what is done, and how many rows so far


class Placed(Protocol):
    """An example that stands on a line of a file."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


Example = TypeVar("Example", bound=Placed)


@dataclass(frozen=True, kw_only=True)
class Source(ABC, Generic[Example]):
    """Files of one kind of data, and how they are read."""

    files: tuple[str, ...]
    data: DataConfig

    noun: ClassVar[str]  # what one row is called
    unit: ClassVar[str] = ""  # what is held out for validation, if that is called otherwise
    held_out_by: ClassVar[str] = "text"  # what decides which
    chunk: ClassVar[int] = 4096  # examples that are encoded together

    @abstractmethod
    def read(self) -> Iterator[Example | Bad]:
        """Yield all rows in their order."""

    @abstractmethod
    def settings(self) -> tuple[object, ...]:
        """Return all on which the examples depend beside the files' content."""

    @abstractmethod
    def key(self, example: Example) -> str | None:
        """Return what decides whether an example is held out; None if another example decides for it."""

    def labels(self, example: Example) -> Iterable[str]:
        """Return the classes of an example, of which none may be held out whole."""
        return ()

    def split(self, example: Example) -> str:
        """Return the split that the files themselves say an example is of; "" where they do not."""
        return ""

    def counts(self, example: Example) -> Mapping[str, int]:
        """Return what the survey adds up."""
        return {}

    def check(self, splits: Mapping[str, int], counts: Mapping[str, int]) -> None:
        """Refuse what cannot be learned from, by what the survey has counted."""

    def hold_out(self, validation_split: ValidationSplit, counts: Mapping[str, int]) -> HeldOut:
        """Return what is held out, after the survey has seen all."""
        return validation_split.held_out()

    def good(self, bad_rows: BadRows | None = None) -> Iterator[Example]:
        """Yield the good examples; DataError at the end if too many rows are bad. `bad_rows` takes note of these."""
        bad_rows = BadRows(self.noun) if bad_rows is None else bad_rows
        yield from bad_rows.good(self.read())
        bad_rows.enforce(self.data.on_bad, self.files)

    def divided(self, held_out: HeldOut) -> Iterator[tuple[str, Example]]:
        """Yield the good examples with the split of each, train or valid."""
        for example in self.good():
            key = self.key(example)
            is_held_out = key is not None and held_out.holds(key, self.labels(example))
            yield "valid" if is_held_out else self.split(example) or "train", example

    def training(self, held_out: HeldOut) -> Iterator[Example]:
        """Yield the examples of the training split alone, from which a vocabulary is learned."""
        return (example for split, example in self.divided(held_out) if split == "train")

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The content of each file."""
        return {file: content_hash(file) for file in dict.fromkeys(self.files)}

    def cache_key(self) -> tuple[str, ...]:
        """Return all on which the good examples depend; of the files' names only their ends, which say how they are read."""
        settings = (type(self).__name__, self.settings(), self.data.on_bad)
        return repr(settings), *(self.hashes[file] + _ending(file) for file in self.files)


def require_training_files(data: DataConfig, remedy: str = "Give the training files with --train.") -> None:
    """Refuse to train on nothing."""
    if not data.train:
        raise DataError("There is nothing to train on.", remedy)


def _ending(file: str) -> str:
    name = PurePath(file.lower().removesuffix(".gz"))
    return name.suffix + ".gz" * file.lower().endswith(".gz")
