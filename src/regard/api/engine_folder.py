"""A converted engine in a run's folder: made on first use, checked, measured, kept.

    runs/mine/engines/ctranslate2-4.8.4-float32-1f0c5a…/    model.bin  config.json  …vocabulary.json  engine.json

The name holds the library's version, the type of its numbers, whether there is a shortlist, and a hash of the weights: a
run that is trained on gets another, and another version of the library too. A folder is written whole or not at all, by
one process at a time. Before one is trusted, it is compared with our own network on made-up sentences; which number of
workers and threads is the fastest is measured once on each machine.
"""

import dataclasses
import fcntl
import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.api.engine_trial import fastest, largest_error
from regard.api.engine_wish import EngineWish
from regard.data.text.tokenizer import Tokenizer
from regard.decoding.engine.encoding_engine import EncodingEngine
from regard.decoding.engine.generation_engine import GenerationEngine
from regard.decoding.engine.library import Engine, EngineSettings
from regard.decoding.engine.translation_engine import VOCABULARY_MAP
from regard.errors import RegardError, UsageError
from regard.exchange.ctranslate2 import convert, token_names
from regard.runs.checkpoints import Checkpoint
from regard.runs.disk import (
    as_json,
    delete_tree,
    discard,
    remove_leftovers,
    temporary_name,
    write_atomically,
    write_synced,
)
from regard.runs.json_files import read_json
from regard.tasks.exported import parts_of
from regard.tasks.task import UsableTask
from regard.tasks.translation.shortlist import learn_shortlist
from regard.tasks.translation.task import TranslationTask

