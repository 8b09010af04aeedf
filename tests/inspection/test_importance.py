"""Importance by ablation: what examples cost adds up to the loss, nothing cut changes nothing, a killed run goes on."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.inspection.families import FAMILIES, TEXTS, subject_of

from regard.errors import DataError, UsageError
from regard.inspection import importance as module
from regard.inspection.held_out import HeldOut
from regard.inspection.importance import Change, Importance, PartImportance, measure_importance, parts_of
from regard.inspection.interventions import intervening
from regard.inspection.trace import Subject

MEASURED = [name for name in FAMILIES if name not in ("rnn", "birnn", "convnet")]
SCORED = {"translate": "bleu", "caption": "bleu", "classify": "accuracy", "tag": "accuracy", "image": "accuracy"}


def write_files(task: str, folder: Path) -> list[str]:
    """A small test set of a task."""
    folder.mkdir(parents=True, exist_ok=True)
    if task == "translate":
        sides = {"test.en": TEXTS * 2, "test.de": [text.replace("today", "good") for text in TEXTS * 2]}
        for name, lines in sides.items():
            (folder / name).write_text("\n".join(lines) + "\n")
        return [str(folder / name) for name in sides]
    if task in ("image", "caption"):
        return _write_images(folder, captions=task == "caption")
    contents = {
        "classify": (
            "test.tsv",
            "text\tlabel\n" + "".join(f"{text}\t{'abc'[n % 3]}\n" for n, text in enumerate(TEXTS)),
        ),
        "tag": (
            "test.conll",
            "".join("".join(f"{w}\t{'abc'[len(w) % 3]}\n" for w in text.split()) + "\n" for text in TEXTS),
        ),
    }
    name, content = contents.get(task, ("test.txt", "\n".join(TEXTS * 4)))
    (folder / name).write_text(content)
    return [str(folder / name)]


def _write_images(folder: Path, *, captions: bool) -> list[str]:
    random = np.random.default_rng(1)
    rows = []
    for number in range(6):
        path = folder / ("." if captions else "ab"[number % 2]) / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path)
        rows += [f"{number}.png\t{TEXTS[number]}\n", f"{number}.png\tthe dog is bad .\n"]
    if not captions:
        return [str(folder)]
    (folder / "captions.tsv").write_text("image\tcaption\n" + "".join(rows))
    return [str(folder / "captions.tsv")]


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_RESAMPLES", 50)


def measured(subject: Subject, folder: Path, **settings: Any) -> Importance:
    files = write_files(subject.task.spec.name, folder / "data")
    return measure_importance(subject.task, subject.model, subject.options, files, **settings)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_examples_cost_adds_up_to_the_loss(name: str, tmp_path: Path) -> None:
    subject = subject_of(name)
    files = write_files(subject.task.spec.name, tmp_path)
    data = HeldOut.read(subject.task, subject.model, subject.options, files, n_examples=0)
    for numbers in data.batches:
        batch = data.examples.batch(numbers, torch.device("cpu"))
        with torch.inference_mode():
            loss, weight = subject.task.loss(subject.model, batch, smoothing=0.0)
            costs = subject.task.costs(subject.model, batch)
        assert costs.shape[0] == len(numbers)
        np.testing.assert_allclose(costs[:, :2].sum(0), (float(loss), weight), rtol=1e-4)


@pytest.mark.parametrize("name", MEASURED)
def test_every_family_is_measured(name: str, tmp_path: Path) -> None:
    found = measured(subject_of(name), tmp_path, parts="both")
    assert [one.name for one in found.parts] == [str(cut) for cut in parts_of(subject_of(name).model, "both")]
    assert list(found.whole) == ["loss"]
    for one in found.parts:
        change = one.changes["loss"]
        assert change.low <= change.high
        assert change.value == pytest.approx(found.whole["loss"] + change.delta)
    assert any(one.changes["loss"].delta for one in found.parts)
    json.dumps(found.to_json(), allow_nan=False)


def test_nothing_cut_is_the_whole_network_exactly(tmp_path: Path) -> None:
    subject = subject_of("transformer")
    files = write_files("translate", tmp_path)
    data = HeldOut.read(subject.task, subject.model, subject.options, files, n_examples=0)
    whole = data.statistics(subject.model, score=True)
    with intervening(subject.model, []):
        again = data.statistics(subject.model, score=True)
    for change in module._compared(whole, again).values():
        assert (change.delta, change.low, change.high) == (0.0, 0.0, 0.0)
        assert not change.is_sure


@pytest.mark.parametrize("task", SCORED)
def test_the_score_is_that_of_an_evaluation(task: str, tmp_path: Path) -> None:
    subject = subject_of(next(name for name in MEASURED if FAMILIES[name].task == task))
    files = write_files(task, tmp_path)
    data = HeldOut.read(subject.task, subject.model, subject.options, files, n_examples=0)
    _, score = data.statistics(subject.model, score=True)
    evaluation = subject.task.evaluate(subject.model, files, subject.options)
    assert score.metric == SCORED[task]
    assert score.value == pytest.approx(evaluation[score.metric])


@pytest.mark.parametrize("name", ["gpt", "t5-denoise"])
def test_a_task_without_a_score_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no score beside its loss"):
        measured(subject_of(name), tmp_path, metric="score")


def test_examples_are_taken_in_equal_distances(tmp_path: Path) -> None:
    subject = subject_of("transformer")
    files = write_files("translate", tmp_path)
    data = HeldOut.read(subject.task, subject.model, subject.options, files, n_examples=4)
    assert len(data) == 4
    assert sorted(np.concatenate(data.batches).tolist()) == [0, 3, 6, 9]
    assert measured(subject, tmp_path, n_examples=4).n_examples == 4


def test_a_killed_measurement_goes_on_where_it_was(tmp_path: Path) -> None:
    subject, file = subject_of("gpt"), tmp_path / "importance.jsonl"
    whole = measured(subject, tmp_path)

    class Killed(BaseException):
        pass

    def kill(what: str, done: int) -> None:
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        measured(subject, tmp_path, resume_file=file, progress=kill)
    with file.open("ab") as cut_short:
        cut_short.write(b'{"part": "decoder.1.self_attention:0", "loss": {"val')
    counted = []
    resumed = measured(subject, tmp_path, resume_file=file, progress=lambda what, done: counted.append(done))
    assert resumed == whole
    assert counted == [0, 1, 2, 3, 4]
    lines = file.read_text().splitlines()
    assert [json.loads(line).get("part") for line in lines] == [None, *(one.name for one in whole.parts)]


def test_parts_that_are_done_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, file = subject_of("gpt"), tmp_path / "importance.jsonl"
    first = measured(subject, tmp_path, resume_file=file)
    monkeypatch.setattr(module, "_compared", None)
    assert measured(subject, tmp_path, resume_file=file) == first


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "importance.jsonl"
    measured(subject_of("gpt"), tmp_path, resume_file=file)
    with pytest.raises(UsageError, match="is of another model, other data or other settings"):
        measured(subject_of("gpt", seed=3), tmp_path, resume_file=file)
    with pytest.raises(UsageError, match="is of another model, other data or other settings"):
        measured(subject_of("gpt"), tmp_path, resume_file=file, n_examples=1)


def test_damaged_files_are_told(tmp_path: Path) -> None:
    file = tmp_path / "importance.jsonl"
    file.write_text("hello\n")
    with pytest.raises(UsageError, match="is not a file of an importance measurement"):
        measured(subject_of("gpt"), tmp_path, resume_file=file)
    file.unlink()
    measured(subject_of("gpt"), tmp_path, resume_file=file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], "[1]\n"]))
    with pytest.raises(DataError, match="jsonl:2: expected a JSON object"):
        measured(subject_of("gpt"), tmp_path, resume_file=file)
    file.write_text(lines[0] + lines[1].replace('"delta": ', '"delta": "x", "d": '))
    with pytest.raises(DataError, match=r"the result of decoder\.0\.self_attention:0 is damaged"):
        measured(subject_of("gpt"), tmp_path, resume_file=file)
    file.unlink()
    file.symlink_to("elsewhere")
    with pytest.raises(DataError, match="cannot be read: it is a link"):
        measured(subject_of("gpt"), tmp_path, resume_file=file)


def test_what_cannot_be_cut_is_told() -> None:
    with pytest.raises(UsageError, match="Did you mean heads"):
        parts_of(subject_of("gpt").model, "head")
    with pytest.raises(UsageError, match="has no heads"):
        parts_of(subject_of("resnet").model)
    with pytest.raises(UsageError, match="ConvNet has no parts that a residual connection goes around"):
        parts_of(subject_of("convnet").model, "sublayers")


def test_a_test_set_without_examples_is_told(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"test.{side}").write_text("")
    subject = subject_of("transformer")
    files = [str(tmp_path / "test.en"), str(tmp_path / "test.de")]
    with pytest.raises(DataError):
        measure_importance(subject.task, subject.model, subject.options, files)


def test_weights_are_as_they_were(tmp_path: Path) -> None:
    subject = subject_of("transformer")
    before = {name: own.clone() for name, own in subject.model.state_dict().items()}
    measured(subject, tmp_path)
    assert all(torch.equal(own, before[name]) for name, own in subject.model.state_dict().items())


def part(name: str, delta: float, *, low: float, high: float) -> PartImportance:
    path, _, head = name.partition(":")
    change = Change(value=1 + delta, delta=delta, low=low, high=high)
    return PartImportance(module=path, head=int(head) if head else None, changes={"loss": change})


def test_lines() -> None:
    found = Importance(
        whole={"loss": 1.0},
        n_examples=20,
        parts=(
            part("encoder.0.self_attention:0", 0.25, low=0.2, high=0.3),
            part("encoder.0.self_attention:1", -0.01, low=-0.03, high=0.01),
        ),
    )
    assert found.lines() == [
        "without                       loss   change         95 % interval",
        "nothing                     1.0000",
        "encoder.0.self_attention:0  1.2500  +0.2500  [+0.2000, +0.3000] *",
        "encoder.0.self_attention:1  0.9900  −0.0100  [−0.0300, +0.0100]",
        "",
        "Missed most, by loss: encoder.0.self_attention:0.",
        "20 examples. * The interval excludes 0: 1 of 2 do, and about 1 would by chance alone.",
    ]
    assert [one.head for one in found.ranked()] == [0, 1]
    assert found["encoder.0.self_attention:1"].harm("loss") == -0.01
    with pytest.raises(UsageError, match="was not measured"):
        found["encoder.0.self_attention:2"]


def test_a_score_that_falls_is_harm() -> None:
    change = Change(value=20.0, delta=-4.0, low=-5.0, high=-3.0)
    assert PartImportance(module="decoder.0.feed_forward", head=None, changes={"bleu": change}).harm("bleu") == 4.0
    assert replace(change, high=0.0).is_sure is False
