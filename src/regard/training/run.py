"""Train and resume: from a config to a run folder with a trained model in it, as a stream of events.

Puts together what the other rooms offer: data and loss from the task, a network from the presets, a folder for the run.
What then happens is in `session.py`. Prints nothing.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from regard import runtime
from regard.config import ModelTable, RunConfig, RuntimeConfig, override, refuse_unread, to_tables, to_toml
from regard.data.pipeline.hashes import content_hash
from regard.errors import ConfigError, DataError, TrainingError, UsageError, did_you_mean
from regard.evaluation.metrics import find_metric
from regard.models.model_config import ModelConfig
from regard.models.presets import (
    build_model,
    check_model,
    left_open,
    model_config,
    rebuild_model,
    refuse_other_sizes,
    resolved,
    shapes_of,
    size_of,
    weight_shapes,
)
from regard.runs import checkpoints, metrics, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.disk import disk_errors, write_atomically
from regard.runs.folder import Reference, RunFolder
from regard.runs.lock import locked
from regard.runs.tensor_header import Shape
from regard.tasks import find_task
from regard.tasks.baselines import RunBaselines
from regard.tasks.options import Progress
from regard.tasks.spec import find_spec
from regard.tasks.task import Prepared, Task
from regard.training import init_from, step_memory, weight_transfer
from regard.training.baseline import kept_baselines, learn_baselines
from regard.training.distributed import ManyRanks, World, joined
from regard.training.events import Event, Noted
from regard.training.fine_tuning import check_fine_tuning
from regard.training.follower import follow, hand_out, with_own_case
from regard.training.session import Session, training_state
from regard.training.weight_transfer import WarmStart


def train(
    config: RunConfig,
    path: Path | str,
    *,
    model: nn.Module | None = None,
    vocabulary: Path | None = None,
    dry_run: bool = False,
    progress: Progress = lambda what, done: None,
) -> Iterator[Event]:
    """Train a new run in the folder `path`; with `dry_run` only report what it would be.

    `model` is a custom network instead of the config's; `vocabulary` a folder with a ready one, of which the tokenizers are
    used: labels are those of the new data.
    """
    check(config)
    config = with_absolute_paths(config)
    with joined({"settings": to_tables(config)}, timeout=config.runtime.timeout) as world:
        if isinstance(world, ManyRanks) and not world.leads:
            yield from follow(world, model=model, progress=progress)
            return
        yield from _train(config, path, world, model=model, vocabulary=vocabulary, dry_run=dry_run, progress=progress)


def _train(
    config: RunConfig,
    path: Path | str,
    world: World,
    *,
    model: nn.Module | None,
    vocabulary: Path | None,
    dry_run: bool,
    progress: Progress,
) -> Iterator[Event]:
    """Train a new run, as the only process or as the one that leads the others."""
    is_custom = model is not None
    parent = init_from.ParentRun.open(config.training.init) if config.training.init else None
    with runtime.denormals_as_zero():
        machine = runtime.prepare(config.runtime)
        config = dataclasses.replace(config, runtime=dataclasses.replace(config.runtime, threads=machine.threads))
        run = RunFolder.new(path)
        task = find_task(config.task)
        if model is None:
            check_model(config.model, task=config.task, origin="model")
        if parent is not None:
            init_from.refuse_other_architecture(parent, config.model)
            chosen = parent.load_weights()  # before the data are read, so that a damaged one is known at once
        with init_from.lent_tokenizers(vocabulary, task=config.task) as ready:
            prepared = task.prepare(config, vocabulary=ready, progress=progress)
        if model is None:
            prepared, table = with_suited(prepared, config.model)
            sizes = model_config(table, origin="model", **prepared.task.model_fields())
            config = dataclasses.replace(config, model=resolved(table, sizes))
            refuse_larger_than_memory(sizes, machine)
            model = build_model(sizes, seed=config.seed)
        prepared.task.initialise(model)
        warm_start = (
            weight_transfer.warm_start(model, parent, chosen, task=prepared.task, table=config.model)
            if parent is not None
            else None
        )
        baselines = learn_baselines(prepared, config, progress)
        session = Session(
            run,
            config,
            prepared,
            model.to(machine.device),
            machine,
            warm_start=warm_start,
            baselines=baselines.scored,
            world=world,
        )
        hand_out(session)
        with errors_of_network(prepared.task, is_custom=is_custom):
            step_memory.refuse_too_large(session.trainer)
            if dry_run:
                yield session.report()
                return
        # Only now, so that files that cannot be used leave no folder behind.
        with locked(RunFolder.create(path)):
            write_new_run(run, config, prepared, baselines, warm_start)
            with errors_of_network(prepared.task, is_custom=is_custom):
                yield from session.train()


def resume(
    path: Path | str,
    *,
    model: nn.Module | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress = lambda what, done: None,
) -> Iterator[Event]:
    """Resume a run from its last intact checkpoint, to the same bytes as if it had never stopped.

    `settings` are changed for good, such as {"training.steps": 8000}; those of data and model cannot be.
    """
    with joined({"settings": dict(settings or {})}, timeout=RuntimeConfig().timeout) as world:
        if isinstance(world, ManyRanks) and not world.leads:
            yield from follow(world, model=model, progress=progress)
            return
        yield from _resume(path, world, model=model, settings=settings, progress=progress)


def _resume(
    path: Path | str,
    world: World,
    *,
    model: nn.Module | None,
    settings: Mapping[str, Any] | None,
    progress: Progress,
) -> Iterator[Event]:
    """Resume a run, as the only process or as the one that leads the others."""
    run = RunFolder.open(path)
    config = run.read_config()
    refuse_imported(run, config)
    is_custom = model is not None
    changed = override(config, settings or {}, origin="regard resume")
    refuse_changed_settings(changed, config)
    config = changed
    check(config)
    steps, done = config.training.steps, max(names.find(run), default=0)
    if settings and 0 < steps < done:
        raise UsageError(f"{run} is already at step {done:,}, beyond --steps {steps:,}.", "Give a larger --steps.")
    with locked(run), runtime.denormals_as_zero():
        checkpoints.clean(run)
        recorded, warm_start = run.read_task().get("files", {}), WarmStart.of_run(run)
        checkpoint = None
        if names.find(run):
            shapes = shapes_of(model) if model is not None else weight_shapes(config, origin=str(run.config_file))
            checkpoint, notes = newest_resumable(run, shapes)
            for note in notes:
                yield Noted(text=note)
        if not find_spec(config.task).reads_images:  # whose hashes are of another kind, known when they are read
            # Now, to be found also where a change keeps the data from being prepared.
            refuse_changed_data(run, recorded, {file: content_hash(file) for file in recorded})
        # A number of threads is part of the last bits of every sum: the run keeps its own.
        machine = runtime.prepare(config.runtime)
        prepared = find_task(config.task).prepare(with_own_case(config), vocabulary=run.vocabulary, progress=progress)
        refuse_changed_data(run, recorded, prepared.hashes)
        if model is None:
            refuse_other_sizes(config.model, prepared.task.model_fields(), vocabulary=run.vocabulary)
            if checkpoint is None:
                refuse_larger_than_memory(model_config(config.model, origin=str(run.config_file)), machine)
            model = rebuild_model(config, origin=str(run.config_file))
        prepared.task.initialise(model)
        if warm_start is not None and checkpoint is None:
            warm_start.reload(model, run)
        baselines, notes = kept_baselines(run, prepared, config, progress)
        for note in notes:
            yield Noted(text=note)
        session = Session(
            run,
            config,
            prepared,
            model.to(machine.device),
            machine,
            warm_start=warm_start,
            baselines=baselines.scored,
            world=world,
        )
        if checkpoint is not None:
            if note := other_processes(checkpoint, world):
                yield Noted(text=note)
            session.restore(checkpoint)
        else:
            metrics.truncate(run, step=0, validated=False)  # killed before its first checkpoint, the run starts again
        if settings:
            write_atomically(run.config_file, to_toml(config).encode())
        hand_out(session)
        with errors_of_network(prepared.task, is_custom=is_custom):
            step_memory.refuse_too_large(session.trainer)
            yield from session.train()


def other_processes(checkpoint: Checkpoint, world: World) -> str:
    """Say what another number of processes than before changes; "" where it is the same."""
    before, now = checkpoint.facts.get("processes", 1), world.ranks.size
    if before == now:
        return ""
    return (
        f"{checkpoint.path.name} is of {before:,} processes, and the run goes on with {now:,}: the order of the data is the "
        "same, the last bits of sums are not."
    )


def with_suited(prepared: Prepared, table: ModelTable) -> tuple[Prepared, ModelTable]:
    """Return the model's table with fields that suit the data, where nobody chose them, and the data with that fact."""
    suited = left_open(table, prepared.suited)
    if not suited:
        return prepared, table
    by_data = ", ".join(f"model.{name} = {value}" for name, value in suited.items())
    told = dataclasses.replace(prepared, facts=(*prepared.facts, ("by the data", by_data)))
    return told, dataclasses.replace(table, fields={**table.fields, **suited})