FILE, MOST_FILE = "engine.json", 1 << 16
TOLERANCE = 1e-3  # of a log-probability or a state in float32; what is seen is a hundredth of it
KEPT = 4  # converted models of a run; older ones are deleted


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What of a run becomes an engine, and which kind of it; source, target: the tokenizers, perhaps the same."""

    kind: Any
    task: UsableTask[Any]
    model: Any
    source: Tokenizer
    target: Tokenizer

    @classmethod
    def of(cls, kind: type[Engine], task: UsableTask[Any], model: nn.Module) -> "Subject":
        """That of a run."""
        parts = parts_of(task, model.state_dict())
        assert parts.source is not None and parts.target is not None
        return cls(kind=kind, task=task, model=model, source=parts.source, target=parts.target)

    def engine(self, folder: Path, settings: EngineSettings) -> Any:
        """The engine in a folder."""
        if self.kind is EncodingEngine:
            return EncodingEngine(folder, max_length=self.model.max_length, settings=settings)
        return self.kind(
            folder,
            token_names(self.target),
            source_names=token_names(self.source),
            end_id=self.target.end_id,
            never=self.target.unwritten(unknown=self.kind is GenerationEngine),
            n_tokens=self.target.n_tokens,
            settings=settings,
        )


def open_converted(
    engines: Path, subject: Subject, checkpoint: Checkpoint, wish: EngineWish
) -> tuple[Engine, Path | None]:
    """Open the engine of a checkpoint, converted first if it is not there; also where it was converted into, if it was."""
    import ctranslate2

    hashes = sorted(
        str(entry["sha256"]) for name, entry in checkpoint.manifest.files.items() if name.endswith("tensors")
    )
    digest = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
    folder = engines / "-".join(("ctranslate2", ctranslate2.__version__, *wish.kind, digest))
    if engine := _kept_engine(folder, subject, wish):
        return engine, None
    engines.mkdir(exist_ok=True)
    with _alone(engines):
        if engine := _kept_engine(folder, subject, wish):  # another process has converted it meanwhile
            return engine, None
        discard(folder)  # damaged
        _convert(folder, subject, wish)
        _prune(engines, keep=folder)
    engine = _kept_engine(folder, subject, wish)
    if engine is None:
        raise RegardError("the converted model cannot be read back.", "")
    return engine, folder


@contextmanager
def _alone(engines: Path) -> Iterator[None]:
    """Let one process at a time convert into a folder; the system frees the lock when its holder ends."""
    descriptor = os.open(engines, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _kept_engine(folder: Path, subject: Subject, wish: EngineWish) -> Engine | None:
    """The engine in a folder, with the settings that are the fastest here; None where none is, or a damaged one."""
    facts = _kept_facts(folder)
    if facts is None:
        return None
    try:
        settings = facts["settings"].get(_machine())
        if settings is None:
            settings = _measured(folder, subject)
            facts["settings"][_machine()] = settings
            with suppress(OSError, RegardError):  # in a folder that is only read it is measured each time
                write_atomically(folder / FILE, as_json(facts, indent=2) + b"\n")
        engine = subject.engine(folder, wish.settings(EngineSettings(**settings)))
        engine.open(1)
    except (RuntimeError, ValueError):
        return None
    return engine  # type: ignore[no-any-return]


def _convert(folder: Path, subject: Subject, wish: EngineWish) -> None:
    """Convert, check and measure under another name, and give it its own when all of it is there."""
    remove_leftovers(folder.parent)
    temporary = temporary_name(folder)
    try:
        convert(
            temporary,
            subject.model.config,
            subject.model.state_dict(),
            source=subject.source,
            target=subject.target,
            compute_type=wish.compute_type,
            vocabulary_map=vocabulary_map(subject.task) if wish.shortlist else b"",
        )
        engine = subject.engine(temporary, EngineSettings())
        error = largest_error(engine, subject.model, subject.source, subject.target)
        if not error <= (TOLERANCE if wish.compute_type == "float32" else math.inf):
            raise RegardError(f"its {engine.compared} differ by {error:.2g} from those of the network.", "")
        facts = {
            "largest_error": error,
            "shortlist": _map_hash(temporary),
            "settings": {_machine(): _measured(temporary, subject)},
        }
        write_synced(temporary / FILE, as_json(facts, indent=2) + b"\n")
        temporary.rename(folder)
    finally:
        delete_tree(temporary)


def _measured(folder: Path, subject: Subject) -> dict[str, int]:
    """The fastest settings here, as `EngineSettings` takes them."""
    return dataclasses.asdict(fastest(partial(subject.engine, folder), subject.source))


def vocabulary_map(task: UsableTask[Any]) -> bytes:
    """Learn the shortlist of a translator from its training pairs; as the library reads it."""
    vocabulary = translation_task(task).vocabulary
    shortlist = learn_shortlist(translation_task(task))
    return shortlist.vocabulary_map(token_names(vocabulary.source), token_names(vocabulary.target))


def translation_task(task: UsableTask[Any]) -> TranslationTask:
    """The task of a run that is to have a shortlist; any other than translation is refused."""
    if not isinstance(task, TranslationTask):
        raise UsageError(
            f"A shortlist is of a translator's target tokens, and the run was trained for the task '{task.spec.name}'.",
            "Leave --shortlist out.",
        )
    return task


def _map_hash(folder: Path) -> str:
    """Of the shortlist, if there is one: the library takes half of it for a shorter one."""
    path = folder / VOCABULARY_MAP
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _kept_facts(folder: Path) -> Any:
    """What was found out about an engine, its settings by machine; None where there is no engine, or a damaged one."""
    try:
        facts = read_json(folder / FILE, most=MOST_FILE)
        for settings in facts["settings"].values():
            if any(type(value) is not int or value < 1 for value in settings.values()):
                return None
            EngineSettings(**settings)
        return facts if facts["shortlist"] == _map_hash(folder) else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _machine() -> str:
    """What the fastest settings depend on, beside the model."""
    return f"threads: {torch.get_num_threads()}, {torch.backends.cpu.get_cpu_capability()}"


def _prune(engines: Path, *, keep: Path) -> None:
    """Delete the oldest engines of a run that goes on being trained."""
    found = sorted(engines.glob("ctranslate2-*"), key=lambda path: path.stat().st_mtime)
    for path in [one for one in found if one != keep][: max(0, len(found) - KEPT)]:
        delete_tree(path)
