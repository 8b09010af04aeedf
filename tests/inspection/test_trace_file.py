"""Trace files: what is written comes back, what is large stays small, and what is damaged is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from tests.inspection.families import FAMILIES, traced
from tests.inspection.test_lens import STREAMS

import regard
from regard.errors import DataError, UsageError
from regard.inspection import lens_arrays, overview, trace_file
from regard.inspection.lens_arrays import OF_LENS
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.inspection.trace_file import load_trace
from regard.inspection.walk import walk


def opened(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and the manifest of a file."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return load(content), json.loads(header["__metadata__"]["facts"])


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Path:
    """The same file with other arrays or another manifest."""
    arrays, manifest = opened(path)
    change(arrays, manifest)
    path.write_bytes(save(arrays, metadata={"facts": json.dumps(manifest)}))
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return traced("transformer").save(tmp_path / "a.trace")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_comes_back(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    path = trace.save(tmp_path / "a.trace", full_precision=True)
    found = regard.load_trace(path)
    assert [tap for tap in found if not tap.endswith(OF_LENS)] == list(trace)
    for tap in trace:
        np.testing.assert_array_equal(found[tap].values, trace[tap].values)
        assert (found[tap].axes, dict(found[tap].labels)) == (trace[tap].axes, dict(trace[tap].labels))
    old, new = trace.reading, found.reading
    assert (new.places, new.memory, new.writes, new.n_given) == (old.places, old.memory, old.writes, old.n_given)
    assert new.causal == old.causal
    assert [new.written(place) for place in range(9)] == [old.written(place) for place in range(9)]
    assert (found.title, found.output, found.formulas) == (trace.title, trace.output, trace.formulas)
    assert found.subject is None
    assert found.full_precision
    if old.image is not None:
        assert new.image is not None
        np.testing.assert_array_equal(new.image, old.image)


@pytest.mark.parametrize("name", ["transformer", "resnet", "captioner-rnn"])
def test_half_precision_is_near_and_small(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    half, full = (trace.save(tmp_path / f"{own}.trace", full_precision=own) for own in (False, True))
    assert half.stat().st_size < full.stat().st_size
    found = load_trace(half)
    assert not found.full_precision
    for tap in trace:
        np.testing.assert_allclose(found[tap].values, trace[tap].values, rtol=1e-3, atol=1e-6)
        assert found[tap].values.dtype == np.float32


def test_a_loaded_trace_is_saved_again_as_it_is(saved: Path, tmp_path: Path) -> None:
    again = load_trace(saved).save(tmp_path / "b.trace", full_precision=True)
    assert again.read_bytes() == saved.read_bytes()
    assert not load_trace(again).full_precision


def test_numbers_beyond_float16_stay_float32(tmp_path: Path) -> None:
    trace = traced("convnet")
    factors = {"layers.0.features": 1e6, "layers.1.features": 1e-9}
    for name, factor in factors.items():
        trace._arrays[name] = NamedArray(trace[name].values * np.float32(factor), trace[name].axes)
    path = trace.save(tmp_path / "a.trace")
    assert opened(path)[1]["float32"] == list(factors)
    for name in factors:
        np.testing.assert_array_equal(load_trace(path)[name].values, trace[name].values)


@pytest.fixture
def many_outputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Trace, Path]:
    """A trace of which only the three largest logits of each position are kept."""
    monkeypatch.setattr(trace_file, "MANY_OUTPUTS", 12)
    monkeypatch.setattr(trace_file, "TOP_LOGITS", 3)
    trace = traced("gpt")
    return trace, trace.save(tmp_path / "a.trace")


def test_of_many_logits_the_largest_are_kept(many_outputs: tuple[Trace, Path]) -> None:
    trace, path = many_outputs
    found, logits = load_trace(path), trace["logits"].values
    ids = found["logits.top_ids"].values
    assert ids.shape == (9, 3)
    np.testing.assert_allclose(
        found["logits.top_values"].values, np.take_along_axis(logits, ids.astype(int), 1), rtol=1e-6
    )
    assert list(ids[:, 0]) == list(logits.argmax(-1))
    assert all(token in ids[place] for place, token in enumerate(trace.reading.writes))
    log_sum = found["logits.log_sum"].values
    np.testing.assert_allclose(log_sum, np.log(np.exp(logits).sum(-1)), rtol=1e-6)
    assert [found.reading.outputs(int(one)) for one in ids[0]] == [trace.reading.outputs(int(one)) for one in ids[0]]


def test_all_logits_of_such_a_file_are_refused(many_outputs: tuple[Trace, Path]) -> None:
    found = load_trace(many_outputs[1])
    assert "logits" in found
    assert found.left_out == {"logits": (9, 13)}
    with pytest.raises(
        UsageError, match=r"^logits was left out of the trace, as it is large, and the model is not here"
    ):
        found["logits"]


def test_with_full_precision_all_logits_are_kept(many_outputs: tuple[Trace, Path]) -> None:
    trace, path = many_outputs
    found = load_trace(trace.save(path, full_precision=True))
    np.testing.assert_array_equal(found["logits"].values, trace["logits"].values)


@pytest.mark.parametrize("name", [name for name in STREAMS if name in FAMILIES])
def test_the_lens_and_the_lengths_of_the_stream_come_back(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    found = load_trace(trace.save(tmp_path / "a.trace"))
    expected, lens = trace.lens(top=2), found.lens(top=2)
    assert (lens.taps, lens.reads, lens.writes) == (expected.taps, expected.reads, expected.writes)
    np.testing.assert_array_equal(lens.ids, expected.ids)
    np.testing.assert_array_equal(lens.ranks, expected.ranks)
    np.testing.assert_allclose(lens.probabilities, expected.probabilities, atol=1e-3)
    np.testing.assert_allclose(lens.followed, expected.followed, atol=1e-3)
    assert lens.to_json()["positions"] == expected.to_json()["positions"]
    norms = found.residual_norms()
    np.testing.assert_allclose(norms.values, trace.residual_norms().values, rtol=2e-3)
    assert norms.labels == trace.residual_norms().labels


def test_a_file_keeps_as_much_of_the_lens_as_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traced("gpt")
    more, none = trace.save(tmp_path / "more.trace", lens=7), trace.save(tmp_path / "none.trace", lens=0)
    assert load_trace(more).lens(top=7).ids.shape[-1] == 7
    with pytest.raises(UsageError) as caught:
        load_trace(more).lens(top=8)
    assert str(caught.value) == (
        "The trace was read from a file, which keeps the 7 likeliest of each state, not 8.\n"
        "Ask for 1 to 7, or keep more of them: trace.save(FILE, lens=8)"
    )
    monkeypatch.setattr(lens_arrays, "MOST_PRODUCTS", 1)  # a lens that would take long is kept only if it is asked for
    for path in (none, trace.save(tmp_path / "large.trace")):
        with pytest.raises(UsageError, match=r"The logit lens needs the output layer, and its tokens were not kept"):
            load_trace(path).lens()


def test_what_is_recorded_can_be_looked_at_without_the_model(many_outputs: tuple[Trace, Path]) -> None:
    trace, path = many_outputs
    found = load_trace(path)
    old, new = overview.to_json(trace), overview.to_json(found)
    assert [step["writes"] for step in new["steps"]] == [step["writes"] for step in old["steps"]]
    for step, expected in zip(new["steps"], old["steps"], strict=True):
        assert step["probability"] == pytest.approx(expected["probability"], abs=1e-6)
        assert [one["text"] for one in step["rivals"]] == [one["text"] for one in expected["rivals"]][
            : len(step["rivals"])
        ]
        assert [one["token"] for one in step["attends_to"]] == [one["token"] for one in expected["attends_to"]]
    assert walk(found, 2).lines()[-1] == walk(trace, 2).lines()[-1]
    assert [one.label for one in found.head_labels()] == [one.label for one in trace.head_labels()]
    assert found.cell("decoder.1.self_attention", head=1, query=3, key=1).error < 2e-2
    np.testing.assert_allclose(found.rollout().values, trace.rollout().values, atol=1e-3)


def test_what_needs_the_model_is_refused(saved: Path) -> None:
    trace = load_trace(saved)
    for use in (lambda: trace.without("decoder.0.feed_forward"), trace.reading.forward, trace.rewritten):
        with pytest.raises(UsageError, match=r"the trace was read from a file.\nLoad the run"):
            use()


def test_interventions_are_told(tmp_path: Path) -> None:
    cut = traced("transformer").without("decoder.0.cross_attention", heads=[1])
    found = load_trace(cut.save(tmp_path / "a.trace", full_precision=True))
    assert found.replaced == ("decoder.0.cross_attention.heads",)
    assert found.checks().passed


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traced("gpt")
    path = trace.save(tmp_path / "folder" / "a.trace")
    before = path.read_bytes()

    def stop(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(UsageError, match=r"^The disk is full.*\nFree some space, or choose another place"):
        trace.save(path, full_precision=True)
    assert [own.name for own in path.parent.iterdir()] == ["a.trace"]
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"^Cannot write .*a.trace: (File exists|Not a directory)"):
        traced("convnet").save(tmp_path / "file" / "a.trace")


# -- what is no trace -----------------------------------------------------------------------------------------------------


def refused(path: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        load_trace(path)
    assert str(path) in caught.value.problem
    assert "regard.load(RUN).trace" in caught.value.remedy


def test_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    refused(tmp_path / "nothing", r"cannot be read: No such file or directory")
    refused(tmp_path, r"cannot be read: it is a folder, not a file")
    (tmp_path / "text").write_text("Not a trace, and longer than eight bytes.")
    refused(tmp_path / "text", r"is not a trace that can be read: it is damaged, or of another kind")
    (tmp_path / "empty").write_bytes(b"")
    refused(tmp_path / "empty", r"is not a trace that can be read: it is damaged")
    (tmp_path / "weights").write_bytes(save({"a": np.zeros(3)}, metadata={"facts": "{}"}))
    refused(tmp_path / "weights", r"it is a safetensors file of another kind")
    (tmp_path / "plain").write_bytes(save({"a": np.zeros(3)}))
    refused(tmp_path / "plain", r"is not a trace")
    monkeypatch.setattr(trace_file, "MOST_FILE", 5_000)
    refused(saved, r"it has more than 0 MB")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_truncated_files(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    refused(saved, r"is not a trace that can be read")


def test_another_version(saved: Path) -> None:
    refused(
        rewritten(saved, lambda arrays, manifest: manifest.update(version=2)), r"version 2; this regard reads version 1"
    )


@pytest.mark.parametrize("key", list(range(17)))
def test_a_manifest_without_a_part(saved: Path, key: int) -> None:
    name = list(opened(saved)[1])[key]
    rewritten(saved, lambda arrays, manifest: manifest.pop(name))
    if name != "float32":  # which says something to people only
        refused(saved, r"is not a trace that can be read|of version None")


def _shortened(manifest: dict[str, Any]) -> None:
    manifest["positions"][0]["labels"].pop()


_LENS = "decoder.0.self_attention_residual.output"
HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "labels that are no texts": lambda a, m: m["positions"][0].update(labels=[1] * 7),
    "labels that are too few": lambda a, m: _shortened(m),
    "ids below 0": lambda a, m: m["positions"][0].update(ids=[-1] * 7),
    "spans of three": lambda a, m: m["positions"][0].update(spans=[[0, 1, 2]] * 7),
    "a grid larger than its positions": lambda a, m: m["positions"][0].update(grid=[100, 100]),
    "a table in the place of a list": lambda a, m: m.update(positions={}),
    "positions that are not there": lambda a, m: m.update(places=[["", 99]]),
    "no positions at all": lambda a, m: m.update(places=[]),
    "a memory below 0": lambda a, m: m.update(memory=-1),
    "names of outputs that are no texts": lambda a, m: m.update(outputs={"1": ["x"]}),
    "an axis too many": lambda a, m: m["arrays"][0]["axes"].append("x"),
    "an axis that is no text": lambda a, m: m["arrays"][0].update(axes=[1, 2]),
    "an array that is not there": lambda a, m: m["arrays"][0].update(name="nothing"),
    "arrays of another shape": lambda a, m: a.update(
        {"decoder.0.self_attention.weights": np.ones((1, 2, 3), np.float16)}
    ),
    "numbers of another kind": lambda a, m: a.update({"logits": np.ones((6, 13), np.int8)}),
    "a formula of no kind": lambda a, m: m["formulas"]["decoder.0.self_attention"].update(kind="cubic"),
    "a formula of no head": lambda a, m: m["formulas"]["decoder.0.self_attention"].update(n_heads=0),
    "a scale that is no number": lambda a, m: m["formulas"]["decoder.0.self_attention"].update(scale="large"),
    "a formula with more fields": lambda a, m: m["formulas"]["decoder.0.self_attention"].update(evil=1),
    "shapes that are no numbers": lambda a, m: m.update(left_out={"x": ["y"]}),
    "writes that are no numbers": lambda a, m: m.update(writes=[None]),
    "a title that is no text": lambda a, m: m.update(title=["x"]),
    "half a yes": lambda a, m: m.update(causal=0.5),
    "a lens of other ranks": lambda a, m: a.update({f"{_LENS}.lens_shares": np.ones((6, 2), np.float16)}),
    "a lens of other positions": lambda a, m: a.update({f"{_LENS}.lens_ranks": np.ones(3, np.int32)}),
    "outputs of a lens below 0": lambda a, m: a.update({f"{_LENS}.lens_ids": np.full((6, 5), -1, np.int32)}),
    "outputs of a lens that are fractions": lambda a, m: a.update({f"{_LENS}.lens_ids": np.ones((6, 5), np.float16)}),
    "an image of no pixels": lambda a, m: a.update({trace_file.IMAGE: np.zeros(3)}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files(saved: Path, what: str) -> None:
    refused(rewritten(saved, HOSTILE[what]), r"is not a trace that can be read: its parts do not belong together \(")


def test_json_that_is_nested_too_deeply(saved: Path) -> None:
    saved.write_bytes(save(opened(saved)[0], metadata={"facts": "[" * 100_000}))
    refused(saved, r"is not a trace that can be read")


def test_outputs_beyond_the_vocabulary_have_their_numbers(tmp_path: Path) -> None:
    """Models may have more outputs than their vocabulary has tokens."""
    trace = traced("gpt")
    logits = trace["logits"]
    padded = np.concatenate([logits.values, logits.values[:, :3] + 9], axis=1)
    trace._arrays["logits"] = NamedArray(padded, logits.axes, logits.labels)
    found = load_trace(trace.save(tmp_path / "a.trace", lens=0))
    assert found.reading.outputs(14) == "#14" == trace.reading.outputs(14)
    assert found.difference(trace).tokens[0].before.rival.startswith("#")
