"""The residual stream and the logit lens: the last row is the model's output, in every family that has one."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from tests.inspection.families import FAMILIES, traced

from regard.errors import UsageError
from regard.evaluation.table import text_width
from regard.inspection import trace as trace_module
from regard.inspection.lens import stream_logits
from regard.inspection.residual_stream import find_logit, stream_taps
from regard.inspection.trace import Trace

CONVOLUTIONS = ["resnet", "convnet"]
RECURRENT = ["rnn-dot", "rnn-bilinear", "rnn-additive", "rnn", "birnn", "captioner-rnn"]
STREAMS = [name for name in FAMILIES if name not in (*RECURRENT, *CONVOLUTIONS)]


def from_file(trace: Trace) -> Trace:
    """The same trace without its model, as one that was read from a file."""
    return Trace(
        title=trace.title,
        output=trace.output,
        reading=trace.reading,
        arrays={name: trace[name] for name in trace},
        left_out={},
        formulas=trace.formulas,
    )


def largest_error(trace: Trace) -> float:
    *_, last = stream_logits(trace)
    return float(np.abs(last.numpy() - trace["logits"].values).max())


@pytest.mark.parametrize("name", STREAMS)
def test_the_last_row_is_the_output(name: str) -> None:
    trace = traced(name)
    assert largest_error(trace) <= 1e-5
    lens, logits = trace.lens(top=2), np.atleast_2d(trace["logits"].values)
    shares = torch.from_numpy(logits).softmax(-1).numpy()
    assert lens.ids.shape == (len(stream_taps(trace)), len(logits), 2)
    assert (lens.ids[-1, :, 0] == logits.argmax(-1)).all()
    np.testing.assert_allclose(lens.probabilities[-1, :, 0], shares.max(-1), atol=1e-6)
    assert lens.taps[-1].endswith("1.feed_forward_residual.output")
    json.dumps(lens.to_json())


@pytest.mark.parametrize("name", ["transformer", "transformer-post", "gpt"])
def test_under_an_ablation_the_last_row_is_its_output(name: str) -> None:
    trace = traced(name).without("decoder.1.self_attention", heads=[0]).without("decoder.0.feed_forward")
    assert largest_error(trace) <= 1e-5


def test_the_written_token_is_followed() -> None:
    trace = traced("gpt")
    lens, logits, writes = trace.lens(), trace["logits"].values, trace.reading.writes
    for position, id in enumerate(writes):
        assert lens.ranks[-1, position] == 1 + (logits[position] > logits[position, id]).sum()
        assert lens.writes[position] == trace.reading.outputs(id)
    assert len(lens.writes) == len(writes) + 1
    assert lens.ranks[-1, -1] == 1, "where nothing is written, the likeliest is followed"
    shares = torch.from_numpy(logits).softmax(-1).numpy()
    np.testing.assert_allclose(lens.followed[-1, 0], shares[0, writes[0]], rtol=1e-5)


@pytest.mark.parametrize("width", [60, 100])
def test_lines_fit_a_terminal(width: int) -> None:
    lens = traced("transformer").lens()
    lines = lens.lines(width)
    assert max(map(text_width, lines)) <= width
    assert sum(line.startswith("decoder.1.feed_forward ") for line in lines) == sum(
        line.startswith("reads ") for line in lines
    )
    assert repr(lens) == "\n".join(lens.lines())
    assert " ".join(lines).count("(start)") >= 1


def test_what_was_left_out_is_recorded_in_one_more_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = traced("transformer")
    monkeypatch.setattr(trace_module, "MOST_BYTES", 1_000)
    few = traced("transformer")
    assert len(few.kept) < len(few) / 2
    assert largest_error(few) <= 1e-5
    np.testing.assert_array_equal(few.lens().ids, whole.lens().ids)
    np.testing.assert_allclose(few.residual_norms().values, whole.residual_norms().values)
    assert few.contributions() == whole.contributions()
    np.testing.assert_allclose(few.rollout("decoder").values, whole.rollout("decoder").values)
    assert few.head_labels() == whole.head_labels()


def test_of_a_whole_image_there_is_one_column_of_classes() -> None:
    lens = traced("vit").lens()
    assert lens.reads == ("image",)
    assert lens.ids.shape == (5, 1, 2)
    assert "a 0." in lens.lines()[-2]
    assert traced("bert-classify").lens().reads == ("sequence",)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_networks_have_no_residual_stream(name: str) -> None:
    trace: Any = traced(name)
    for look in (trace.lens, trace.residual_norms, trace.contributions):
        with pytest.raises(UsageError, match=r"^This model has no residual stream\.\nUse a Transformer"):
            look()


def test_what_the_lens_refuses() -> None:
    trace = traced("gpt")
    with pytest.raises(UsageError, match="The lens shows 1 or more of the likeliest, not 0"):
        trace.lens(top=0)
    with pytest.raises(
        UsageError, match=r"The logit lens needs the output layer, and its tokens were not kept; the model"
    ):
        from_file(trace).lens()
    with pytest.raises(UsageError, match="has no residual stream"):
        traced("resnet").lens()


@pytest.mark.parametrize("name", STREAMS)
def test_norms_are_those_of_the_stream(name: str) -> None:
    trace = from_file(traced(name))
    norms, taps = trace.residual_norms(), stream_taps(trace)
    assert norms.axes == ("sublayer", trace[taps[0]].axes[0])
    assert norms.shape == (len(taps), len(trace.reading.own))
    np.testing.assert_allclose(norms.values[3], np.linalg.norm(trace[taps[3]].values, axis=1), rtol=1e-5)


def test_the_stream_of_bert_begins_behind_the_norm_of_its_embedding() -> None:
    assert stream_taps(traced("bert-mask"))[0] == "embedding.output"
    assert traced("captioner-vit").residual_norms().labels["sublayer"][:2] == (
        "text.target_embedding",
        "text.decoder.0.self_attention",
    )


def test_norms_of_feature_maps_are_means_over_pixels() -> None:
    trace = traced("resnet")
    norms = trace.residual_norms()
    assert norms.labels["sublayer"] == ("stem", "stage.0.block.0", "stage.1.block.0")
    pixels = trace["stem.output"].values.reshape(4, -1)
    assert norms.values[0] == pytest.approx(np.linalg.norm(pixels, axis=0).mean())
    assert traced("convnet").residual_norms().labels["sublayer"] == ("layers.0", "layers.1", "layers.2")


def test_a_logit_is_found_by_its_token() -> None:
    trace = traced("gpt")
    logits = trace["logits"].values
    written = find_logit(trace)
    assert (written.position, written.id) == (len(trace.reading.writes) - 1, trace.reading.writes[-1])
    dog = find_logit(trace, "dog", 2)
    assert trace.reading.outputs(dog.id) == "dog"
    assert dog.logit == pytest.approx(float(logits[2, dog.id]))
    assert find_logit(trace, dog.id, 2) == dog
    assert find_logit(trace, "", 8).id == logits[8].argmax()
    assert find_logit(traced("vit"), "b").position is None
    assert find_logit(traced("bert-tag")).position == 7


@pytest.mark.parametrize(
    ("name", "asked", "problem"),
    [
        ("gpt", ("dgo", 0), "'dgo' is not one token of this model.\nDid you mean dog?"),
        ("gpt", ("", 9), "There are the positions 0 to 8, and no 9.\nThey count from 0."),
        ("gpt", (999, 0), "There is no output 999: they are 0 to 12."),
        ("vit", ("a", 3), "This model says one thing of the whole input.\nLeave the position out."),
    ],
)
def test_a_logit_that_is_not_there(name: str, asked: tuple[Any, int], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_logit(traced(name), *asked)
    assert str(caught.value) == problem
