"""A training session: what it reports, when it validates, saves and stops, and how it ends when something is wrong."""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.training.conftest import at_step, kinds, of

from regard import config as configuration
from regard import runtime
from regard.config import RunConfig
from regard.data import batching
from regard.errors import CheckpointError, TrainingError, UsageError
from regard.models.presets import model_config
from regard.models.transformer import Transformer
from regard.runs import averaging, checkpoints, metrics, selection, tensors
from regard.runs.folder import Reference, RunFolder
from regard.tasks.task import Validation
from regard.tasks.translation.task import TranslationTask
from regard.training import session
from regard.training.events import Event, Finished, Report, Saved, Updated, Validated
from regard.training.run import resume, train
from regard.training.summary import summarise

MakeConfig = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]


def test_a_run_tells_what_it_does_in_order(finished: tuple[Path, list[Event]]) -> None:
    _, events = finished
    assert kinds(events) == [
        "Report",
        *["Updated"] * 4,
        "Validated",
        "Saved",
        *["Updated"] * 2,
        "Validated",
        "Saved",
        "Validated",
        "Finished",
    ]
    assert [event.update.step for event in of(Updated, events)] == [1, 2, 3, 4, 5, 6]
    assert {event.total_steps for event in of(Updated, events)} == {6}
    assert [event.step for event in of(Saved, events)] == [4, 6]
    assert [event.averaged for event in of(Validated, events)] == [(), (), (4, 6)]


def test_the_report_before_the_first_step(finished: tuple[Path, list[Event]]) -> None:
    path, (report, *_) = finished
    assert report.run == path
    assert report.step == 0
    assert report.total_steps == 6
    assert report.seconds_per_step > 0
    model = Transformer(model_config(configuration.read(path / "config.toml").model, origin="test"))
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    assert report.n_parameters == n_parameters
    # Weights and two moments: the two files of a checkpoint, but for their headers and Adam's counts.
    (saved,) = path.glob("checkpoints/step-00000006")
    written = sum((saved / name).stat().st_size for name in ("model.safetensors", "optimizer.safetensors"))
    assert report.checkpoint_bytes == pytest.approx(written, rel=0.2)
    assert report.checkpoint_bytes == 3 * 4 * n_parameters
    facts = dict(report.facts)
    assert facts["training"].endswith(" pairs")
    assert facts["validation"].endswith(" held out by source sentence")
    assert report.config.model.fields["d_model"] == 16


def test_the_finish_has_the_scores_of_the_best_and_of_the_average(finished: tuple[Path, list[Event]]) -> None:
    _, events = finished
    validations = of(Validated, events)
    *_, end = events
    assert end.reason == "6 steps are done"
    assert end.step == 6
    assert end.signal == 0
    assert end.seconds > sum(event.update.seconds for event in of(Updated, events)), "validations take time too"
    assert end.best["loss"] == min(one.validation.loss for one in validations[:-1])
    assert end.average["loss"] == validations[-1].validation.loss
    assert set(end.best) == set(end.average) == {"step", "loss", "perplexity", "bleu", "chrf"}
    assert end.best["perplexity"] == pytest.approx(math.exp(end.best["loss"]))
    assert len(validations[0].validation.samples) == 3


def test_metrics_hold_what_was_told(finished: tuple[Path, list[Event]]) -> None:
    path, events = finished
    found = metrics.read(RunFolder(path))
    trained = [record for record in found if record["kind"] == "train"]
    for record, event in zip(trained, of(Updated, events), strict=True):
        update = event.update
        assert record["step"] == update.step
        assert record["loss"] == update.loss
        assert record["learning_rate"] == update.learning_rate
        assert record["per_second"] == pytest.approx(update.weight / update.seconds, abs=0.1)
    scored = [record for record in found if record["kind"] in ("valid", "average")]
    assert [(record["kind"], record["step"]) for record in scored] == [("valid", 4), ("valid", 6), ("average", 6)]
    for record, event in zip(scored, of(Validated, events), strict=True):
        assert record["loss"] == event.validation.loss
        assert record["bleu"] == event.validation.scores["bleu"]


def test_the_average_is_the_mean_of_the_last_validations(finished: tuple[Path, list[Event]]) -> None:
    path, _ = finished
    load = {
        name: checkpoints.load_weights(checkpoints.verify(path / "checkpoints" / name))
        for name in ("step-00000004", "step-00000006", "average-00000006")
    }
    for name, tensor in load["average-00000006"].items():
        mean = (load["step-00000004"][name].double() + load["step-00000006"][name].double()) / 2
        assert torch.equal(tensor, mean.float())


