"""The assembler: from a config to a run folder with a trained model in it, as a stream of events.

Holds together what the other rooms offer: data and loss from the task, updates from the loop, checkpoints from the run
folder. Decides when to validate, save and stop. Prints nothing.
"""

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import runtime
from regard.config import RunConfig, read, to_toml
from regard.errors import CheckpointError, ConfigError, DataError, RunError
from regard.models.presets import build_model, check_model, model_config, resolved
from regard.runs import averaging, checkpoints, metrics, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.disk import write_atomically
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.runs.metrics import Metrics
from regard.runs.tensors import count_bytes
from regard.tasks import find_task
from regard.tasks.task import Prepared, Progress, Validation
from regard.training.averages import MovingAverage
from regard.training.card import model_card
from regard.training.ending import reason_to_end
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.loop import Learner, Place, gradients, updates
from regard.training.optimizer import Optimizer
from regard.training.schedules import check_schedule
from regard.training.signals import Wish, stop_wishes


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

    `model` is a network of the caller's own instead of the config's; `vocabulary` a folder with a ready one.
    """
    check(config)
    config = with_absolute_paths(config)
    machine = runtime.prepare(config.runtime)
    config = dataclasses.replace(config, runtime=dataclasses.replace(config.runtime, threads=machine.threads))
    run = RunFolder.new(path)
    if model is None:
        check_model(config.model, origin="model")
    prepared = find_task(config.task).prepare(config, vocabulary=vocabulary, progress=progress)
    if model is None:
        sizes = model_config(config.model, origin="model", **prepared.task.sizes())
        config = dataclasses.replace(config, model=resolved(config.model, sizes))
        model = build_model(sizes, seed=config.seed)
    prepared.task.initialise(model)
    session = _Session(run, config, prepared, model.to(machine.device), machine)
    if dry_run:
        yield session.report()
        return
    # Only now, so that files that cannot be used leave no folder behind.
    with locked(RunFolder.create(path)):
        prepared.task.save(run.vocabulary)
        run.write_task({"task": config.task, "files": dict(prepared.hashes)})
        # The config comes last: with it the folder is a run.
        write_atomically(run.config_file, to_toml(config).encode())
        yield from session.go()


def resume(
    path: Path | str,
    *,
    model: nn.Module | None = None,
    steps: int | None = None,
    progress: Progress = lambda what, done: None,
) -> Iterator[Event]:
    """Go on with a run from its last whole checkpoint, to the same bytes as if it had never stopped.

    `steps` moves the end of the run; everything else stays as the run folder has it.
    """
    run = RunFolder.open(path)
    config = read(run.config_file)
    if steps is not None:
        config = dataclasses.replace(config, training=dataclasses.replace(config.training, steps=steps))
    check(config)
    with locked(run):
        checkpoints.clean(run)
        # A number of threads is part of the last bits of every sum: the run keeps its own.
        machine = runtime.prepare(config.runtime)
        prepared = find_task(config.task).prepare(config, vocabulary=run.vocabulary, progress=progress)
        refuse_changed_data(run, prepared.hashes)
        if model is None:
            model = rebuild(run, config)
        prepared.task.initialise(model)
        session = _Session(run, config, prepared, model.to(machine.device), machine)
        if steps is not None:
            write_atomically(run.config_file, to_toml(config).encode())
        if names.find(run):
            checkpoint, notes = selection.newest_good(run)
            for note in notes:
                yield Noted(text=note)
            session.restore(checkpoint)
        else:
            metrics.cut(run, step=0)  # killed before its first save, the run begins anew
        yield from session.go()


def rebuild(run: RunFolder, config: RunConfig) -> nn.Module:
    """Build the network of a run again, with its first weights."""
    if not config.model.preset:
        raise RunError(
            f"{run} was trained with a network of the caller's own, which its config cannot rebuild.",
            "Give the network from Python: regard.load(run, model=…), regard.resume(run, model=…).",
        )
    return build_model(model_config(config.model, origin=str(run.config_file)), seed=config.seed)


_NOT_NEGATIVE = (
    *("steps", "epochs", "minutes", "learning_rate", "warmup", "epsilon", "weight_decay", "clip"),
    *("validate_every", "save_every_steps", "save_every_minutes", "patience", "average"),
)


def check(config: RunConfig) -> None:
    """Refuse what cannot be trained, before anything is read."""
    training = config.training
    check_schedule(training)
    if not (training.steps or training.epochs or training.minutes):
        raise ConfigError("The run has no end.", "Give --steps, --epochs or --minutes.")
    for name in ("batch_tokens", "accumulate", "keep"):
        if getattr(training, name) < 1:
            raise ConfigError(f"training.{name} is at least 1, not {getattr(training, name)}.", f"Correct {name}.")
    for name in _NOT_NEGATIVE:
        if getattr(training, name) < 0:
            raise ConfigError(
                f"training.{name} cannot be below 0, as {getattr(training, name)} is.", f"Correct {name}."
            )
    for name in ("label_smoothing", "ema", "beta1", "beta2"):
        if not 0 <= getattr(training, name) < 1:
            raise ConfigError(
                f"training.{name} lies from 0 to below 1, not at {getattr(training, name)}.", f"Correct {name}."
            )


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Write the data's paths so that the run can be resumed from any folder."""

    def absolute(files: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(Path(file).absolute()) for file in files)

    data = dataclasses.replace(config.data, train=absolute(config.data.train), valid=absolute(config.data.valid))
    (vectors,) = absolute((config.tokenizer.vectors,)) if config.tokenizer.vectors else ("",)
    return dataclasses.replace(config, data=data, tokenizer=dataclasses.replace(config.tokenizer, vectors=vectors))


