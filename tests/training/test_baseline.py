"""Baselines in training: learned once, told in the report and at the end, on the card, and the same when a run goes on."""

from collections.abc import Callable
from pathlib import Path

from tests.training.conftest import at_step, of

from regard.config import RunConfig, TrainingConfig
from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.runs.folder import BASELINE
from regard.training.baseline import judge_run
from regard.training.events import Event, Finished, Noted, Report
from regard.training.run import resume, train

MakeConfig = Callable[..., RunConfig]
Drive = Callable[..., list[Event]]
Tensors = Callable[[Path], dict[str, bytes]]


def facts_of(events: list[Event]) -> dict[str, str]:
    [report] = of(Report, events)
    return dict(report.facts)


def test_it_is_told_in_the_report_at_the_end_and_on_the_card(finished: tuple[Path, list[Event]]) -> None:
    path, events = finished
    assert facts_of(events)["baseline"].startswith("word-for-word dictionary: BLEU ")
    [end] = of(Finished, events)
    assert [one.name for one in end.baselines] == ["copied source", "word-for-word dictionary"]
    assert set(end.baselines[1].scores) == {"bleu", "chrf"}
    card = (path / "README.md").read_text()
    assert "- baseline, word-for-word dictionary: bleu " in card
    assert (
        "\n\nThe model does not beat a simple baseline: it has BLEU 0.0, and word-for-word dictionary has BLEU " in card
    )
    assert "\nWhat may help: more data, more steps, a smaller model or --init from " in card


def test_a_dry_run_tells_it_and_leaves_nothing(make_config: MakeConfig, tmp_path: Path) -> None:
    events = list(train(make_config(), tmp_path / "run", dry_run=True))
    assert facts_of(events)["baseline"].startswith("word-for-word dictionary: BLEU ")
    assert not (tmp_path / "run").exists()


def test_without_samples_there_is_nothing_to_compare(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    config = make_config({"training.validate_samples": 0, "training.steps": 1})
    events = drive(train(config, tmp_path / "run"))
    assert "baseline" not in facts_of(events)
    assert "baseline" not in (tmp_path / "run" / "README.md").read_text()


def test_a_resumed_run_has_the_same(make_config: MakeConfig, drive: Drive, tensors_of: Tensors, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    [end] = of(Finished, drive(train(make_config(), whole)))
    drive(train(make_config(), cut), at_step(5))
    kept = (cut / BASELINE).read_bytes()
    [again] = of(Finished, drive(resume(cut)))
    assert again.baselines == end.baselines
    assert (cut / BASELINE).read_bytes() == kept == (whole / BASELINE).read_bytes()
    assert tensors_of(cut) == tensors_of(whole)


def test_a_run_of_an_older_version_learns_it_when_it_goes_on(
    make_config: MakeConfig, drive: Drive, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    drive(train(make_config(), path), at_step(5))
    kept = (path / BASELINE).read_bytes()
    (path / BASELINE).unlink()
    events = drive(resume(path))
    assert not of(Noted, events)
    assert (path / BASELINE).read_bytes() == kept


def test_a_damaged_one_is_learned_anew(make_config: MakeConfig, drive: Drive, tmp_path: Path) -> None:
    path = tmp_path / "run"
    drive(train(make_config(), path), at_step(5))
    kept = (path / BASELINE).read_bytes()
    (path / BASELINE).write_bytes(kept[:-5])
    noted, *_ = drive(resume(path))
    assert isinstance(noted, Noted)
    assert noted.text.startswith(f"{path / BASELINE} is damaged: SafetensorError, ")
    assert noted.text.endswith(". The baselines are learned anew.")
    assert (path / BASELINE).read_bytes() == kept
    other = tmp_path / "other"
    other.write_bytes(kept)
    (path / BASELINE).unlink()
    (path / BASELINE).symlink_to(other)
    noted, *_ = drive(resume(path, settings={"training.steps": 9}))
    assert isinstance(noted, Noted)
    assert noted.text == f"{path / BASELINE} is damaged: it is a link, not a file. The baselines are learned anew."
    assert not (path / BASELINE).is_symlink()


def test_what_a_run_means_is_judged() -> None:
    baselines = [ScoredBaseline(name="naive Bayes", scores={"accuracy": 80.0})]
    config = RunConfig(task="classify", training=TrainingConfig(best_by="accuracy"))
    best, average = {"step": 3, "loss": 1.0, "accuracy": 79.0}, {"step": 4, "loss": 1.0, "accuracy": 81.0}
    for scores, beaten in (
        ((best, average), True),
        ((best, {}), False),
        ((best, {**average, "accuracy": 70.0}), False),
    ):
        verdict = judge_run(*scores, baselines, config)
        assert verdict is not None
        assert verdict.beaten == beaten
    assert judge_run({}, {}, baselines, config) is None
