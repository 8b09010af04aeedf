"""A training session, one process's part in a run: when to validate, save a checkpoint and stop."""

import dataclasses
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import takewhile
from typing import Any, cast

from torch import Tensor, nn

from regard import runtime
from regard.config import RunConfig
from regard.errors import CheckpointError
from regard.evaluation.baselines.verdict import ScoredBaseline, baseline_fact
from regard.evaluation.intervals import to_record
from regard.inspection.probes import ProbeRecorder
from regard.runs import averaging, checkpoints, metrics, names, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.disk import write_atomically
from regard.runs.folder import RunFolder
from regard.runs.metrics import Metrics
from regard.runs.ranking import rank_key
from regard.runs.tensors import count_bytes
from regard.tasks.task import Prepared, UsableTask, Validation
from regard.training import fine_tuning, intervals
from regard.training.card import model_card
from regard.training.distributed import World
from regard.training.ema import WeightEMA
from regard.training.events import Event, Finished, Noted, Report, Saved, Updated, Validated
from regard.training.loop import Trainer, Update, seconds_per_step, updates
from regard.training.optimizer import Optimizer, count_state
from regard.training.signals import StopSignal, catch_stop_signals
from regard.training.state import TrainingState, order_settings
from regard.training.stopping import N_OVERFITTED, End, is_overfitted, overfitting_note, reached_end
from regard.training.weight_transfer import WarmStart

SIGNAL = End("", "stopped by a signal")


