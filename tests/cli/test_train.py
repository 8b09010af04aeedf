import json
import math
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import main
from regard.cli.training_view import PeopleView
from regard.config import read
from regard.errors import TrainingError
from regard.runs.folder import RunFolder
from regard.tasks.task import Validation
from regard.tasks.translation.task import TranslationTask
from regard.training.events import Event, Updated
from regard.training.summary import summarise


def test_a_dry_run_reports_and_leaves_no_folder(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str], tmp_path: Path
) -> None:
    outcome = command("train", "translate", "--train", *corpus, "--dry-run", *tiny_flags)
    assert outcome.code == 0
    facts = {line[:10].strip(): line[12:] for line in outcome.lines}
    assert facts["run"] == "runs/translate-transformer-tiny-1"
    assert facts["model"].startswith("transformer-tiny, ") and facts["model"].endswith(" parameters")
    assert facts["training"].endswith(" pairs")
    assert facts["validation"].endswith(" held out by source sentence")
    assert facts["learning"] == (
        "96 tokens per batch, learning rate 0.01 (inverse-sqrt, warm-up 10), label smoothing 0.1"
    )
    assert facts["end"] == "after 10,000 steps or 10 validations without a better loss, whichever comes first"
    assert facts["machine"] == "cpu, fp32, 1 thread, seed 1"
    assert facts["time"].startswith("about ")
    assert facts["disk"].startswith("up to ") and "(7 checkpoints of " in facts["disk"]
    assert list(tmp_path.iterdir()) == []


def test_training_leaves_a_run_and_says_what_next(command: Any, corpus: tuple[str, str], tiny_flags: list[str]) -> None:
    flags = ("--steps", 12, "--set", "training.validate_every=6", "--seed", 3, *tiny_flags)
    outcome = command("train", "translate", "--train", *corpus, *flags)
    assert outcome.code == 0
    assert outcome.out == ""
    summary = summarise(RunFolder(Path("runs/translate-transformer-tiny-1")))
    assert (summary.step, summary.state, summary.config.seed) == (12, "finished", 3)
    lines = outcome.err.splitlines()
    assert lines[0] == "run         runs/translate-transformer-tiny-1"
    assert [line for line in lines if line.startswith("step 1/12  loss ")]
    assert [line for line in lines if line.startswith("step 6: validation loss ") and line.endswith("  ★ best so far")]
    assert [line for line in lines if line.startswith("    output ")]
    assert [line for line in lines if line.startswith("Finished at step 12 after ")]
    assert "  regard evaluate runs/translate-transformer-tiny-1 --data TEST-FILES" in lines


def test_events_as_json(command: Any, corpus: tuple[str, str], tiny_flags: list[str]) -> None:
    flags = ("--steps", 2, "--run", "runs/j", "--json", "--tensorboard", *tiny_flags)
    outcome = command("train", "translate", "--train", *corpus, *flags)
    assert (outcome.code, outcome.err) == (0, "")
    events = [json.loads(line) for line in outcome.lines]
    assert [event["event"] for event in events] == ["report", "updated", "updated", "validated", "saved", "finished"]
    assert events[0]["run"] == "runs/j"
    assert events[0]["config"]["training"]["steps"] == 2
    assert events[2]["step"] == 2
    assert set(events[3]["scores"]) == {"loss", "perplexity", "bleu", "chrf"}
    assert events[5]["best"]["step"] == 2
    assert list(Path("runs/j/tensorboard").glob("events.*"))


