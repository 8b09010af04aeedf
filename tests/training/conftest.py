"""A config for tiny runs, runs driven to their end or to a certain event, and one that is finished."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard import config as configuration
from regard.config import RunConfig
from regard.training.events import Event, Updated
from regard.training.run import train

Stop = Callable[[Event], bool]


def kinds(events: list[Event]) -> list[str]:
    """The names of the events' classes."""
    return [type(event).__name__ for event in events]


def of(kind: type, events: list[Event]) -> list[Any]:
    """The events of one class."""
    return [event for event in events if isinstance(event, kind)]


def at_step(step: int) -> Stop:
    """Whether an event is this update."""
    return lambda event: isinstance(event, Updated) and event.update.step == step


@pytest.fixture(scope="session")
def make_config(corpus: tuple[str, str], tiny: dict[str, Any]) -> Callable[..., RunConfig]:
    """Make the config of a tiny run from dotted settings."""

    def make(settings: dict[str, Any] | None = None) -> RunConfig:
        tables: dict[str, Any] = {"task": "translate", "data": {"train": list(corpus)}}
        tables["model"] = {"preset": "transformer-tiny"}
        for key, value in {**tiny, "training.steps": 8, "training.validate_every": 4, **(settings or {})}.items():
            table, _, name = key.rpartition(".")
            (tables.setdefault(table, {}) if table else tables)[name] = value
        return configuration.from_tables(tables, origin="test")

    return make


@pytest.fixture(scope="session")
def drive() -> Callable[..., list[Event]]:
    """Run a generator of events to its end, or close it after the first event that `stop` is true of."""

    def run(events: Iterator[Event], stop: Stop = lambda event: False) -> list[Event]:
        seen = []
        for event in events:
            seen.append(event)
            if stop(event):
                events.close()  # type: ignore[attr-defined]
        return seen

    return run


@pytest.fixture(scope="session")
def tensors_of() -> Callable[[Path], dict[str, bytes]]:
    """Read all tensors that a run has saved: the bytes of each safetensors file by its place in the run folder."""

    def read(run: Path) -> dict[str, bytes]:
        files = sorted(run.glob("checkpoints/*/*.safetensors"))
        return {str(file.relative_to(run)): file.read_bytes() for file in files}

    return read


@pytest.fixture(scope="session")
def finished(
    make_config: Callable[..., RunConfig],
    drive: Callable[..., list[Event]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[Event]]:
    """A run of six steps, validated at four and at its end. To be read, not changed."""
    path = tmp_path_factory.mktemp("finished") / "run"
    return path, drive(train(make_config({"training.steps": 6, "training.average": 2}), path))
