"""The assembler: what a run writes and tells, what it refuses, and how it ends when something is wrong."""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.conftest import draw_stripes

from regard import config as configuration
from regard import runtime
from regard.config import RunConfig
from regard.data.text.tokenizer_training import learn
from regard.errors import CheckpointError, ConfigError, DataError, LockedError, RunError, TrainingError, UsageError
from regard.models.presets import model_config
from regard.models.transformer import Transformer
from regard.runs import checkpoints, metrics, selection
from regard.runs.folder import Reference, RunFolder
from regard.runs.lock import locked
from regard.tasks.task import Validation
from regard.tasks.translation.task import TranslationTask
from regard.training import session
from regard.training.events import Event, Finished, Report, Saved, Updated, Validated
from regard.training.run import check, resume, train

MakeConfig = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def at_step(step: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Updated) and event.update.step == step


@pytest.fixture(scope="module")
def finished(
    make_config: MakeConfig, drive: Drive, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Event]]:
    """A run of six steps, validated at four and at its end. To be read, not changed."""
    path = tmp_path_factory.mktemp("finished") / "run"
    return path, drive(train(make_config({"training.steps": 6, "training.average": 2}), path))


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


def test_a_run_is_a_folder_complete_in_itself(finished: tuple[Path, list[Event]], corpus: tuple[str, str]) -> None:
    path, events = finished
    config = configuration.read(path / "config.toml")
    assert config == events[0].config, "what was resolved is what is written"
    assert config.runtime.threads == 1
    assert config.model.fields["source_vocab"] == 320
    assert (path / "vocabulary" / "shared.json").is_file()
    task = json.loads((path / "task.json").read_text())
    assert task["task"] == "translate"
    assert list(task["files"]) == list(corpus)
    card = (path / "README.md").read_text()
    assert card.startswith("# run\n")
    assert "- the best single checkpoint, step 6: loss " in card
    assert not [file for file in path.rglob("*") if file.suffix in (".pkl", ".pt", ".bin", ".pth")]
    manifest = json.loads((path / "checkpoints" / "step-00000006" / "manifest.json").read_text())
    assert manifest["facts"]["threads"] == 1
    assert manifest["facts"]["data"] == task["files"]


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


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    finished: tuple[Path, list[Event]],
    make_config: MakeConfig,
    drive: Drive,
    tmp_path: Path,
    tensors_of: Callable[[Path], dict[str, bytes]],
) -> None:
    path, _ = finished
    config = configuration.read(path / "config.toml")
    drive(train(config, tmp_path / "again", vocabulary=path / "vocabulary"))
    drive(train(dataclasses.replace(config, seed=2), tmp_path / "other", vocabulary=path / "vocabulary"))
    assert tensors_of(tmp_path / "again") == tensors_of(path), "config.toml repeats the run"
    assert tensors_of(tmp_path / "other") != tensors_of(path)


def test_a_dry_run_reports_and_leaves_nothing(make_config: MakeConfig, tmp_path: Path) -> None:
    (report,) = train(make_config(), tmp_path / "run", dry_run=True)
    assert isinstance(report, Report)
    assert report.total_steps == 8
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_a_run_is_not_trained_over(
    finished: tuple[Path, list[Event]], make_config: MakeConfig
) -> None:
    path, _ = finished
    before = (path / "config.toml").stat().st_mtime_ns
    with pytest.raises(RunError, match="is already a run"):
        next(train(make_config(), path))
    assert (path / "config.toml").stat().st_mtime_ns == before