def test_seeds_train_a_run_each_and_report_mean_and_deviation(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str]
) -> None:
    flags = ("--steps", 2, "--run", "runs/s", "--seeds", "1,2", *tiny_flags)
    outcome = command("train", "translate", "--train", *corpus, *flags)
    assert outcome.code == 0
    assert [read(Path(f"runs/s-seed{seed}/config.toml")).seed for seed in (1, 2)] == [1, 2]
    rows = {line[:18].strip(): [float(cell) for cell in line[18:].split()] for line in outcome.lines[1:]}
    assert outcome.lines[0].split() == ["best", "validation", "loss", "perplexity", "BLEU", "chrF"]
    first, second = rows["runs/s-seed1"], rows["runs/s-seed2"]
    assert first[0] != second[0]
    assert rows["mean"][0] == pytest.approx((first[0] + second[0]) / 2, abs=0.0011)
    assert rows["standard deviation"][0] == pytest.approx(abs(first[0] - second[0]) / 2**0.5, abs=0.0011)


def interrupt(monkeypatch: pytest.MonkeyPatch, number: signal.Signals, *, run: str, step: int) -> None:
    """Let a signal come when a run's update is shown."""
    ordinary = PeopleView.show

    def interrupted(self: PeopleView, event: Event) -> None:
        ordinary(self, event)
        if isinstance(event, Updated) and event.update.step == step and str(self.run) == run:
            signal.raise_signal(number)

    monkeypatch.setattr(PeopleView, "show", interrupted)


def test_seeds_that_were_stopped_are_finished_by_the_same_command(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "translate", "--train", *corpus, "--run", "runs/s", "--steps", 3, "--seeds", "1,2", *tiny_flags)
    with monkeypatch.context() as patch:
        interrupt(patch, signal.SIGINT, run="runs/s-seed2", step=2)
        stopped = command(*words)
    assert stopped.code == 130
    assert stopped.err.splitlines()[-2:] == [
        "Stopped at step 2; the run is saved.",
        "Repeat the command with --run runs/s to resume; finished runs stay.",
    ]
    again = command(*words)
    assert again.code == 0
    lines = again.err.splitlines()
    assert lines[:2] == ["seed 1 of 1, 2: runs/s-seed1", "already finished: 3 steps are done"]
    assert "run         runs/s-seed2, from step 2" in lines
    assert summarise(RunFolder(Path("runs/s-seed2"))).step == 3
    third = command(*words)
    assert third.out == again.out
    other = command(*words, "--set", "training.clip=0.5")
    assert (other.code, other.error) == (
        1,
        [
            "error: runs/s-seed1 is a run with other settings.",
            "Repeat the command as it was, or name another folder with --run.",
        ],
    )


def test_a_seed_without_a_number_leaves_a_gap(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = TranslationTask.validate

    def validate(self: TranslationTask, *arguments: Any, **options: Any) -> Validation:
        if self.config.seed == 2:
            return Validation(loss=math.nan, scores={"bleu": 0.0})
        if self.config.seed == 3:
            raise TrainingError("The loss was no number.", "Lower it.")
        return ordinary(self, *arguments, **options)

    monkeypatch.setattr(TranslationTask, "validate", validate)
    words = ("train", "translate", "--train", *corpus, "--run", "runs/s", "--steps", 1, *tiny_flags)
    outcome = command(*words, "--seeds", "1,2")
    assert outcome.code == 0
    first, second, mean, deviation = [line.split()[-4:] for line in outcome.lines[1:]]
    assert mean == first
    assert second == deviation == ["—"] * 4
    failed = command(*words, "--seeds", "1,3", "--json")
    assert failed.code == 1
    assert "note: runs/s-seed3 is left as it is. The loss was no number." in failed.err.splitlines()
    found = json.loads(failed.lines[-1])
    assert (found["event"], found["scores"]["3"], found["averaged"]) == ("seeds", {}, False)
    assert found["mean"] == found["scores"]["1"]
    assert set(found["deviation"].values()) == {None}


def test_seeds_report_their_averages_where_all_have_one(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str]
) -> None:
    flags = ("--steps", 4, "--set", "training.validate_every=2", "--set", "training.average=2", *tiny_flags)
    words = ("train", "translate", "--train", *corpus, "--run", "runs/s", "--seeds", "1", *flags)
    outcome = command(*words)
    assert outcome.lines[0].startswith("average of checkpoints ")
    summary = summarise(RunFolder(Path("runs/s-seed1")))
    assert outcome.lines[1].split()[1] == f"{summary.average['loss']:.3f}"
    assert command(*words).out == outcome.out


