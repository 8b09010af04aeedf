"""Probe examples: chosen of every task's validation data, traced without leaving a mark, kept small, read as a timeline."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inspection.families import FAMILIES, input_of, subject_of, traced

from regard.config import InspectionConfig, from_tables
from regard.errors import RunError, UsageError
from regard.inspection import probe_folder, probe_timeline, probes
from regard.inspection.probe_folder import drop_after, recorded_steps, spacing, thin_out, trace_files, write_step
from regard.inspection.probe_timeline import read_probes
from regard.inspection.probes import ProbeRecorder, left_as_it_was
from regard.models.presets import rebuild_model
from regard.runs.disk import full_disk
from regard.runs.folder import RunFolder
from regard.tasks import find_task
from regard.tasks.probe_example import MOST_TOKENS, ProbeExample, probe_rows

RUNS = ("trained", "classify_run", "pairs_run", "tag_run", "regress_run", "mask_run", "denoise_run", "vectors_run")


def new_run(folder: Path) -> RunFolder:
    run = RunFolder(folder / "run")
    run.traces.mkdir(parents=True)
    run.config_file.write_text('task = "translate"\n')
    return run


def recorder_of(name: str, run: RunFolder, *, n: int = 1, **settings: Any) -> tuple[ProbeRecorder, torch.nn.Module]:
    """A recorder of a family's random network, whose examples are all the same, and the network."""
    subject, given = subject_of(name), input_of(FAMILIES[name].task)
    title = given if isinstance(given, str) else "photo.png"
    probe_folder.write_examples(run, [ProbeExample(title=title, input=given, expected="right") for _ in range(n)])
    kept: Any = None
    own = ProbeRecorder(run, subject.task, kept, InspectionConfig(probes=n, **settings))
    return own, subject.model


# -- which examples -----------------------------------------------------------------------------------------------------


def test_examples_are_in_equal_distances_and_short() -> None:
    lengths = np.full(100, 10)
    assert probe_rows(lengths, 4) == [0, 25, 50, 75]
    lengths[[0, 1, 50]] = MOST_TOKENS + 1
    assert probe_rows(lengths, 4) == [2, 25, 51, 75]
    assert probe_rows(np.array([90, 80, 99]), 1) == [1]
    assert probe_rows(np.array([[9, 90], [80, 70], [9, 99]]), 1) == [1]
    assert probe_rows(np.array([3, 3]), 4) == [0, 1]


@pytest.mark.parametrize("fixture", [*RUNS, "image_run", "caption_run"])
def test_every_task_has_examples_that_can_be_traced(
    fixture: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    trained = RunFolder(request.getfixturevalue(fixture))
    config = trained.read_config()
    prepared = find_task(config.task).prepare(config, vocabulary=trained.vocabulary, progress=lambda what, done: None)
    task: Any = prepared.task
    run = new_run(tmp_path)
    recorder = ProbeRecorder(run, task, prepared.valid, InspectionConfig(probes=2))
    assert recorder.record(rebuild_model(config, origin="test"), 0) == []
    found = read_probes(run)
    assert len(found.titles) == 2
    assert all(found.expected)
    assert None not in found.outputs[0]
    kept = probe_folder.read_examples(run)
    assert kept is not None
    assert [one.to_json() for one in kept] == [one.to_json() for one in task.probes(prepared.valid, 2)]


def test_a_language_model_goes_on_from_places_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("".join(f"line {number} of a long text that says little\n" for number in range(400)))
    tables = {"task": "language", "data": {"train": [str(file)]}, "model": {"preset": "gpt-nano", "context": 16}}
    config = from_tables(tables, origin="test")
    prepared = find_task("language").prepare(config, vocabulary=None, progress=lambda what, done: None)
    task: Any = prepared.task
    found = task.probes(prepared.valid, 3)
    assert len({one.input for one in found}) == 3
    text = file.read_text()
    assert all(one.input + one.expected in text for one in found)


@pytest.mark.parametrize(
    "example",
    [
        ProbeExample(title="a dog", input="a dog", text_b="a cat", expected="no"),
        ProbeExample(title="a dog", input=("a", "dog"), expected="O O"),
        ProbeExample(title="x.png", input=np.arange(12, dtype=np.uint8).reshape(2, 2, 3)),
        ProbeExample(title="x.npz:1", input=np.array([[0.5, -1.5]], np.float32)),
    ],
)
def test_examples_come_back_from_json(example: ProbeExample) -> None:
    back = ProbeExample.from_json(json.loads(json.dumps(example.to_json())))
    assert back.to_json() == example.to_json()
    np.testing.assert_array_equal(back.input, example.input)


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        {},
        {"title": 1, "input": "a", "text_b": "", "expected": ""},
        {"title": "a", "input": [1], "text_b": "", "expected": ""},
        {"title": "a", "input": 3, "text_b": "", "expected": ""},
        {"title": "a", "input": {"dtype": "object", "shape": [1], "base64": ""}, "text_b": "", "expected": ""},
        {"title": "a", "input": {"dtype": "uint8", "shape": [9], "base64": "AAAA"}, "text_b": "", "expected": ""},
        {"title": "a", "input": {"dtype": "uint8", "shape": "x", "base64": "AAAA"}, "text_b": "", "expected": ""},
        {"title": "a", "input": {"dtype": "uint8", "shape": [3], "base64": 5}, "text_b": "", "expected": ""},
    ],
)
def test_damaged_examples_are_refused(damaged: Any) -> None:
    with pytest.raises(ValueError, match="probe example"):
        ProbeExample.from_json(damaged)