def test_a_save_that_fails_leaves_no_thread(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise CheckpointError("It cannot be written.", "Try again.")

    monkeypatch.setattr(checkpoints, "write", fail)
    with pytest.raises(CheckpointError) as caught:
        drive(train(make_config({"runtime.workers": 2}), tmp_path / "run"))
    assert caught.value.problem == "It cannot be written."
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def test_a_full_disk_ends_the_run_and_leaves_the_earlier_checkpoint(
    make_config: MakeConfig,
    drive: Drive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tensors_of: Callable[[Path], dict[str, bytes]],
) -> None:
    path = tmp_path / "run"
    config = make_config()
    with monkeypatch.context() as patch, pytest.raises(TrainingError) as caught:
        for event in train(config, path):
            if isinstance(event, Saved):
                patch.setattr("regard.runs.disk.shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    assert caught.value.problem == f"The disk is full: 1 MB needed, 0 MB free in {path}."
    checkpoint, notes = selection.newest_intact(RunFolder(path))
    assert (checkpoint.step, notes) == (4, [])
    assert not list(path.rglob(".tmp-*"))
    drive(resume(path))
    drive(train(config, tmp_path / "whole"))
    assert tensors_of(path) == tensors_of(tmp_path / "whole")


def break_loss(monkeypatch: pytest.MonkeyPatch, broken: Callable[[], bool]) -> None:
    """Let the loss be no number while `broken` is true."""
    original = TranslationTask.loss

    def loss(self: TranslationTask, model: Any, batch: Any, *, smoothing: float) -> Any:
        total, weight = original(self, model, batch, smoothing=smoothing)
        return total * math.nan if broken() else total, weight

    monkeypatch.setattr(TranslationTask, "loss", loss)


def test_three_losses_in_a_row_that_are_no_numbers_end_the_run(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: tuple[str, str], drive: Drive
) -> None:
    step = 0
    break_loss(monkeypatch, lambda: step >= 4)
    config = make_config({"training.steps": 20, "training.validate_every": 4, "training.accumulate": 2})
    seen = []
    with pytest.raises(TrainingError) as caught:
        for event in train(config, tmp_path / "run"):
            seen.append(event)
            # Only after the validation of step 4: that one is sound.
            step = event.step if isinstance(event, Saved) else step
    assert (
        "Loss or gradient was NaN or infinite for 3 consecutive steps, the last at step 7 (read from "
        in caught.value.problem
    )
    assert f"{corpus[0]}:" in caught.value.problem
    assert [event.update.skipped for event in of(Updated, seen)] == [False] * 4 + [True] * 2
    checkpoint, _ = selection.newest_intact(RunFolder(tmp_path / "run"))
    assert checkpoint.step == 4
    assert [record["loss"] for record in metrics.read(RunFolder(tmp_path / "run"))][-2:] == [None, None]
    step = 0
    events = drive(resume(tmp_path / "run"))
    assert events[0].step == 4
    assert events[-1].step == 20


def test_the_lines_are_named_where_they_lie_now(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: tuple[str, str]
) -> None:
    # The encoded corpus comes from the cache, where another folder's copy of the same text may have put it.
    files = [shutil.copy(file, tmp_path) for file in corpus]
    break_loss(monkeypatch, lambda: True)
    with pytest.raises(TrainingError) as caught:
        list(train(make_config({"data.train": [str(file) for file in files]}), tmp_path / "run"))
    lines = caught.value.problem.partition("(read from ")[2].removesuffix(").").replace(" and ", ", ").split(", ")
    assert all(line.startswith(f"{files[0]}:") for line in lines if "more" not in line)


def test_weights_that_are_no_numbers_are_not_written(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = TranslationTask.validate

    def validate(self: TranslationTask, model: Any, *rest: Any, **options: Any) -> Validation:
        found = original(self, model, *rest, **options)
        with torch.no_grad():
            next(model.parameters())[0, 0] = math.nan
        return found

    monkeypatch.setattr(TranslationTask, "validate", validate)
    with pytest.raises(TrainingError, match=r"Not saving: .* contains NaN or Inf"):
        list(train(make_config(), tmp_path / "run"))
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_a_signal_at_the_last_step_leaves_the_last_validation_to_the_next_process(
    make_config: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    config = make_config({"training.steps": 6, "training.average": 2})  # no validation is due at 6 but the last
    for event in train(config, tmp_path / "run"):
        if at_step(6)(event):
            os.kill(os.getpid(), signal.SIGINT)
    assert isinstance(event, Finished)
    assert event.signal == signal.SIGINT
    assert kinds(drive(resume(tmp_path / "run"))) == ["Report", "Validated", "Saved", "Validated", "Finished"]


def test_checkpoints_of_another_network_are_refused(
    finished: tuple[Path, list[Event]], drive: Drive, tmp_path: Path
) -> None:
    path, _ = finished
    shutil.copytree(path, tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    file.write_text(file.read_text().replace("d_ff = 32", "d_ff = 48"))
    with pytest.raises(CheckpointError) as caught:
        drive(resume(tmp_path / "run"))
    assert caught.value.problem.startswith(
        f"{tmp_path / 'run' / 'checkpoints' / 'step-00000006'} does not fit the model of the run's config.toml: "
    )
    assert caught.value.problem.endswith("is of shape (16, 32) in the checkpoint and of shape (16, 48) in the model.")
    assert caught.value.remedy == "Put back the config that the run was trained with."


def test_old_checkpoints_go_and_the_best_and_the_averaged_stay(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 1.0, 2.0, 2.5, 4.0, 5.0])
    monkeypatch.setattr(TranslationTask, "validate", lambda *rest, **options: Validation(loss=next(losses), scores={}))
    config = make_config(
        {"training.steps": 10, "training.validate_every": 2, "training.save_every_steps": 1, "training.keep": 1}
    )
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, average=2))
    events = drive(train(config, tmp_path / "run"))
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["average-00000010", "step-00000004", "step-00000008", "step-00000010"]
    assert [event.best for event in of(Validated, events)][:5] == [True, True, False, False, False]


def test_patience_counts_validations_without_a_better_loss(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 1.9, 1.9, 2.0])
    monkeypatch.setattr(TranslationTask, "validate", lambda *rest, **options: Validation(loss=next(losses), scores={}))
    config = make_config({"training.steps": 100, "training.validate_every": 1, "training.patience": 2})
    events = drive(train(config, tmp_path / "run"))
    assert events[-1].reason == "early stopping: no better loss in 2 validations"
    assert events[-1].step == 6
    assert events[-1].best == {"step": 4, "loss": 1.9}
    assert [event.best for event in of(Validated, events)] == [True, True, False, True, False, False]


def test_the_best_is_chosen_by_the_score_that_is_asked_for(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([(3.0, 10.0), (2.0, 30.0), (1.0, 20.0), (0.5, 25.0)])

    def validate(*rest: object, **options: object) -> Validation:
        loss, bleu = next(found)
        return Validation(loss=loss, scores={"bleu": bleu})

    monkeypatch.setattr(TranslationTask, "validate", validate)
    config = make_config(
        {"training.steps": 100, "training.validate_every": 1, "training.patience": 2, "training.best_by": "bleu"}
    )
    events = drive(train(config, tmp_path / "run"))
    assert events[-1].reason == "early stopping: no better BLEU in 2 validations"
    assert events[-1].best == {"step": 2, "loss": 2.0, "bleu": 30.0}
    assert [event.best for event in of(Validated, events)] == [True, True, False, False]
    assert selection.select(Reference.parse(f"{tmp_path / 'run'}@best"))[0].step == 2
    with pytest.raises(UsageError, match=r"training\.best_by cannot change on resume"):
        drive(resume(tmp_path / "run", settings={"training.best_by": "loss"}))


def test_epochs_wait_for_the_least_steps(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    settings = {"training.steps": 0, "training.epochs": 1, "training.min_steps": 30}
    events = drive(train(make_config(settings), tmp_path / "run"))
    assert len({event.update.epoch for event in of(Updated, events)}) > 1
    assert (events[0].total_steps, events[-1].step, events[-1].reason) == (30, 30, "1 epochs and 30 steps are done")


def test_epochs_of_different_numbers_of_batches_end_where_the_schedule_does(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_MIXING", 2.0)  # short texts change places as widely as long ones do
    settings = {"training.steps": 0, "training.epochs": 5, "training.schedule": "linear", "training.warmup": 4}
    report, *events = drive(train(make_config(settings), tmp_path / "run"))
    updates = [event.update for event in of(Updated, events)]
    per_epoch = Counter(update.epoch for update in updates)
    assert len(set(per_epoch.values())) > 1
    assert isinstance(report, Report)
    assert report.total_steps == len(updates)
    assert updates[-1].learning_rate == pytest.approx(0.01 / (len(updates) + 1 - 4))


def test_epochs_and_minutes_end_a_run(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    by_epochs = drive(train(make_config({"training.steps": 0, "training.epochs": 2}), tmp_path / "epochs"))
    assert by_epochs[-1].reason == "2 epochs are done"
    assert [event.update.epoch for event in of(Updated, by_epochs)][-1] == 1
    assert of(Updated, by_epochs)[-1].update.epoch_ended
    by_minutes = drive(train(make_config({"training.steps": 0, "training.minutes": 1e-9}), tmp_path / "minutes"))
    assert by_minutes[-1].reason == "1e-09 minutes are over"
    assert by_minutes[-1].step == 1
    assert by_minutes[0].total_steps == 0


def test_time_saves_too(make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 100_000, 40))  # every look at the clock is 40 seconds later
    monkeypatch.setattr("regard.training.session.time.monotonic", lambda: float(next(now)))
    config = make_config({"training.save_every_minutes": 1.0, "training.validate_every": 100, "training.steps": 7})
    saved = [event.step for event in of(Saved, drive(train(config, tmp_path / "run")))]
    assert 2 in saved
    assert 1 not in saved
    assert saved[-1] == 7


def test_validation_sees_the_moving_average_and_training_goes_on_without_it(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, torch.Tensor]] = []
    modes: list[bool] = []

    def validate(self: Any, model: Any, *rest: Any, **options: Any) -> Validation:
        seen.append({name: parameter.detach().clone() for name, parameter in model.named_parameters()})
        modes.append(model.training)
        return Validation(loss=1.0, scores={})

    monkeypatch.setattr(TranslationTask, "validate", validate)
    drive(train(make_config({"training.ema": 0.9, "training.steps": 4}), tmp_path / "run"))
    checkpoint, _ = selection.newest_intact(RunFolder(tmp_path / "run"))
    average = checkpoints.load_weights(checkpoint, which="ema")
    weights = checkpoints.load_weights(checkpoint)
    assert modes == [False]
    assert all(torch.equal(tensor, average[name]) for name, tensor in seen[0].items())
    assert not any(torch.equal(tensor, weights[name]) for name, tensor in average.items())


def test_a_warm_up_that_never_ends_is_told(make_config: MakeConfig, tmp_path: Path) -> None:
    settings = {"training.warmup": 50, "training.steps": 50}
    report = next(train(make_config(settings), tmp_path / "run", dry_run=True))
    assert dict(report.facts)["note"] == (
        "training.warmup (50) is not below the run's 50 steps: the learning rate reaches 100% of its peak and never decays; "
        "train longer, or lower training.warmup"
    )
    longer = next(train(make_config({**settings, "training.steps": 51}), tmp_path / "run", dry_run=True))
    assert "note" not in dict(longer.facts)


def test_a_signal_between_two_looks_does_not_skip_a_validation(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late:
        """A wish that comes with the second look after the fourth update."""

        looks = 0
        at = 0

        @property
        def number(self) -> int:
            self.looks += 1
            return 15 if self.at and self.looks > self.at + 1 else 0

    wish = Late()

    @contextlib.contextmanager
    def wishes() -> Iterator[Late]:
        yield wish

    monkeypatch.setattr(session, "catch_stop_signals", wishes)
    events = []
    for event in train(make_config({"training.steps": 9, "training.validate_every": 4}), tmp_path / "run"):
        events.append(event)
        if isinstance(event, Updated) and event.update.step == 4:
            wish.at = wish.looks
    assert [event.step for event in of(Validated, events)] == [4]
    assert events[-1].signal == 15


def test_a_score_that_is_no_number_is_not_written_down(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def validate(self: TranslationTask, *arguments: Any, **options: Any) -> Validation:
        return Validation(loss=800.0, scores={"perplexity": math.inf, "bleu": 1.0})

    monkeypatch.setattr(TranslationTask, "validate", validate)
    *_, end = drive(train(make_config({"training.steps": 2}), tmp_path / "run"))
    assert end.best == {"step": 2, "loss": 800.0, "bleu": 1.0}
    drive(resume(tmp_path / "run"))
    assert "loss 800, bleu 1" in (tmp_path / "run" / "README.md").read_text()


def test_the_interval_of_a_score_is_kept_with_it(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def validate(self: TranslationTask, *arguments: Any, **options: Any) -> Validation:
        scores = {"accuracy": 50.0, "bleu": math.nan}
        return Validation(loss=1.0, scores=scores, intervals={"accuracy": (40.0, 60.0), "bleu": (0.0, 1.0)})

    monkeypatch.setattr(TranslationTask, "validate", validate)
    *_, end = drive(train(make_config({"training.steps": 2}), tmp_path / "run"))
    kept = {"step": 2, "loss": 1.0, "accuracy": 50.0, "accuracy_low": 40.0, "accuracy_high": 60.0}
    assert end.best == kept
    assert summarise(RunFolder.open(tmp_path / "run")).best == kept
    assert "accuracy 50 (95 % interval 40 to 60)" in (tmp_path / "run" / "README.md").read_text()


def test_facts_of_the_machine_are_in_the_manifest(finished: tuple[Path, list[Event]]) -> None:
    path, _ = finished
    checkpoint, _ = selection.newest_intact(RunFolder(path))
    assert {**runtime.facts(), "threads": 1}.items() <= dict(checkpoint.facts).items()


# a folder that is not what it was


@pytest.mark.parametrize("fate", ["moved", "deleted"])
def test_a_run_that_is_moved_or_deleted_stops_at_its_next_save_and_is_not_made_again(
    make_config: MakeConfig, tmp_path: Path, fate: str
) -> None:
    path = tmp_path / "run"
    events = train(make_config({"training.steps": 8, "training.validate_every": 4}), path)
    with pytest.raises(TrainingError) as caught:
        for event in events:
            if isinstance(event, Saved):
                shutil.rmtree(path) if fate == "deleted" else path.rename(tmp_path / "elsewhere")
    assert caught.value.problem == f"{path} was moved or deleted while it was being trained."
    assert not path.exists()


def test_a_run_that_was_moved_goes_on_elsewhere(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    path = tmp_path / "run"
    events = train(make_config({"training.steps": 8, "training.validate_every": 4}), path)
    with pytest.raises(TrainingError):
        for event in events:
            if isinstance(event, Saved):
                path.rename(tmp_path / "elsewhere")
    ended = drive(resume(tmp_path / "elsewhere"))
    assert [event.update.step for event in of(Updated, ended)] == [5, 6, 7, 8]


def seal(checkpoint: Path) -> None:
    """Write the manifest of a checkpoint anew, as if its files were what was written."""
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    for name in manifest["files"]:
        size = (checkpoint / name).stat().st_size
        manifest["files"][name] = {"size": size, "sha256": checkpoints.sha256(checkpoint / name)}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def test_a_state_that_training_never_writes_is_passed_over(
    finished: tuple[Path, list[Event]], drive: Drive, tmp_path: Path
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "run")
    newest = path / "checkpoints" / "step-00000006"
    state = json.loads((newest / "state.json").read_bytes())
    state["place"]["step"] = 5
    (newest / "state.json").write_text(json.dumps(state))
    seal(newest)
    events = drive(resume(path))
    assert kinds(events)[:2] == ["Noted", "Report"]
    assert events[0].text == (
        f"step-00000006 is skipped. The checkpoint is damaged: {newest}/state.json is not a training state (it is of "
        "step 5)."
    )
    assert [event.update.step for event in of(Updated, events)] == [5, 6]


def test_a_cursor_beyond_the_data_and_an_optimizer_without_a_state_are_refused(
    finished: tuple[Path, list[Event]], drive: Drive, tmp_path: Path
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "run")
    newest = path / "checkpoints" / "step-00000006"
    before = (newest / "state.json").read_bytes()
    state = json.loads(before)
    state["place"]["batches"] = 10**12
    (newest / "state.json").write_text(json.dumps(state))
    seal(newest)
    with pytest.raises(CheckpointError, match="1,000,000,000,000 batches were used of an epoch that has "):
        drive(resume(path))
    (newest / "state.json").write_bytes(before)
    tensors.save(newest / "optimizer.safetensors", {})
    seal(newest)
    with pytest.raises(CheckpointError, match="its optimizer has no state"):
        drive(resume(path))


def test_resuming_keeps_an_average_that_took_the_place_of_its_own(
    finished: tuple[Path, list[Event]], drive: Drive, tmp_path: Path
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "run")
    assert drive(resume(path))[-1].average["loss"] > 0
    averaging.average(RunFolder(path), steps=[6])
    assert drive(resume(path))[-1].average == {}
    assert selection.select(Reference.parse(f"{path}@average"))[0].facts["averaged"] == [6]