def test_without_a_reader_training_goes_on(
    corpus: tuple[str, str], tiny_flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = tmp_path / "unseen"
    flags = ["--steps", "3", "--run", str(run), "--json", *tiny_flags]
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["train", "translate", "--train", *corpus, *flags]) == 0
    assert summarise(RunFolder(run)).state == "finished"


def test_a_run_is_initialised_from_another_and_says_what_it_loaded(
    command: Any, trained: Path, corpus: tuple[str, str], tmp_path: Path
) -> None:
    flags = ("--train", *corpus, "--steps", 2, "--batch-tokens", 96, "--init-lr-scale", 0.5, "--run", "runs/second")
    outcome = command("train", "translate", "--init", f"{trained}@best", *flags)
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    [begun] = [line for line in lines if line.startswith("init from")]
    assert begun.startswith(f"init from       {trained}@best, step-") and begun.endswith(" (transformer-tiny)")
    assert [
        line for line in lines if line.startswith("weights loaded  ") and " parameters: source_embedding.tok" in line
    ]
    assert "lr scale        0.5" in lines
    found = read(Path("runs/second/config.toml"))
    assert found.training.init == f"{trained}@best"
    assert found.model == read(trained / "config.toml").model
    assert "- init from: " in Path("runs/second/README.md").read_text()


def test_a_dry_run_shows_what_would_be_loaded(command: Any, language_run: str, corpus: tuple[str, str]) -> None:
    flags = ("--train", corpus[0], "--steps", 3, "--set", "model.context=24", "--set", "training.warmup=0", "--dry-run")
    outcome = command("train", "language", "--init", language_run, *flags)
    assert outcome.code == 0
    facts = [(line[:17].strip(), line[19:]) for line in outcome.lines]
    assert ("newly initialised", "of another shape: embedding.positions.weight (16 × 16 there, 24 × 16 here)") in facts
    assert ("settings differ", "context 16 there, 24 here") in facts


def test_two_families_have_nothing_in_common(command: Any, language_run: str, corpus: tuple[str, str]) -> None:
    flags = ("--train", corpus[0], "--model", "llama-nano")
    outcome = command("train", "language", "--init", language_run, *flags)
    assert outcome.code == 1
    assert outcome.error == [
        f"error: Cannot load weights of {language_run} (gpt-nano) into llama-nano: the architectures differ.",
        "Choose another model with --model, or initialise from a run of llama-nano.",
    ]
    other = command("train", "translate", "--init", language_run, "--train", *corpus)
    assert other.code == 2
    assert other.error[0] == f"error: {language_run} is a gpt-nano, which does not support the task 'translate'."
    assert not Path("runs").exists()


