"""The difference of two traces: nothing from itself, and what an ablation, another model or another input changes."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.inspection.families import FAMILIES, subject_of, traced

from regard.errors import UsageError
from regard.inspection import trace_file
from regard.inspection.difference import compare_traces
from regard.inspection.trace import trace_input
from regard.inspection.trace_file import load_trace


@pytest.mark.parametrize("name", FAMILIES)
def test_a_trace_differs_from_itself_by_nothing(name: str) -> None:
    trace = traced(name)
    found = trace.difference(trace)
    assert set(found.taps) == set(trace)
    assert found.largest == 0.0
    assert found.diverges is None
    assert not found.not_compared
    assert all(own.change == 0.0 and own.before == own.after for own in found.tokens)
    assert found.tokens


def test_an_ablation_changes_what_comes_after_it() -> None:
    trace = traced("gpt")
    found = trace.difference(cut := trace.without("decoder.1.feed_forward"))
    assert found.taps["decoder.1.self_attention_residual.output"] == 0.0
    logits, after = trace["logits"].values, cut["logits"].values
    assert found.taps["logits"] == pytest.approx(np.abs(logits - after).max())
    assert [own.position for own in found.tokens] == list(range(2, 8))  # what was given is no choice of the model's
    own = found.tokens[0]
    token = trace.reading.writes[2]
    assert own.before.logit == pytest.approx(logits[2, token])
    assert own.after.logit == pytest.approx(after[2, token])
    assert own.after.log_prob == pytest.approx(after[2, token] - np.log(np.exp(after[2]).sum()), rel=1e-5)
    assert own.change == pytest.approx((own.after.log_prob or 0) - (own.before.log_prob or 0))
    others = np.delete(np.arange(13), token)
    assert own.before.rival == trace.reading.outputs(int(others[logits[2, others].argmax()]))
    assert own.before.rival_logit == pytest.approx(logits[2, others].max())


def test_outputs_diverge_somewhere() -> None:
    first, second = (trace_input(subject_of("transformer", seed=seed)) for seed in (2, 3))
    found = compare_traces(first, second)
    a, b = ([own.reading.outputs(id) for id in own.reading.writes] for own in (first, second))
    assert found.diverges is not None
    assert a[: found.diverges] == b[: found.diverges]
    assert a[found.diverges] != b[found.diverges]
    assert len(found.tokens) == found.diverges + 1
    assert f"what is written diverges at position {found.diverges}" in found.lines()
    assert found.outputs == (first.output, second.output)


def test_classes_are_compared_too() -> None:
    found = traced("vit").difference(traced("vit").without("encoder.1.self_attention"))
    [own] = found.tokens
    assert own.token == "a"
    assert own.before.rival == "b"


def test_other_inputs_are_compared_as_far_as_shapes_agree() -> None:
    trace = traced("bert-tag")
    subject = trace.live("")
    other = trace_input(
        type(subject)(task=subject.task, model=subject.model, input="the dog .", options=subject.options)
    )
    found = compare_traces(trace, other)
    assert "encoder.0.self_attention.weights" in found.not_compared
    assert "not compared, as shapes differ or only one has them" in found.lines()[-1]


def test_traces_without_a_common_tap_are_refused() -> None:
    first, second = traced("convnet"), traced("gpt")
    for name in ("logits",):
        del first._arrays[name]
    first._order.remove("logits")
    with pytest.raises(UsageError, match=r"^The traces share no tap.*\nCompare traces of models of one family"):
        compare_traces(first, second)


def test_files_that_kept_the_largest_logits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trace_file, "MANY_OUTPUTS", 12)
    monkeypatch.setattr(trace_file, "TOP_LOGITS", 3)
    trace = traced("gpt")
    found = compare_traces(trace, load_trace(trace.save(tmp_path / "a.trace")))
    assert "logits" in found.not_compared
    for own in found.tokens:
        assert own.after.logit == pytest.approx(own.before.logit, rel=1e-5)
        assert own.after.log_prob == pytest.approx(own.before.log_prob, rel=1e-5)
        assert own.after.rival == own.before.rival


def test_lines_and_json() -> None:
    trace = traced("gpt")
    found = trace.difference(trace.without("decoder.0.self_attention", heads=[0]))
    assert any(line.startswith("largest differences") for line in found.lines())
    assert json.loads(json.dumps(found.to_json()))["tokens"][0]["position"] == 2
    assert "no difference in 26 taps" in trace.difference(trace).lines()