class Session:
    """One process's part in a run."""

    def __init__(
        self,
        run: RunFolder,
        config: RunConfig,
        prepared: Prepared,
        model: nn.Module,
        machine: runtime.Machine,
        *,
        warm_start: WarmStart | None = None,
        baselines: Sequence[ScoredBaseline] = (),
        world: World | None = None,
    ) -> None:
        self.run = run
        self.config = config
        self.prepared = prepared
        self.baselines = tuple(baselines)
        self.world = world or World()
        self.loaded, facts = ((), ()) if warm_start is None else (warm_start.loaded, warm_start.facts)
        lr_factors = fine_tuning.prepare_fine_tuning(model, self.loaded, config.training)
        self.init_facts = (*facts, *fine_tuning.facts(model, lr_factors, config.training))
        self.average: dict[str, Any] = {}  # step, loss and scores of the averaged weights
        self.state = TrainingState(order=order_settings(config), best_by=config.training.best_by)
        self.probes = ProbeRecorder(
            run=run, task=cast(UsableTask[Any], prepared.task), valid=prepared.valid, settings=config.inspection
        )
        self.steps_per_epoch = intervals.steps_per_epoch(len(prepared.train.order(0)), config.training)
        self.trainer = make_trainer(
            config,
            prepared,
            model,
            machine,
            lr_factors=lr_factors,
            elapsed=lambda: self.state.seconds,
            world=self.world,
        )
        if config.training.ema:
            self.trainer = dataclasses.replace(self.trainer, ema=WeightEMA(model, config.training.ema))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume where a checkpoint was written, whose weights have the shapes of the model."""
        state = training_state(checkpoint)
        state.refuse_another_order(self.state.order, self.run)
        n_batches = len(self.prepared.train.order(state.cursor.epoch))
        if state.cursor.batches >= n_batches:
            raise CheckpointError(
                f"{checkpoint} is damaged: {state.cursor.batches:,} batches were used of an epoch that has {n_batches:,}.",
                "Delete that checkpoint: the run then resumes from the one before it.",
            )
        self.trainer.model.load_state_dict(checkpoints.load_weights(checkpoint))
        optimizer = checkpoints.load_optimizer(checkpoint)
        if not optimizer and state.cursor.skipped < state.cursor.step and self.trainer.optimizer.named:
            raise CheckpointError(
                f"{checkpoint} is damaged: its optimizer has no state.",
                "Resume with the model that wrote the checkpoint.",
            )
        self.trainer.optimizer.restore(optimizer)
        if self.trainer.ema is not None:
            self.trainer.ema.restore(checkpoints.load_weights(checkpoint, which="ema"))
        self.state = dataclasses.replace(state, order=self.state.order)
        selection.drop_after(self.run, step=checkpoint.step)
        metrics.truncate(self.run, step=checkpoint.step, validated=state.validation is not None)
        self._prune()  # what a kill right behind the last save left

    def report(self) -> Report:
        """Say what is known before the next step, the time of a step measured."""
        spec = self.prepared.task.spec
        model = self.trainer.model
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        weights = count_bytes(model.state_dict()) * (1 if self.trainer.ema is None else 2)
        return Report(
            run=self.run.path,
            config=self.config,
            machine=self.trainer.machine,
            facts=(*self.prepared.facts, *self._baseline_facts(), *self.init_facts, *self._warnings()),
            n_parameters=n_parameters,
            total_steps=self.trainer.total,
            seconds_per_step=seconds_per_step(self.trainer),
            checkpoint_bytes=weights + 4 * count_state(model, self.config.training.optimizer),
            step=self.state.cursor.step,
            seconds=self.state.seconds,
            example=self.prepared.example,
            throughput_unit=self.prepared.throughput_unit or spec.throughput_unit,
            batch_unit=self.prepared.batch_unit or spec.batch_unit,
        )

    def train(self) -> Iterator[Event]:
        """Train to the end, or to a signal."""
        begun_at = self.state.cursor.step
        yield self.report()
        self.probes.begin(self.state.cursor.step)
        with Metrics(self.run) as log, catch_stop_signals() as stop:
            end = self._end(stop.number)
            if self._validation_is_missing(end) and end != SIGNAL:
                yield from self._validate(log)
                yield self._save(log)
                end = self._end(stop.number)
            if end is None:
                end = yield from self._train_until_stopped(log, stop)
            if end != SIGNAL:
                yield from self._average(log)
        self._write_card()
        state = self.state
        signal = stop.number if end == SIGNAL else 0
        self.world.end(signal)
        if self.world.ranks.size > 1 and state.cursor.step > begun_at:
            yield Noted(text=self._told_waiting())
        yield Finished(
            reason=end.reason,
            limit=end.limit,
            step=state.cursor.step,
            seconds=state.seconds,
            best=state.best,
            average=self.average,
            baselines=self.baselines,
            signal=signal,
        )

    def _told_waiting(self) -> str:
        waited, exchanged = self.world.waiting()
        return (
            f"{self.world.ranks.size:,} processes spent {waited:.1%} of the time of an update waiting for one another, and "
            f"{exchanged:.1%} adding up gradients."
        )

    def _train_until_stopped(self, log: Metrics, stop: StopSignal) -> Generator[Event, None, End]:
        """Make updates, with validations and saves between them, until there is a reason to stop; return it."""
        saved = time.monotonic()
        self.trainer.model.train()
        yield from self._record_probes()  # of the network before its first update; of a step that a kill left without
        for update in updates(self.trainer, self.state.cursor):
            self.state.validation = None
            self.state.seconds += update.seconds
            for record in _records(update):
                log.append(record)
            yield Updated(update=update, total_steps=self.trainer.total)
            end = self._end(stop.number)
            validate = end != SIGNAL and (self._validation_is_due() or end is not None)
            if validate:
                yield from self._validate(log)
                end = end or self._end(stop.number)  # it may end the patience
            yield from self._record_probes(ends=end is not None and end != SIGNAL)
            seconds = time.monotonic() - saved
            if validate or end or intervals.save_is_due(self.config.training, step=update.step, seconds=seconds):
                yield self._save(log)
                saved = time.monotonic()
            if end:
                return end
        raise AssertionError("updates never end by themselves")

    def _validation_is_due(self) -> bool:
        step = self.state.cursor.step
        return intervals.validation_is_due(self.config.training, step=step, steps_per_epoch=self.steps_per_epoch)

    def _validation_is_missing(self, end: End | None) -> bool:
        """A signal can come between an update and its validation, which the next process then makes up for."""
        step = self.state.cursor.step
        return step > 0 and step not in self.state.validated and (self._validation_is_due() or end is not None)

    def _end(self, signal: int) -> End | None:
        """Say why to stop now, if at all. A signal may come at any instant: who decides by it asks once and keeps it."""
        if signal:
            return SIGNAL
        state = self.state
        return reached_end(
            self.config.training,
            step=state.cursor.step,
            epoch=state.cursor.epoch,
            seconds=state.seconds,
            not_improved=state.not_improved,
        )

    def _validate(self, log: Metrics) -> Iterator[Event]:
        state, began = self.state, time.monotonic()
        with self.trainer.ema.swapped_in() if self.trainer.ema is not None else nullcontext():
            validation = self._score()
        record = _scores(state.cursor.step, validation)
        best = self._is_best(record)
        state.validation = record
        state.validated.append(state.cursor.step)
        state.not_improved = 0 if best else state.not_improved + 1
        if best:
            state.best = record
        state.seconds += time.monotonic() - began
        log.append({"kind": "valid", "epoch": state.cursor.epoch, **record})
        yield Validated(step=state.cursor.step, validation=validation, best=best)
        yield from self._overfitting(validation.loss)

    def _record_probes(self, *, ends: bool = False) -> Iterator[Noted]:
        """Trace the probe examples where that is due, with the weights that a validation scores."""
        step = self.state.cursor.step
        if not self.probes.is_due(step, ends=ends):
            return
        began = time.monotonic()
        with self.trainer.ema.swapped_in() if self.trainer.ema is not None else nullcontext():
            notes = self.probes.record(self.trainer.model, step)
        self.state.seconds += time.monotonic() - began
        yield from (Noted(text=note) for note in notes)

    def _overfitting(self, loss: float) -> Iterator[Noted]:
        """Follow the validation loss; say so once when it has risen."""
        state = self.state
        lowest = state.lowest.get("loss", math.inf)
        if loss < lowest:
            state.lowest = {"step": state.cursor.step, "loss": loss}
        state.overfitted = state.overfitted + 1 if is_overfitted(loss, lowest=lowest) else 0
        if state.overfitted == N_OVERFITTED:
            yield Noted(text=overfitting_note(loss=loss, lowest=lowest, step=state.lowest["step"]))

    def _is_best(self, record: Mapping[str, Any]) -> bool:
        best_by = self.state.best_by
        return rank_key(record, best_by) > rank_key(self.state.best, best_by)

    def _score(self) -> Validation:
        model = self.trainer.model
        model.eval()
        decoded = self.config.training.validate_samples
        validation = self.prepared.task.validate(model, self.prepared.valid, self.config.decoding, n_samples=decoded)
        model.train()
        return validation

    def _save(self, log: Metrics) -> Saved:
        """Write a checkpoint, and drop old ones once it is on the disk."""
        log.sync()
        state = self.state
        checkpoint = checkpoints.write(
            self.run,
            step=state.cursor.step,
            model=self.trainer.model.state_dict(),
            optimizer=self.trainer.optimizer.state(),
            ema=None if self.trainer.ema is None else self.trainer.ema.average,
            state=state.as_json(),
            facts={**runtime.facts(), "data": dict(self.prepared.hashes)},
        )
        self._prune()
        return Saved(step=checkpoint.step, path=checkpoint.path)

    def _prune(self) -> None:
        """Delete old checkpoints, but for those that are to be averaged."""
        training, validated = self.config.training, self.state.validated
        selection.prune(
            self.run, keep=training.keep, protect=validated[-training.average :] if training.average else ()
        )

    def _average(self, log: Metrics) -> Iterator[Event]:
        """At the end of a run, average the weights of its last validations and score the result."""
        wanted = self.state.validated[-self.config.training.average :] if self.config.training.average else []
        steps = [step for step in wanted if step in names.find(self.run)]
        if self._is_averaged():
            self.average = self._average_scores()
            return
        if len(steps) < 2:
            return
        validations: list[Validation] = []

        def score(weights: Mapping[str, Tensor]) -> Mapping[str, Any]:
            self.trainer.model.load_state_dict(weights)
            validations.append(self._score())
            return _scores(self.state.cursor.step, validations[0])

        averaging.average(self.run, steps=steps, score=score)
        self.average = _scores(self.state.cursor.step, validations[0])
        log.append({"kind": "average", "steps": steps, **self.average})
        best = self._is_best(self.average)
        yield Validated(step=self.state.cursor.step, validation=validations[0], best=best, averaged=tuple(steps))

    def _is_averaged(self) -> bool:
        """Tell whether an earlier process made this step's average, and lived until that was written down."""
        step = self.state.cursor.step
        own = takewhile(lambda record: record["step"] == step, metrics.read_from_end(self.run))
        return any(record["kind"] == "average" for record in own)

    def _average_scores(self) -> dict[str, Any]:
        """The scores of this step's average; none if another has taken its place since, which nobody validated."""
        path = names.find(self.run, kind="average").get(self.state.cursor.step)
        try:
            return checkpoints.load_state(checkpoints.verify(path)).get("validation") or {} if path else {}
        except CheckpointError:
            return {}

    def _write_card(self) -> None:
        n_parameters = sum(parameter.numel() for parameter in self.trainer.model.parameters())
        card = model_card(
            self.run.path.name,
            self.config,
            facts=self.prepared.facts,
            best=self.state.best,
            average=self.average,
            n_parameters=n_parameters,
            init_facts=self.init_facts,
            example=self.prepared.example,
            baselines=self.baselines,
        )
        write_atomically(self.run.card_file, card.encode())

    def _baseline_facts(self) -> list[tuple[str, str]]:
        """What a model should beat."""
        fact = baseline_fact(self.baselines, best_by=self.config.training.best_by)
        return [("baseline", fact)] if fact else []

    def _warnings(self) -> list[tuple[str, str]]:
        """What a user should know of the settings before the first step."""
        total, warmup = self.trainer.total, self.config.training.warmup
        if not total or warmup < total:
            return []
        reached = f"the learning rate reaches {total / warmup:.0%} of its peak and never decays"
        remedy = "train longer, or lower training.warmup"
        return [
            ("note", f"training.warmup ({warmup:,.0f}) is not below the run's {total:,} steps: {reached}; {remedy}")
        ]