# -- recording ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_recorded(name: str, tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of(name, run)
    assert recorder.record(model, 0) == []
    [file] = trace_files(recorded_steps(run)[0]).values()
    trace = read_probes(run).trace(0, 0)
    whole = traced(name, beam=1)
    assert trace.attentions() == whole.attentions()
    for path in trace.attentions():
        weights = trace[f"{path}.weights"]
        assert weights.axes == whole[f"{path}.weights"].axes
        np.testing.assert_allclose(weights.values.sum(-1), 1.0, atol=2e-3)
    has_stream = not name.startswith(("rnn", "birnn", "captioner-rnn"))
    assert bool(trace.names("*.norm")) == has_stream
    assert bool(trace.names("*.lens")) == (has_stream and name not in ("resnet", "convnet"))
    assert trace["logits.top_ids"].shape[-1] == min(probes.TOP, whole["logits"].shape[-1])
    kinds = (
        "weights",
        "norm",
        "lens",
        "lens_ranks",
        "lens_ids",
        "lens_shares",
        "logits",
        "top_ids",
        "top_values",
        "log_sum",
    )
    assert {tap.rpartition(".")[2] for tap in trace} <= set(kinds)
    assert file.stat().st_size < 40_000


def test_the_lens_ends_with_the_output(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("transformer", run)
    recorder.record(model, 0)
    trace = read_probes(run).trace(0, 0)
    found = trace["logits.top_ids"].values == np.array(trace.reading.writes)[:, None]
    assert found.any(-1).all()  # what is written is among them
    shares = np.exp(trace["logits.top_values"].values - trace["logits.log_sum"].values[:, None])[found]
    np.testing.assert_allclose(trace[trace.names("*.lens")[-1]].values, shares, atol=2e-3)
    whole = traced("transformer", beam=1, max_length=32)
    assert [trace.reading.outputs(id) for id in trace["logits.top_ids"].values[0]] == [
        whole.reading.outputs(int(id)) for id in np.argsort(-whole["logits"].values[0])[: probes.TOP]
    ]
    norms = whole.residual_norms()
    np.testing.assert_allclose(trace.residual_norms().values, norms.values, rtol=2e-3)
    assert trace.residual_norms().labels == norms.labels
    lens, expected = trace.lens(top=3), whole.lens(top=3)
    assert (lens.sublayers, lens.reads, lens.writes) == (expected.sublayers, expected.reads, expected.writes)
    np.testing.assert_array_equal(lens.ids, expected.ids)
    np.testing.assert_array_equal(lens.ranks, expected.ranks)
    np.testing.assert_allclose(lens.probabilities, expected.probabilities, atol=1e-3)


@pytest.mark.parametrize("name", ["transformer", "gpt", "resnet"])
def test_recording_leaves_no_mark(name: str, tmp_path: Path) -> None:
    recorder, model = recorder_of(name, new_run(tmp_path))
    model.train()
    next(module for module in model.modules() if not list(module.children())).eval()  # a mode of its own
    modes = [module.training for module in model.modules()]
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    torch.manual_seed(7)
    generator = torch.get_rng_state()
    recorder.record(model, 0)
    assert torch.equal(torch.get_rng_state(), generator)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())


def test_the_mode_comes_back_after_an_error() -> None:
    model = torch.nn.Dropout()
    with pytest.raises(RuntimeError, match=r"^no$"), left_as_it_was(model):
        assert not model.training
        raise RuntimeError("no")
    assert model.training


def test_large_maps_are_kept_as_their_mean_over_heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST_NUMBERS", 10)
    run = new_run(tmp_path)
    recorder, model = recorder_of("gpt", run)
    recorder.record(model, 0)
    weights = read_probes(run).trace(0, 0)["decoder.1.self_attention.weights"]
    assert weights.shape[0] == 1
    np.testing.assert_allclose(weights.values.sum(-1), 1.0, atol=2e-3)


