"""Ranks but the first: they compute gradients as the leader tells them to, and neither read nor write the run's folder.

The leader prepares the data first, so that others on its machine, or file system, find them in the cache; it sends the
settings, the vocabulary, and the values of weights and of the optimizer. So a new run, one that is resumed, and one of a
custom network begin alike.
"""

import base64
import dataclasses
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard import runtime
from regard.config import AS_SAVED, RunConfig, from_tables, to_tables
from regard.data.pipeline.hashes import content_hash
from regard.errors import DataError
from regard.models.presets import rebuild_model
from regard.tasks import find_task
from regard.tasks.options import Progress
from regard.tasks.spec import find_spec
from regard.tasks.task import Prepared
from regard.training import fine_tuning, step_memory
from regard.training.distributed import ManyRanks
from regard.training.events import Finished
from regard.training.loop import Trainer, seconds_per_step, updates
from regard.training.session import Session, make_trainer
from regard.training.state import Cursor


def hand_out(session: Session) -> None:
    """Give the other ranks what the leader's session begins with."""
    world, trainer = session.world, session.trainer
    if world.ranks.size == 1:
        return
    optimizer = trainer.optimizer.state()
    with tempfile.TemporaryDirectory() as folder:
        session.prepared.task.save(Path(folder))
        files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in sorted(Path(folder).iterdir())}
    world.send(
        {
            "config": to_tables(session.config),
            "vocabulary": files,
            "files": dict(session.prepared.hashes),
            "loaded": list(session.loaded),
            "cursor": vars(session.state.cursor),
            "optimizer": list(optimizer),
        }
    )
    world.broadcast([*saved_tensors(trainer.model), *optimizer.values()])


def follow(world: ManyRanks, *, model: nn.Module | None, progress: Progress) -> Iterator[Finished]:
    """Take part in the leader's run to its end; yield how that came."""
    facts = world.receive()
    _ignore_stop_signals()
    config = from_tables(facts["config"], origin="rank 0")
    world.store.timeout = config.runtime.timeout
    machine = runtime.prepare(config.runtime)
    prepared = _in_turn(world, config, facts, progress)
    model = rebuild_model(config, origin="rank 0") if model is None else model
    prepared.task.initialise(model)
    model = model.to(machine.device)
    lr_factors = fine_tuning.prepare_fine_tuning(model, facts["loaded"], config.training)
    trainer = make_trainer(config, prepared, model, machine, lr_factors=lr_factors, world=world)
    _take_values(world, trainer, facts["optimizer"])
    step_memory.refuse_too_large(trainer)
    seconds_per_step(trainer)
    trainer.model.train()
    cursor = Cursor(**facts["cursor"])
    step = cursor.step
    for update in updates(trainer, cursor):
        step = update.step
    yield Finished(reason="rank 0 ended", step=step, seconds=0.0, best={}, average={}, signal=world.signal)


def saved_tensors(model: nn.Module) -> list[Tensor]:
    """The values that a checkpoint has of a model, each once."""
    return list({tensor.data_ptr(): tensor for tensor in model.state_dict().values()}.values())


def _in_turn(world: ManyRanks, config: RunConfig, facts: Mapping[str, Any], progress: Progress) -> Prepared:
    """Prepare the data: one process of a machine first, which encodes them where it has a cache of its own."""
    key = f"prepared-{world.ranks.node}"
    if world.ranks.local_rank and world.ranks.node:
        world.store.wait_for(key)
    refuse_other_files(config, facts["files"])
    with tempfile.TemporaryDirectory() as folder:
        for name, content in facts["vocabulary"].items():
            (Path(folder) / Path(name).name).write_bytes(base64.b64decode(content))
        prepared = find_task(config.task).prepare(with_own_case(config), vocabulary=Path(folder), progress=progress)
    refuse_different(prepared.hashes, facts["files"])
    world.store.done(key)
    return prepared


def refuse_other_files(config: RunConfig, theirs: Mapping[str, str]) -> None:
    """Refuse files of which the leader has others, before they are read; hashes of images are known when they are read."""
    if not find_spec(config.task).reads_images:
        refuse_different({file: content_hash(file) for file in theirs}, theirs)


def refuse_different(own: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Refuse a file with another hash than the leader's."""
    for file, content in theirs.items():
        if own.get(file) != content:
            raise DataError(
                f"{file} is not the file that rank 0 has under this name.",
                "Give all machines the same files, or put them on a file system that all share.",
            )


def _take_values(world: ManyRanks, trainer: Trainer, names: list[str]) -> None:
    """Receive the weights, and the state of the optimizer where there is one."""
    named = trainer.optimizer.named
    optimizer = {
        name: torch.zeros(()) if name.endswith(".step") else torch.zeros_like(named[name.rpartition(".")[0]])
        for name in names
    }
    world.broadcast([*saved_tensors(trainer.model), *optimizer.values()])
    trainer.optimizer.restore(optimizer)


def _ignore_stop_signals() -> None:
    """Leave it to the leader when to stop: it saves first."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def with_own_case(config: RunConfig) -> RunConfig:
    """Return the settings with which a run goes on: its vocabulary lower-cases text or does not, and no text is asked."""
    if config.tokenizer.lowercase != "auto":
        return config
    return dataclasses.replace(config, tokenizer=dataclasses.replace(config.tokenizer, lowercase=AS_SAVED))
