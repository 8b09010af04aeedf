"""Interventions: heads and sublayers that are cut, tensors that are put into the place of others."""

import numpy as np
import pytest
import torch
from tests.inspection.families import ATTENDING, FAMILIES, traced

from regard.errors import UsageError
from regard.inspection.interventions import Cut, intervening, sublayers
from regard.inspection.trace import Trace

TRANSFORMERS = [name for name in ATTENDING if "rnn" not in name]


def same(a: Trace, b: Trace) -> bool:
    """Whether two traces have the same bits."""
    return list(a) == list(b) and all(a[name].values.tobytes() == b[name].values.tobytes() for name in a)


@pytest.mark.parametrize("name", FAMILIES)
def test_none_cut_is_the_baseline_bit_for_bit(name: str) -> None:
    trace = traced(name)
    assert same(trace, trace.patched({}))
    subject = trace.live("")
    with torch.inference_mode():
        plain = trace.reading.forward()
        with intervening(subject.model, ()):
            assert torch.equal(trace.reading.forward(), plain)


@pytest.mark.parametrize("name", FAMILIES)
def test_patched_with_its_own_values_nothing_changes(name: str) -> None:
    trace = traced(name)
    for tap in trace:
        assert same(trace, trace.patched({tap: trace[tap]})), tap


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_without_any_head_the_bias_is_left(name: str) -> None:
    trace = traced(name)
    for path in trace.attentions():
        module = trace.live("").model.get_submodule(path)
        cut = trace.without(path, heads=range(module.n_heads))
        output = cut[f"{path}.output"].values
        bias = np.zeros(output.shape[1]) if module.output.bias is None else module.output.bias.detach().numpy()
        np.testing.assert_array_equal(output, np.broadcast_to(bias, output.shape))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_head_is_cut_and_the_others_stay(name: str) -> None:
    trace = traced(name)
    path = trace.attentions()[0]
    cut = trace.without(path, heads=[1])
    assert not cut[f"{path}.heads"].values[1].any()
    np.testing.assert_array_equal(cut[f"{path}.heads"].values[0], trace[f"{path}.heads"].values[0])
    np.testing.assert_array_equal(cut[f"{path}.weights"].values, trace[f"{path}.weights"].values)
    assert np.abs(cut[f"{path}.output"].values - trace[f"{path}.output"].values).max() > 1e-3
    assert cut.reading is trace.reading  # what is written stays


def test_without_a_sublayer_only_the_residual_goes_on() -> None:
    trace = traced("gpt")  # pre-norm
    before, path = trace["decoder.0.self_attention_residual.output"].values, "decoder.0.feed_forward"
    cut = trace.without(path)
    np.testing.assert_array_equal(cut[f"{path}_residual.output"].values, before)
    cut = trace.without("decoder.0.self_attention")
    np.testing.assert_array_equal(cut["decoder.0.self_attention_residual.output"].values, trace["embedding.sum"].values)


def test_without_its_attention_a_recurrent_decoder_reads_no_context() -> None:
    cut = traced("rnn-additive").without("decoder.attention")
    assert not cut["decoder.attention.context"].values.any()
    assert cut["decoder.attention.weights"].values.any()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_sublayer_can_be_cut(name: str) -> None:
    trace = traced(name)
    for path, tap in sublayers(trace.live("").model).items():
        cut = trace.without(path)
        assert not cut[f"{path}.{tap}"].values.any()
        assert cut.replaced == (f"{path}.{tap}",)


def test_cuts_add_up() -> None:
    trace = traced("transformer").without("decoder.0.cross_attention", heads=[0])
    both = trace.without("decoder.0.cross_attention", heads=[1])
    assert not both["decoder.0.cross_attention.heads"].values.any()


def test_activation_patching_carries_what_was_read_over() -> None:
    """With the memory of another input's keys and values, the decoder writes on from that input."""
    trace = traced("transformer")
    cut = trace.without("encoder.0.self_attention")
    carried = {name: cut[name] for name in trace.names("decoder.*.cross_attention.[kv]*")}
    np.testing.assert_allclose(trace.patched(carried)["logits"].values, cut["logits"].values, atol=1e-6)


def test_a_state_that_is_patched_at_each_step_is_the_one_that_goes_on() -> None:
    trace = traced("rnn-additive")
    for name in ("decoder.layers.0.state", "encoder.layers.0.backwards.state", "decoder.attention.weights"):
        other = trace[name].values * 0.5
        patched = trace.patched({name: other})
        np.testing.assert_array_equal(patched[name].values, other)
        assert np.abs(patched["logits"].values - trace["logits"].values).max() > 0


def test_unknown_names_get_the_near_one() -> None:
    trace = traced("transformer")
    with pytest.raises(UsageError, match=r"no sublayer 'decoder.0.cross_atention'.*\nDid you mean .*cross_attention\?"):
        trace.without("decoder.0.cross_atention")
    with pytest.raises(UsageError, match=r"There is no tap 'decoder.0.cross_attention.head'.*\nDid you mean .*heads\?"):
        trace.patched({"decoder.0.cross_attention.head": 0})
    with pytest.raises(UsageError, match=r"^decoder.0.cross_attention has the heads 0 to 1, and no head 2."):
        trace.without("decoder.0.cross_attention", heads=[2])
    with pytest.raises(UsageError, match=r"^decoder.0.feed_forward has no heads.\nCut it whole"):
        trace.without("decoder.0.feed_forward", heads=[0])


def test_tensors_of_another_shape_are_refused() -> None:
    trace = traced("transformer")
    name = "decoder.0.cross_attention.heads"
    for values in (trace[name].values[:, :3], trace[name].values.transpose(1, 0, 2), np.zeros(3), np.zeros((9, 9))):
        with pytest.raises(UsageError, match=r"heads has the shape \(2, 6, 4\) here, .*\nTake it from a trace"):
            trace.patched({name: values})


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("decoder.2.cross_attention:3", Cut(module="decoder.2.cross_attention", heads=(3,))),
        ("decoder.2.cross_attention:0,3", Cut(module="decoder.2.cross_attention", heads=(0, 3))),
        ("decoder.2.feed_forward", Cut(module="decoder.2.feed_forward")),
    ],
)
def test_cuts_are_written_and_read(text: str, cut: Cut) -> None:
    assert Cut.parse(text) == cut
    assert str(cut) == text


@pytest.mark.parametrize("text", ["a:x", "a:", "a:1,,2"])
def test_cuts_that_name_no_heads_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"does not name heads.\nWrite the sublayer, and its heads"):
        Cut.parse(text)