def test_a_text_that_cannot_be_traced_is_said_once_and_the_others_are_recorded(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("transformer", run)
    good = ProbeExample(title="the dog", input="the dog")
    probe_folder.write_examples(run, [ProbeExample(title="", input=""), good])
    recorder.settings = InspectionConfig(probes=2)
    assert recorder.record(model, 0) == [
        "probe example 0 cannot be traced: An empty text has nothing to look into",
    ]
    assert recorder.record(model, 100) == []
    found = read_probes(run)
    assert [found.outputs[step][0] for step in (0, 100)] == [None, None]
    assert found.outputs[0][1]


def test_a_full_disk_is_said_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("gpt", run)

    def full(*arguments: Any, **options: Any) -> None:
        raise full_disk(run.path, needed=1)

    with monkeypatch.context() as patch:
        patch.setattr("regard.runs.arrays.write_atomically", full)
        [note] = recorder.record(model, 0)
        assert note.startswith("the probe examples were not recorded at step 0: The disk is full: ")
        assert recorder.record(model, 100) == []
    assert recorded_steps(run) == {}
    assert not list(run.traces.glob(".tmp-*"))
    recorder.record(model, 200)
    assert list(recorded_steps(run)) == [200]


def test_the_examples_of_a_run_stay(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("gpt", run)
    recorder.settings = InspectionConfig(probes=3)
    assert recorder.record(model, 0) == ["the run keeps its 1 probe examples: inspection.probes is for new runs"]
    assert recorder.record(model, 100) == []


# -- when, and how many -------------------------------------------------------------------------------------------------


def test_records_are_due_every_so_many_steps_and_at_the_end(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("gpt", run, every=10)
    assert [step for step in range(31) if recorder.is_due(step)] == [0, 10, 20, 30]
    assert recorder.is_due(17, ends=True)
    recorder.record(model, 10)
    assert not recorder.is_due(10)
    recorder.settings = InspectionConfig(probes=0)
    assert not recorder.is_due(0)
    assert not recorder.is_due(17, ends=True)


def test_the_distance_grows_with_the_run() -> None:
    assert [spacing(step, 10) for step in (0, 10, 639, 640, 1279, 1280, 10**6)] == [10, 10, 10, 20, 20, 40, 20_480]


def empty_step(run: RunFolder, step: int) -> None:
    (run.traces / f"step-{step:08d}").mkdir()


def test_of_too_many_steps_every_second_one_goes(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for step in range(64):
        empty_step(run, step)
    thin_out(run)
    assert len(recorded_steps(run)) == 64
    empty_step(run, 64)
    thin_out(run)
    assert list(recorded_steps(run)) == list(range(0, 65, 2))
    for step in range(65, 98):
        empty_step(run, step)
    thin_out(run)
    kept = list(recorded_steps(run))
    assert (kept[0], kept[-1]) == (0, 97)
    assert kept[:17] == list(range(0, 65, 4))
    assert not list(run.traces.glob(".tmp-*"))


def test_a_whole_run_has_a_bounded_number_of_evenly_spaced_steps(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, _ = recorder_of("gpt", run, every=10)
    for step in range(0, 2_000, 10):
        if recorder.is_due(step):
            empty_step(run, step)
            thin_out(run)
    assert list(recorded_steps(run)) == list(range(0, 2_000, 40))


def test_what_came_after_the_checkpoint_goes(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for step in (0, 10, 20):
        empty_step(run, step)
    (run.traces / ".tmp-new-step-00000030-1").mkdir()
    (run.traces / "notes.txt").write_text("mine")
    drop_after(run, step=10)
    assert sorted(path.name for path in run.traces.iterdir()) == ["notes.txt", "step-00000000", "step-00000010"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (run.traces / "step-00000020").symlink_to(tmp_path / "elsewhere")
    assert recorded_steps(run) == {}
    drop_after(run, step=0)
    assert (tmp_path / "elsewhere").is_dir()


# -- reading ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> RunFolder:
    """Two examples at three steps, with the metrics of a run."""
    run = new_run(tmp_path)
    recorder, model = recorder_of("transformer", run, n=2)
    for step in (0, 10, 20):
        recorder.record(model, step)
    kinds = [("train", step, 5.0 - step / 10) for step in range(1, 21)] + [("valid", 20, 2.5)]
    run.metrics_file.write_text(
        "".join(json.dumps({"kind": kind, "step": step, "loss": loss}) + "\n" for kind, step, loss in kinds)
    )
    return run


def test_the_timeline_has_outputs_beside_losses(recorded: RunFolder) -> None:
    found = read_probes(recorded)
    assert found.steps == (0, 10, 20)
    assert found.losses == {10: 4.0, 20: 3.0}
    assert found.valid_losses == {20: 2.5}
    [output] = {one for own in found.outputs.values() for one in own}
    assert found.lines()[:6] == [
        f"probe 0: {found.titles[0]}",
        "expected: right",
        "  step   loss  written",
        f"     0      –  {output}",
        f"    10  4.000  {output}",
        f"    20  3.000  {output}",
    ]
    as_json = json.loads(json.dumps(found.to_json()))
    assert as_json["probes"] == [{"title": found.titles[0], "expected": "right"}] * 2
    assert as_json["steps"][2] == {"step": 20, "loss": 3.0, "valid_loss": 2.5, "outputs": [output, output]}
    assert found.notes == ()


def test_an_output_does_not_repeat_its_input(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder, model = recorder_of("gpt", run)
    recorder.record(model, 0)
    found = read_probes(run)
    [output] = found.outputs[0]
    assert output is not None
    assert output.startswith("the dog is ")
    assert found.lines()[-1] == f"     0     –  {output.removeprefix('the dog is ')}"


def damaged(change: Callable[[bytes], bytes]) -> Any:
    return lambda file: file.write_bytes(change(file.read_bytes()))


@pytest.mark.parametrize(
    "damage",
    [
        damaged(lambda content: b""),
        damaged(lambda content: content[: len(content) // 2]),
        damaged(lambda content: b"\xff" * len(content)),
    ],
)
def test_a_damaged_trace_is_skipped_and_said(recorded: RunFolder, damage: Any) -> None:
    damage(recorded.traces / "step-00000010" / "probe-1.trace")
    found = read_probes(recorded)
    assert found.steps == (0, 10, 20)
    assert found.outputs[10][1] is None
    assert found.outputs[10][0]
    [note] = found.notes
    assert note.startswith("step-00000010/probe-1.trace was skipped: ")
    assert found.lines()[-1] == f"note: {note}"


def test_a_step_that_is_thinned_out_while_it_is_read_was_never_there(
    recorded: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = probe_timeline.load_trace

    def thinned(path: Path) -> Any:
        if path.parent.name == "step-00000010" and path.exists():
            shutil.rmtree(path.parent)
        return load(path)

    monkeypatch.setattr(probe_timeline, "load_trace", thinned)
    found = read_probes(recorded)
    assert (found.steps, found.losses, found.notes) == ((0, 20), {20: 3.0}, ())


def test_damaged_examples_and_metrics_are_skipped_and_said(recorded: RunFolder) -> None:
    titles = read_probes(recorded).titles
    (recorded.traces / "probes.json").write_text("{")
    with recorded.metrics_file.open("a") as file:
        file.write('{"step": 20, "kind": 5}\n')
    found = read_probes(recorded)
    assert found.titles == titles  # which the traces have too
    assert found.losses == {10: 4.0, 20: 3.0}
    first, second = found.notes
    assert first.startswith("probes.json is damaged, and was skipped: ")
    assert second.startswith("metrics.jsonl was read in part: ")


def test_a_run_without_probes_says_how_to_have_some(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with pytest.raises(RunError) as caught:
        read_probes(run)
    assert caught.value.problem == f"{run} has no traces of probe examples: none were recorded while it was trained."
    assert caught.value.remedy == "Train with some: regard train … --set inspection.probes=4"


def test_a_live_run_that_has_recorded_nothing_yet_is_read(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    recorder_of("gpt", run)
    found = read_probes(run)
    assert (found.steps, found.titles) == ((), ("the dog is",))
    assert found.lines() == ["probe 0: the dog is", "expected: right", "  step  loss  written"]


def test_a_step_or_an_example_that_there_is_not(recorded: RunFolder) -> None:
    found = read_probes(recorded)
    with pytest.raises(UsageError) as caught:
        found.trace(15)
    assert caught.value.problem == f"Step 15 was not recorded in {recorded}."
    assert caught.value.remedy == "Recorded steps: 0, 10, 20."
    with pytest.raises(UsageError) as caught:
        found.trace(10, 2)
    assert caught.value.problem == f"There is no probe example 2 in {recorded}."
    assert caught.value.remedy == "It has 2, which count from 0."


def test_a_step_is_written_anew(recorded: RunFolder) -> None:
    trace = read_probes(recorded).trace(10, 0)
    write_step(recorded, 10, {0: trace})
    assert list(trace_files(recorded_steps(recorded)[10])) == [0]