def write_new_run(
    run: RunFolder, config: RunConfig, prepared: Prepared, baselines: RunBaselines, warm_start: WarmStart | None
) -> None:
    """Write what a run keeps beside its checkpoints. The config comes last: with it the folder is a run."""
    checkpoints.clean(run)
    with disk_errors(run.path, needed=0):
        prepared.task.save(run.vocabulary)
    baselines.save(run.baseline_file, prepared.task)
    init = {} if warm_start is None else {"init": warm_start.as_json()}
    run.write_task({"task": config.task, "files": dict(prepared.hashes), **init})
    write_atomically(run.config_file, to_toml(config).encode())


def refuse_imported(run: RunFolder, config: RunConfig) -> None:
    """Refuse to resume a run that was never trained here."""
    if "imported" in run.read_task():
        raise UsageError(
            f"{run} was imported: there is no training to resume.",
            f"Fine-tune it as a new run: regard train {config.task} --init {run} --train FILE… --run ANOTHER",
        )


def refuse_changed_settings(changed: RunConfig, config: RunConfig) -> None:
    """Refuse on resume what makes another run of it.

    Corruption and class weights change what a validation loss means: the best one must stay comparable. The state of one
    optimizer is none of another.
    """
    for table in ("task", "seed", "data", "tokenizer", "model", "corruption"):
        if getattr(changed, table) != getattr(config, table):
            raise UsageError(f"[{table}] cannot change on resume.", "Train a new run with other settings.")
    for key in ("init", "class_weights", "best_by", "optimizer"):
        if getattr(changed.training, key) != getattr(config.training, key):
            raise UsageError(f"training.{key} cannot change on resume.", "Train a new run with other settings.")


