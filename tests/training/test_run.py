"""Train and resume: what a run's folder holds, what is refused before and on resume, and that it repeats itself."""

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import draw_stripes
from tests.training.conftest import at_step

from regard import config as configuration
from regard import runtime
from regard.config import RunConfig
from regard.data.text.tokenizer_training import learn
from regard.errors import ConfigError, DataError, LockedError, RunError, UsageError
from regard.runs.folder import RunFolder
from regard.runs.lock import locked
from regard.training import session
from regard.training.events import Event, Report
from regard.training.run import check, resume, train

MakeConfig = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]


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


@pytest.mark.parametrize(
    ("settings", "problem", "remedy"),
    [
        ({"training.steps": 0}, "The run has no limit: it would never end.", "Give --steps, --epochs or --minutes."),
        (
            {"training.schedule": "lineal"},
            "test: training.schedule must be inverse-sqrt, cosine, linear or constant, not 'lineal'.",
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
    with pytest.raises(UsageError) as caught:
        next(resume(path, settings={"training.optimizer": "muon"}))
    assert caught.value.problem == "training.optimizer cannot change on resume."
    with pytest.raises(ConfigError) as refused:
        next(resume(path, settings={"training.batch_tokens": 400}))
    before = configuration.read(path / "config.toml").training.batch_tokens
    assert refused.value.problem == (
        f"training.batch_tokens cannot change on resume: {path} was trained with {before}, and its config now has 400."
    )
    assert configuration.read(path / "config.toml").training.batch_tokens == before, "a refused change is not kept"


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


def test_a_run_cannot_be_shortened(finished: tuple[Path, list[Event]]) -> None:
    path, _ = finished
    with pytest.raises(UsageError) as caught:
        next(resume(path, settings={"training.steps": 3}))
    assert str(caught.value) == f"{path} is already at step 6, beyond --steps 3.\nGive a larger --steps."


def test_a_model_larger_than_the_memory_is_refused_before_it_is_built(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "available_memory", lambda device: 10_000)
    with pytest.raises(ConfigError) as caught:
        next(train(make_config(), tmp_path / "run"))
    assert caught.value.problem == "The weights of this model take 0.0 GB, and 0.0 GB of memory are free."
    assert not (tmp_path / "run").exists()


def test_what_a_kill_left_of_a_vocabulary_goes_at_the_next_start(make_config: MakeConfig, tmp_path: Path) -> None:
    vocabulary = tmp_path / "run" / "vocabulary"
    vocabulary.mkdir(parents=True)
    (vocabulary / ".tmp-shared.json-k3x_9").write_text("{")
    list(train(make_config({"training.steps": 1}), tmp_path / "run"))
    assert sorted(path.name for path in vocabulary.iterdir()) == ["lengths.json", "shared.json"]


def test_a_run_does_not_resume_with_a_vocabulary_of_another_size(make_config: MakeConfig, tmp_path: Path) -> None:
    list(train(make_config({"training.steps": 1}), tmp_path / "run"))
    learn(["A dog runs."] * 3, kind="words", vocab_size=300).save(tmp_path / "run" / "vocabulary" / "shared.json")
    with pytest.raises(
        RunError, match=r"vocabulary does not fit the model of the run's config\.toml: source_vocab is "
    ):
        list(resume(tmp_path / "run", settings={"training.steps": 2}))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, {"pooling": "mean", "dropout": 0.3}),
        ({"pooling": "class"}, {"dropout": 0.3}),
        ({"pooling": "last", "dropout": 0.1}, {}),
    ],
)
def test_fields_of_a_model_that_nobody_chose_follow_the_data(
    asked: dict[str, Any], told: dict[str, Any], drive: Drive, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("text,label\n" + "a fine day,good\na bad day,bad\n" * 10)
    sizes = {"preset": "bert-tiny", "n_layers": 1, "n_heads": 1, "d_model": 8, "d_ff": 8, "max_positions": 510}
    files = [str(tmp_path / "train.csv")]
    tables = {"data": {"train": files, "valid": files}, "training": {"steps": 1}, "model": {**sizes, **asked}}
    config = configuration.from_tables({"task": "classify", **tables}, origin="test")
    events = drive(train(config, tmp_path / "run"))
    assert isinstance(events[0], Report)
    facts = dict(events[0].facts)
    assert facts.get("by the data", "") == ", ".join(f"model.{name} = {value}" for name, value in told.items())
    kept = RunFolder.open(tmp_path / "run").read_config().model.fields
    assert {name: kept[name] for name in ("pooling", "dropout")} == {"pooling": "mean", "dropout": 0.3} | asked