def test_seeds_begin_with_the_same_run(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    flags = ("--train", *corpus, "--steps", 2, "--set", "training.validate_samples=0", "--run", "runs/s", "--json")
    first = command("train", "translate", "--init", trained, *flags, "--seeds", "1,2")
    assert first.code == 0
    repeated = command("train", "translate", "--init", trained, *flags, "--seeds", "1,2,3")
    assert repeated.code == 0
    events = [json.loads(line) for line in repeated.lines]
    assert [event["run"] for event in events if event["event"] == "report"] == ["runs/s-seed3"], "the others stay"


def test_a_language_model_may_end_by_the_clock_alone(command: Any, corpus: tuple[str, str]) -> None:
    flags = ("--train", corpus[0], "--minutes", 5, "--dry-run")
    outcome = command("train", "language", *flags)
    assert outcome.code == 0
    assert "learning rate 0.003, Muon 0.04 (linear, warm-up 0.05 of the run)" in outcome.out


def test_the_file_of_a_run_repeats_it(command: Any, trained: Path) -> None:
    outcome = command("train", trained / "config.toml", "--run", "again", "--steps", 1)
    assert outcome.code == 0
    files = [(path / "vocabulary" / "shared.json").read_bytes() for path in (trained, Path("again"))]
    assert files[0] == files[1]


def test_a_signal_saves_and_says_how_to_go_on(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, signal.SIGTERM, run="runs/t", step=3)
    outcome = command("train", "translate", "--train", *corpus, "--run", "runs/t", "--steps", 50, *tiny_flags)
    assert outcome.code == 143
    assert outcome.err.splitlines()[-2:] == [
        "Stopped at step 3; the run is saved. Resume it with:",
        "  regard resume runs/t",
    ]


def test_a_signal_in_a_validation_waits_for_its_end_and_saves(
    command: Any, corpus: tuple[str, str], tiny_flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = TranslationTask.validate

    def validate(self: TranslationTask, *arguments: Any, **options: Any) -> Validation:
        signal.raise_signal(signal.SIGINT)
        return ordinary(self, *arguments, **options)

    monkeypatch.setattr(TranslationTask, "validate", validate)
    flags = ("--run", "runs/v", "--steps", 50, "--set", "training.validate_every=4", *tiny_flags)
    outcome = command("train", "translate", "--train", *corpus, *flags)
    assert outcome.code == 130
    assert outcome.err.splitlines()[-2:] == [
        "Stopped at step 4; the run is saved. Resume it with:",
        "  regard resume runs/v",
    ]
    [checkpoint] = summarise(RunFolder(Path("runs/v"))).checkpoints
    assert checkpoint.step == 4
    assert "loss" in checkpoint.scores  # the validation was not lost


def test_an_error_leaves_no_folder(command: Any, corpus: tuple[str, str]) -> None:
    outcome = command("train", "translate", "--train", *corpus, "--model", "transformer-tinny")
    assert (outcome.code, outcome.err.splitlines()) == (
        2,
        ["error: There is no model 'transformer-tinny'.", "Did you mean transformer-tiny?"],
    )
    assert not Path("runs").exists()


def test_other_data_for_a_runs_file_are_noted(command: Any, trained: Path, corpus: tuple[str, str]) -> None:
    Path("other.en").write_text(Path(corpus[0]).read_text())
    outcome = command("train", trained / "config.toml", "--train", "other.en", corpus[1], "--dry-run")
    assert outcome.code == 0
    assert outcome.err.splitlines()[0] == (
        f"note: the training data differ from those of {trained}/config.toml: a new vocabulary is learned"
    )


def test_files_that_cannot_be_used(command: Any, corpus: tuple[str, str], tmp_path: Path) -> None:
    shutil.copy(corpus[0], "train.en")
    missing = command("train", "translate", "--train", "train.em", corpus[1])
    assert missing.code == 1
    assert missing.error == [
        f"error: {tmp_path}/train.em: there is no such file.",
        f"Did you mean {tmp_path}/train.en?",
    ]
    Path("empty.de").touch()
    empty = command("train", "translate", "--train", "train.en", "empty.de")
    assert empty.code == 1
    assert empty.error[0] == f"error: {tmp_path}/empty.de: the file is empty."
    Path("pairs.tsv").write_text("en\tde\nA dog.\tEin Hund.\n")
    language = command("train", "translate", "--train", "pairs.tsv", "--from", "en", "--to", "dd")
    assert language.code == 1
    assert language.error == [f"error: {tmp_path}/pairs.tsv has no column 'dd'.", "Available: de, en."]
    assert not Path("runs").exists()


def test_a_folder_in_use_is_refused(command: Any, corpus: tuple[str, str], own_run: Path) -> None:
    outcome = command("train", "translate", "--train", *corpus, "--run", own_run)
    assert outcome.code == 1
    assert outcome.error == [
        f"error: {own_run} is already a run.",
        f"Resume it: regard resume {own_run}. Or name another folder with --run.",
    ]