def refuse_changed_data(run: RunFolder, hashes: Mapping[str, str]) -> None:
    """A run goes on with the very data it began with, or not at all."""
    begun = run.read_task().get("files", {})
    changed = [file for file, content in hashes.items() if begun.get(file) != content]
    if changed:
        raise DataError(
            f"{changed[0]} has changed since {run} began: its content is no longer what the run was trained on.",
            "Put the old file back, or train a new run.",
        )


@dataclass
class _Standing:
    """What a checkpoint keeps beside tensors: where the run stands and how it has done."""

    place: Place = field(default_factory=Place)
    seconds: float = 0.0
    best: dict[str, Any] = field(default_factory=dict)  # step, loss and scores of the best validation
    validation: dict[str, Any] | None = None  # of this very step
    validated: list[int] = field(default_factory=list)  # the steps of all validations
    worse: int = 0  # validations in a row without a better loss

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "_Standing":
        return cls(**{**state, "place": Place(**state["place"])})


class _Session:
    """One process's part in a run."""

    def __init__(
        self, run: RunFolder, config: RunConfig, prepared: Prepared, model: nn.Module, machine: runtime.Machine
    ) -> None:
        self.run = run
        self.config = config
        self.prepared = prepared
        self.standing = _Standing()
        self.steps_an_epoch = math.ceil(len(prepared.train.order(0)) / config.training.accumulate)
        self.learner = Learner(
            model=model,
            task=prepared.task,
            examples=prepared.train,
            optimizer=Optimizer(model, config.training),
            average=MovingAverage(model, config.training.ema) if config.training.ema else None,
            config=config.training,
            machine=machine,
            seed=config.seed,
            total=self._total_steps(),
        )
        if config.runtime.compile:
            model.compile()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up where a checkpoint was written."""
        threads = checkpoint.facts.get("threads")
        if threads:
            torch.set_num_threads(threads)
        try:
            self.learner.model.load_state_dict(checkpoints.load_weights(checkpoint))
        except RuntimeError as error:
            raise CheckpointError(
                f"{checkpoint.path} does not fit the model of {self.run.config_file}: {error}.",
                "Put back the config that the run began with.",
            ) from None
        self.learner.optimizer.restore(checkpoints.load_optimizer(checkpoint))
        if self.learner.average is not None:
            self.learner.average.restore(checkpoints.load_weights(checkpoint, which="ema"))
        self.standing = _Standing.from_json(checkpoints.load_state(checkpoint))
        selection.drop_after(self.run, step=checkpoint.step)
        metrics.cut(self.run, step=checkpoint.step)

    def report(self) -> Report:
        """Say what is known before the next step, the time of a step measured."""
        model = self.learner.model
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        copies = 4 if self.learner.average is not None else 3  # weights, two moments, the moving average
        return Report(
            run=self.run.path,
            config=self.config,
            machine=self.learner.machine,
            facts=self.prepared.facts,
            n_parameters=n_parameters,
            total_steps=self.learner.total,
            seconds_a_step=self._time_a_step(),
            checkpoint_bytes=copies * count_bytes(model.state_dict()),
            step=self.standing.place.step,
            seconds=self.standing.seconds,
        )

    def go(self) -> Iterator[Event]:
        """Train to the end, or to a signal."""
        yield self.report()
        with Metrics(self.run) as log, stop_wishes() as wish:
            reason = self._reason_to_stop(wish)
            if self._validation_is_missing(reason) and not wish.signal:
                yield from self._validate(log)
                yield self._save(log)
                reason = self._reason_to_stop(wish)
            saved = time.monotonic()
            self.learner.model.train()
            stream = updates(self.learner, self.standing.place)
            while not reason:
                update = next(stream)
                self.standing.validation = None
                self.standing.seconds += update.seconds
                log.append({"kind": "train", **_record(update)})
                yield Updated(update=update, total_steps=self.learner.total)
                reason = self._reason_to_stop(wish)
                if not wish.signal and (self._validation_is_due() or reason):
                    yield from self._validate(log)
                    reason = reason or self._reason_to_stop(wish)
                elif not wish.signal and not self._save_is_due(time.monotonic() - saved):
                    continue
                yield self._save(log)
                saved = time.monotonic()
            if not wish.signal:
                yield from self._average(log)
        self._write_card()
        yield Finished(
            reason=reason,
            step=self.standing.place.step,
            seconds=self.standing.seconds,
            best=self.standing.best,
            signal=wish.signal,
        )

    def _total_steps(self) -> int:
        """The number of the last update, 0 if nobody knows: the schedule's end."""
        training = self.config.training
        ends = [training.steps, training.epochs * self.steps_an_epoch]
        return min((end for end in ends if end), default=0)

    def _validation_is_due(self) -> bool:
        step = self.standing.place.step
        every = self.config.training.validate_every or max(200, self.steps_an_epoch)
        return step > 0 and step % every == 0

    def _validation_is_missing(self, reason: str) -> bool:
        """A signal can come between an update and its validation, which the next process then makes up for."""
        step = self.standing.place.step
        return step > 0 and step not in self.standing.validated and (self._validation_is_due() or bool(reason))

    def _save_is_due(self, seconds: float) -> bool:
        training = self.config.training
        by_steps = training.save_every_steps and self.standing.place.step % training.save_every_steps == 0
        by_time = training.save_every_minutes and seconds >= 60 * training.save_every_minutes
        return bool(by_steps or by_time)

    def _reason_to_stop(self, wish: Wish) -> str:
        if wish.signal:
            return "stopped by a signal"
        standing = self.standing
        return reason_to_end(
            self.config.training,
            step=standing.place.step,
            epoch=standing.place.epoch,
            seconds=standing.seconds,
            worse=standing.worse,
        )

    def _validate(self, log: Metrics) -> Iterator[Event]:
        standing = self.standing
        with self.learner.average.in_place() if self.learner.average is not None else nullcontext():
            validation = self._score()
        record = {"step": standing.place.step, "loss": validation.loss, **validation.scores}
        best = validation.loss < standing.best.get("loss", math.inf)
        standing.validation = record
        standing.validated.append(standing.place.step)
        standing.worse = 0 if best else standing.worse + 1
        if best:
            standing.best = record
        log.append({"kind": "valid", "epoch": standing.place.epoch, **record})
        yield Validated(step=standing.place.step, validation=validation, best=best)

    def _score(self) -> Validation:
        model = self.learner.model
        model.eval()
        decoded = self.config.training.validate_decoded
        validation = self.prepared.task.validate(model, self.prepared.valid, self.config.decoding, n_decoded=decoded)
        model.train()
        return validation

    def _save(self, log: Metrics) -> Saved:
        """Write a checkpoint, and drop old ones once it is on the disk."""
        log.sync()
        standing, training = self.standing, self.config.training
        checkpoint = checkpoints.write(
            self.run,
            step=standing.place.step,
            model=self.learner.model.state_dict(),
            optimizer=self.learner.optimizer.state(),
            ema=None if self.learner.average is None else self.learner.average.average,
            state=standing.as_json(),
            facts={**runtime.facts(), "data": dict(self.prepared.hashes)},
        )
        selection.prune(
            self.run, keep=training.keep, protect=standing.validated[-training.average :] if training.average else ()
        )
        return Saved(step=checkpoint.step, path=checkpoint.path)

    def _average(self, log: Metrics) -> Iterator[Event]:
        """At the end of a run, average the weights of its last validations and score the result."""
        wanted = self.standing.validated[-self.config.training.average :] if self.config.training.average else []
        steps = [step for step in wanted if step in names.find(self.run)]
        scored = self._scored_average()
        if scored or len(steps) < 2:
            self.standing.best = scored or self.standing.best
            return
        checkpoint = averaging.average(self.run, steps=steps)
        self.learner.model.load_state_dict(checkpoints.load_weights(checkpoint))
        validation = self._score()
        record = {"step": self.standing.place.step, "loss": validation.loss, **validation.scores}
        log.append({"kind": "average", "steps": steps, **record})
        self.standing.best = record
        yield Noted(text=f"The average of {len(steps)} checkpoints is in {checkpoint.path.name}.")
        yield Validated(step=self.standing.place.step, validation=validation, best=True)

    def _scored_average(self) -> dict[str, Any]:
        """The scores of this step's average, if an earlier process lived until they were written down."""
        for record in metrics.read(self.run):
            if record["kind"] == "average" and record["step"] == self.standing.place.step:
                return {key: value for key, value in record.items() if key not in ("kind", "steps")}
        return {}

    def _write_card(self) -> None:
        n_parameters = sum(parameter.numel() for parameter in self.learner.model.parameters())
        card = model_card(
            self.run.path.name,
            self.config,
            facts=self.prepared.facts,
            best=self.standing.best,
            n_parameters=n_parameters,
        )
        write_atomically(self.run.card_file, card.encode())

    def _time_a_step(self) -> float:
        """Time the gradients of two updates that are thrown away; the first one warms up."""
        kept = [buffer.clone() for buffer in self.learner.model.buffers()]  # a batch norm counts every batch
        order = self.prepared.train.order(0)
        middle = order[len(order) // 2 :][: self.config.training.accumulate]
        self.learner.model.train()
        for _ in range(2):
            began = time.perf_counter()
            gradients(self.learner, middle, step=0)
            seconds = time.perf_counter() - began
        self.learner.optimizer.zero()
        for buffer, before in zip(self.learner.model.buffers(), kept, strict=True):
            buffer.copy_(before)
        return seconds


def _record(update: Any) -> dict[str, Any]:
    """What metrics.jsonl keeps of an update."""
    record = dataclasses.asdict(update)
    record.pop("epoch_ended")
    return {**record, "tokens_per_second": round(update.weight / update.seconds, 1)}