@contextmanager
def errors_of_network(task: Task, *, is_custom: bool) -> Iterator[None]:
    """Say what the data ask of a custom network where it looks something up that it does not have; ours never do."""
    try:
        yield
    except IndexError as error:
        if not is_custom:
            raise
        sizes = ", ".join(f"{name} {size:,}" for name, size in task.model_fields().items() if isinstance(size, int))
        raise TrainingError(
            f"The network raised an IndexError: {error}.",
            f"Give it an embedding for every token, enough positions and outputs; by the data they are: {sizes}.",
        ) from error


def newest_resumable(run: RunFolder, shapes: Mapping[str, Shape]) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint that is intact and fits a model of these shapes, and a note for each newer one."""

    def read(path: Path) -> Checkpoint:
        checkpoints.require_shapes(path, shapes)  # before anything is hashed, read or built
        checkpoint = checkpoints.verify(path)
        training_state(checkpoint)
        return checkpoint

    return selection.first_intact(run, selection.candidates(run, "last"), read)


def check(config: RunConfig) -> None:
    """Refuse what cannot be trained, before anything is read."""
    training = config.training
    check_fine_tuning(training)
    refuse_unread(config)
    check_best_by(config)
    if not (training.steps or training.epochs or training.minutes):
        raise ConfigError("The run has no limit: it would never end.", "Give --steps, --epochs or --minutes.")


def check_best_by(config: RunConfig) -> None:
    """Refuse to choose the best checkpoint by a metric that no validation will have."""
    best_by, known = config.training.best_by, find_spec(config.task).metrics
    if best_by not in known:
        raise ConfigError(
            f"training.best_by must be a metric of the task {config.task}, not '{best_by}'.",
            did_you_mean(best_by, known),
        )
    if find_metric(best_by).decoded and not config.training.validate_samples:
        raise ConfigError(
            f"training.best_by = {best_by} needs decoded samples, and training.validate_samples is 0.",
            "Decode some at each validation, or all: --set training.validate_samples=-1",
        )


def refuse_larger_than_memory(config: ModelConfig, machine: runtime.Machine) -> None:
    """Refuse a network whose weights alone, without gradients and the optimizer's state, do not fit into the memory."""
    needed, free = 4 * size_of(config), runtime.available_memory(machine.device)
    if free is not None and needed > free:
        raise ConfigError(
            f"The weights of this model take {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of memory are free.",
            "Choose a smaller model.",
        )


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Write the paths so that the run can be resumed from any folder."""

    def absolute(file: str) -> str:
        return str(Path(file).absolute()) if file else ""

    train, valid = (tuple(map(absolute, files)) for files in (config.data.train, config.data.valid))
    given, init = config.tokenizer, config.training.init
    if init:
        reference = Reference.parse(init)
        init = str(dataclasses.replace(reference, path=reference.path.absolute()))
    return dataclasses.replace(
        config,
        training=dataclasses.replace(config.training, init=init),
        data=dataclasses.replace(config.data, train=train, valid=valid),
        tokenizer=dataclasses.replace(given, file=absolute(given.file), vectors=absolute(given.vectors)),
    )


def refuse_changed_data(run: RunFolder, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to resume on other data than before: the hashes of all files and folders must be the same."""
    for file, content in before.items():
        if now.get(file) != content:
            raise DataError(
                f"{file} has changed since {run} was started: a run resumes on the data it was trained on.",
                f"Restore the old {'files' if Path(file).is_dir() else 'file'}, or train a new run.",
            )