def make_trainer(
    config: RunConfig,
    prepared: Prepared,
    model: nn.Module,
    machine: runtime.Machine,
    *,
    lr_factors: Mapping[str, float],
    elapsed: Callable[[], float] = lambda: 0.0,
    world: World,
) -> Trainer:
    """Put together what takes part in an update, on any rank; a moving average is only the leader's."""
    world.synchronise(model, prepared.train)
    return Trainer(
        model=model,
        task=prepared.task,
        examples=prepared.train,
        optimizer=Optimizer(model, config.training, lr_factors=lr_factors),
        ema=None,
        config=config.training,
        machine=machine,
        seed=config.seed,
        total=intervals.last_step(
            config.training, steps_in_epochs=intervals.steps_in_epochs(prepared.train, config.training)
        ),
        elapsed=elapsed,
        workers=config.runtime.workers,
        world=world,
    )


def training_state(checkpoint: Checkpoint) -> TrainingState:
    """Read the state of a checkpoint; CheckpointError where it is not such as training writes."""
    with checkpoints.reading(checkpoint.path / names.STATE, "a training state"):
        state = TrainingState.from_json(checkpoints.load_state(checkpoint))
        if state.cursor.step != checkpoint.step:
            raise ValueError(f"it is of step {state.cursor.step}")
        return state


def _scores(step: int, validation: Validation) -> dict[str, Any]:
    """What is recorded of a validation; a NaN or infinite score, as a perplexity may be, is left out."""
    scores = {name: value for name, value in validation.scores.items() if math.isfinite(value)}
    known = {name: interval for name, interval in validation.intervals.items() if name in scores}
    return {"step": step, "loss": validation.loss, **scores, **to_record(known)}


def _records(update: Update) -> Iterator[dict[str, Any]]:
    """What metrics.jsonl keeps of an update."""
    record = dataclasses.asdict(update)
    record.pop("epoch_ended")
    norms = record.pop("layer_norms")
    yield {"kind": "train", **record, "per_second": round(update.weight / update.seconds, 1)}
    if norms:
        yield {"kind": "gradients", "step": update.step, "norms": norms}
