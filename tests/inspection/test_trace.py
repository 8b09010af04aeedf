"""The trace: one for each family, with the taps that it must have and the names of their axes."""

import numpy as np
import pytest
from tests.inspection.families import ATTENDING, FAMILIES, OF_NUMBERS, traced

from regard.errors import UsageError
from regard.inspection import trace as module


@pytest.mark.parametrize("name", [*FAMILIES, *OF_NUMBERS])
def test_every_family_has_a_trace(name: str) -> None:
    trace = traced(name)
    assert len(trace) > 4
    assert trace.names("*logits") or name == "bert-similarity", "which says a vector"
    for tap in trace:
        array = trace[tap]
        assert array.values.ndim == len(array.axes), tap
        assert np.isfinite(array.values).all(), tap
        for axis, labels in array.labels.items():
            assert len(labels) == array.shape[array.axes.index(axis)], (tap, axis)


@pytest.mark.parametrize("name", ATTENDING)
def test_weights_are_labelled_and_sum_to_one(name: str) -> None:
    trace = traced(name)
    assert trace.attentions()
    for path in trace.attentions():
        weights = trace[f"{path}.weights"]
        assert weights.axes[0] == "head"
        assert set(weights.labels) == set(weights.axes[1:]), path
        np.testing.assert_allclose(weights.values.sum(-1), 1.0, atol=1e-5)
        assert path in trace.formulas


@pytest.mark.parametrize("name", FAMILIES)
def test_recording_again_gives_the_same_bits(name: str) -> None:
    trace = traced(name)
    found, left_out = module.record_pass(trace.live(""), trace.reading, ["*"], most_bytes=None)
    assert not left_out
    assert {tap: array.values.tobytes() for tap, array in found.items()} == {
        tap: array.values.tobytes() for tap, array in trace.items()
    }


@pytest.mark.parametrize("name", ["transformer", "rnn-additive", "resnet"])
@pytest.mark.parametrize("most_bytes", [0, 500, 4_000])
def test_what_is_too_large_is_left_out_and_recorded_on_demand(
    name: str, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = traced(name)
    monkeypatch.setattr(module, "MOST_BYTES", most_bytes)
    trace = traced(name)
    assert set(trace) == set(whole)
    assert sum(trace[tap].values.nbytes for tap in trace.kept) <= most_bytes
    assert set(trace.left_out) == set(whole) - set(trace.kept) != set()
    assert trace.formulas == whole.formulas
    for tap in whole:
        assert trace[tap].values.tobytes() == whole[tap].values.tobytes()
    assert not trace.left_out
    assert set(trace.kept) == set(whole)


def test_small_taps_are_kept_beside_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows a tap that is too large is not left out with it."""
    monkeypatch.setattr(module, "MOST_BYTES", 4 * 300)
    trace = traced("convnet")
    assert "layers.0.features" in trace.left_out
    assert "logits" in trace.kept


def test_a_pattern_is_recorded_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    trace = traced("transformer")
    trace.record("decoder.*.weights")
    assert trace.kept == trace.names("decoder.*.weights")
    assert trace.checks().passed
    assert trace.kept == trace.names("decoder.*.weights")  # what the checks record they do not keep


def test_unknown_taps_get_the_near_one() -> None:
    trace = traced("transformer")
    with pytest.raises(UsageError, match=r"no tap 'decoder.0.cross_attention.weight'.*\nDid you mean .*weights\?"):
        trace["decoder.0.cross_attention.weight"]
    assert "decoder.0.cross_attention.weight" not in trace


def test_formulas_are_of_attentions() -> None:
    for name in ATTENDING:
        trace = traced(name)
        assert list(trace.formulas) == [path for path in trace.formulas if path in trace.attentions()]


def test_interventions_come_before_what_is_recorded() -> None:
    trace = traced("gpt").without("decoder.0.self_attention", heads=[0])
    assert not trace["decoder.0.self_attention.heads"].values[0].any()
    assert trace.replaced == ("decoder.0.self_attention.heads",)


def test_what_is_written_under_interventions() -> None:
    trace = traced("transformer")
    cut = trace.without("decoder.1.feed_forward")
    assert cut.output == trace.output
    anew = cut.rewritten()
    assert anew.live("").interventions == cut.live("").interventions
    assert anew.checks().passed


def test_parts_of_an_array_by_the_names_of_axes() -> None:
    weights = traced("transformer")["decoder.0.cross_attention.weights"]
    row = weights.at(head=1, target=2)
    assert row.axes == ("source",)
    assert row.labels["source"][1] == "dog"
    np.testing.assert_array_equal(np.asarray(row), weights[1, 2])
    with pytest.raises(UsageError, match=r"no axis 'sourse': they are head, target, source.\nDid you mean source\?"):
        weights.at(sourse=1)
    with pytest.raises(UsageError, match=r"The axis head has 2 places, and none is 2"):
        weights.at(head=2)