def test_data_is_found_from_any_folder(
    make_config: MakeConfig, drive: Drive, corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in corpus:
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    config = make_config({"data.train": ["train.en", "train.de"], "training.save_every_steps": 2})
    drive(train(config, "run"), at_step(3))
    monkeypatch.chdir(tmp_path.parent)
    events = drive(resume(tmp_path / "run"))
    assert events[0].step == 2
    assert configuration.read(tmp_path / "run" / "config.toml").data.train == (
        str(tmp_path / "train.en"),
        str(tmp_path / "train.de"),
    )


def test_word_vectors_are_found_from_any_folder(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vectors.txt").write_text("1 16\ndog" + " 0.5" * 16 + "\n")
    monkeypatch.chdir(tmp_path)
    settings = {"tokenizer.kind": "words", "tokenizer.vectors": "vectors.txt", "tokenizer.freeze_vectors": True}
    (report,) = train(make_config(settings), tmp_path / "run", dry_run=True)
    assert report.config.tokenizer.vectors == str(tmp_path / "vectors.txt")


def test_a_vocabulary_is_brought_along_from_any_folder(
    make_config: MakeConfig, corpus: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = learn(Path(corpus[0]).read_text().splitlines(), kind="bpe", vocab_size=300)
    tokenizer.save(tmp_path / "own.json")
    monkeypatch.chdir(tmp_path)
    (report,) = train(
        make_config({"tokenizer.file": "own.json", "tokenizer.vocab_size": 0}), tmp_path / "run", dry_run=True
    )
    assert report.config.tokenizer.file == str(tmp_path / "own.json")
    assert report.config.tokenizer.vectors == ""


def test_the_thread_count_of_the_run_is_kept(finished: tuple[Path, list[Event]], drive: Drive, tmp_path: Path) -> None:
    path, _ = finished
    shutil.copytree(path, tmp_path / "run")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        drive(resume(tmp_path / "run"))
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_changed_corpus_is_refused_on_resume(
    make_config: MakeConfig, drive: Drive, corpus: tuple[str, str], tmp_path: Path
) -> None:
    files = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    for origin, copy in zip(corpus, files, strict=True):
        shutil.copy(origin, copy)
    drive(train(make_config({"data.train": files}), tmp_path / "run"), at_step(5))
    before = sorted(path.name for path in (tmp_path / "run").rglob("*"))
    text = Path(files[1]).read_text()
    Path(files[1]).write_text(text.replace("Hund", "Huhn"))
    with pytest.raises(DataError) as caught:
        drive(resume(tmp_path / "run"))
    assert caught.value.problem == (
        f"{files[1]} has changed since {tmp_path / 'run'} was started: a run resumes on the data it was trained on."
    )
    assert caught.value.remedy == "Restore the old file, or train a new run."
    assert sorted(path.name for path in (tmp_path / "run").rglob("*")) == before
    Path(files[1]).write_text(text)
    assert drive(resume(tmp_path / "run"))[-1].step == 8


def test_a_change_that_keeps_a_corpus_from_being_read_is_told_as_a_change(
    make_config: MakeConfig, drive: Drive, corpus: tuple[str, str], tmp_path: Path
) -> None:
    files = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    for origin, copy in zip(corpus, files, strict=True):
        shutil.copy(origin, copy)
    drive(train(make_config({"data.train": files}), tmp_path / "run"), at_step(5))
    with Path(files[0]).open("a") as file:
        file.write("one more line on one side\n")
    with pytest.raises(DataError, match=f"^{files[0]} has changed since "):
        drive(resume(tmp_path / "run"))


@pytest.mark.parametrize("change", ["another image", "an image that is none"])
def test_changed_images_are_refused_on_resume(change: str, drive: Drive, tmp_path: Path) -> None:
    images, run = tmp_path / "images", tmp_path / "run"
    draw_stripes(images)
    tables = {
        "task": "image",
        "data": {"train": [str(images)], "valid_size": 4},
        "model": {"preset": "resnet-20", "n_blocks": [1, 1], "width": 4},
        "training": {"steps": 8, "batch_images": 8, "schedule": "constant", "warmup": 1, "validate_every": 4},
        "runtime": {"device": "cpu", "threads": 1},
    }
    drive(train(configuration.from_tables(tables, origin="test"), run), at_step(5))
    before = sorted(path.name for path in run.rglob("*"))
    first = images / "lying" / "000.png"
    content = first.read_bytes()
    first.write_bytes((images / "none" / "000.png").read_bytes() if change == "another image" else content[:40])
    with pytest.raises(DataError) as caught:
        drive(resume(run))
    if change == "another image":
        assert caught.value.problem == (
            f"{images} has changed since {run} was started: a run resumes on the data it was trained on."
        )
        assert caught.value.remedy == "Restore the old files, or train a new run."
    else:
        assert "000.png" in str(caught.value), "which does not get so far"
    assert sorted(path.name for path in run.rglob("*")) == before
    first.write_bytes(content)
    assert drive(resume(run))[-1].step == 8


def test_a_run_that_another_process_trains_is_locked(finished: tuple[Path, list[Event]], tmp_path: Path) -> None:
    path, _ = finished
    shutil.copytree(path, tmp_path / "run")
    with locked(RunFolder(tmp_path / "run")), pytest.raises(LockedError) as caught:
        next(resume(tmp_path / "run"))
    assert f"{tmp_path / 'run'} is being trained by process {os.getpid()} on " in caught.value.problem


def test_a_generator_that_was_closed_gives_the_lock_back(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    drive(train(make_config(), tmp_path / "run"), at_step(1))
    assert signal.getsignal(signal.SIGTERM) is before
    with locked(RunFolder(tmp_path / "run")):
        pass


def test_a_save_that_fails_leaves_no_thread(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise CheckpointError("It cannot be written.", "Try again.")

    monkeypatch.setattr(checkpoints, "write", fail)
    with pytest.raises(CheckpointError) as caught:
        drive(train(make_config({"runtime.workers": 2}), tmp_path / "run"))
    assert caught.value.problem == "It cannot be written."
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reading-ahead")]


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
        "Loss or gradient was NaN or infinite for 3 consecutive steps, the last at step 7 (lines: "
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
    lines = caught.value.problem.partition("(lines: ")[2].removesuffix(").").replace(" and ", ", ").split(", ")
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
        f"{tmp_path / 'run' / 'checkpoints' / 'step-00000006'} does not match the model of {file}: "
    )
    assert "size mismatch" in caught.value.problem
    assert caught.value.remedy == "Restore the config that the run was started with."


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


@pytest.mark.parametrize(
    ("settings", "problem", "remedy"),
    [
        ({"training.best_by": "blue"}, "must be a metric of the task translate, not 'blue'", "Did you mean bleu?"),
        (
            {"training.best_by": "accuracy"},
            "must be a metric of the task translate, not 'accuracy'",
            "bleu, chrf, loss, perplexity",
        ),
        ({"training.best_by": "bleu", "training.validate_samples": 0}, "needs decoded samples", "validate_samples"),
    ],
)
def test_a_score_that_no_validation_has_chooses_nothing(
    make_config: MakeConfig, tmp_path: Path, settings: dict[str, object], problem: str, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        next(train(make_config(settings), tmp_path / "run"))
    assert remedy in caught.value.remedy
    assert not (tmp_path / "run").exists()


def test_epochs_wait_for_the_least_steps(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    settings = {"training.steps": 0, "training.epochs": 1, "training.min_steps": 30}
    events = drive(train(make_config(settings), tmp_path / "run"))
    assert len({event.update.epoch for event in of(Updated, events)}) > 1
    assert (events[0].total_steps, events[-1].step, events[-1].reason) == (30, 30, "1 epochs and 30 steps are done")


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


@pytest.mark.parametrize(
    ("settings", "problem", "remedy"),
    [
        ({"training.steps": 0}, "The run has no limit: it would never end.", "Give --steps, --epochs or --minutes."),
        (
            {"training.schedule": "lineal"},
            "training.schedule must be one of inverse-sqrt, cosine, linear, constant, not 'lineal'.",
            "Did you mean linear?",
        ),
        (
            {"training.class_weights": "balanced"},
            "test: training.class_weights does not apply to the task translate.",
            "Leave it out.",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_read(
    settings: dict[str, Any], problem: str, remedy: str, make_config: MakeConfig
) -> None:
    with pytest.raises(ConfigError) as caught:
        check(make_config({"data.train": ["there-is-no-such-file"], **settings}))
    assert (caught.value.problem, caught.value.remedy) == (problem, remedy)


def test_positions_that_end_before_the_longest_example_may(make_config: MakeConfig, tmp_path: Path) -> None:
    settings = {"model.positions": "learned", "model.max_positions": 20, "data.max_length": 20}
    with pytest.raises(ConfigError) as caught:
        next(train(make_config(settings), tmp_path / "run"))
    assert caught.value.problem == (
        "data.max_length is 20, but the model has positions for 20 tokens, one of them for the end."
    )
    assert caught.value.remedy == "Set data.max_length=19, or model.max_positions=21."
    assert next(train(make_config({**settings, "data.max_length": 19}), tmp_path / "run", dry_run=True))


def test_a_run_that_has_begun_keeps_its_data_and_its_order(
    make_config: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    drive(train(make_config({"training.steps": 3}), path))
    kept = {
        "model.dropout": "model",
        "data.max_ratio": "data",
    }
    for key, name in kept.items():
        with pytest.raises(UsageError) as caught:
            next(resume(path, settings={key: 0.5 if name == "model" else 5.0}))
        assert caught.value.problem == f"[{name}] cannot change on resume."
    with pytest.raises(ConfigError) as refused:
        next(resume(path, settings={"training.batch_tokens": 400}))
    before = configuration.read(path / "config.toml").training.batch_tokens
    assert refused.value.problem == (
        f"training.batch_tokens cannot change on resume: {path} was trained with {before}, and its config now has 400."
    )
    assert configuration.read(path / "config.toml").training.batch_tokens == before, "a refused change is not kept"


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


def test_training_and_resuming_take_denormals_for_zero(
    make_config: MakeConfig, drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(train(make_config({"training.steps": 1}), tmp_path / "run"))

    def train_session(self: session.Session) -> Iterator[float]:
        yield (torch.tensor([1e-38]) / 10).item()

    monkeypatch.setattr(session.Session, "train", train_session)
    assert list(train(make_config(), tmp_path / "another")) == [0.0]
    assert list(resume(tmp_path / "run")) == [0.0]


def test_an_unknown_task_gets_the_near_name(make_config: MakeConfig, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        next(train(dataclasses.replace(make_config(), task="translat"), tmp_path / "run"))
    assert (caught.value.problem, caught.value.remedy) == ("There is no task 'translat'.", "Did you mean translate?")
    assert not (tmp_path / "run").exists()


def test_facts_of_the_machine_are_in_the_manifest(finished: tuple[Path, list[Event]]) -> None:
    path, _ = finished
    checkpoint, _ = selection.newest_intact(RunFolder(path))
    assert {**runtime.facts(), "threads": 1}.items() <= dict(checkpoint.facts).items()


def test_a_run_cannot_be_shortened(finished: tuple[Path, list[Event]]) -> None:
    path, _ = finished
    with pytest.raises(UsageError) as caught:
        next(resume(path, settings={"training.steps": 3}))
    assert str(caught.value) == f"{path} is already at step 6, beyond --steps 3.\nGive a larger --steps."
