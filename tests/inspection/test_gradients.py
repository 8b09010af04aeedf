"""Gradients by layer: against differences, under interventions, and without leaving anything behind."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inspection.families import FAMILIES, traced
from tests.inspection.test_lens import CONVOLUTIONS, STREAMS

from regard.errors import UsageError
from regard.inspection.residual_stream import find_logit, stream_or_map_taps
from regard.inspection.trace import Trace
from regard.parts.taps import listening

STEP = 1e-2


@pytest.mark.parametrize("name", [*STREAMS, *CONVOLUTIONS])
def test_every_state_has_a_gradient(name: str) -> None:
    trace = traced(name)
    found = trace.gradients()
    assert found.shape == trace.residual_norms().shape
    assert found.axes == trace.residual_norms().axes
    assert np.isfinite(found.values).all()
    assert (found.values.reshape(len(found), -1).max(1) > 0).all()
    assert trace.subject is not None
    assert all(parameter.grad is None for parameter in trace.subject.model.parameters())


RECURRENT = {
    "rnn-additive": ("target_embedding", "decoder.layers.0", "decoder.layers.1", "decoder"),
    "rnn": ("target_embedding", "decoder.layers.0", "decoder.layers.1", "decoder"),
    "birnn": ("embedding", *(f"encoder.layers.{n}.{way}" for n in (0, 1) for way in ("forwards", "backwards"))),
    "captioner-rnn": ("text.target_embedding", "text.decoder.layers.0", "text.decoder"),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_every_state_of_a_recurrent_network_has_a_gradient(name: str) -> None:
    trace = traced(name)
    found = trace.gradients()
    assert found.axes == ("layer", trace.reading.own.name)
    assert found.labels["layer"] == RECURRENT[name]
    assert found.shape == (len(RECURRENT[name]), len(trace.reading.own))
    assert found.labels[found.axes[1]] == trace.reading.own.labels
    assert (found.values.max(1) > 0).all()
    if name != "birnn":
        assert (trace.gradients(position=2).values[:, 3:] == 0).all(), "nothing later reaches the logit"
        assert (trace.gradients(position=2).values[:-1, :3] > 0).all(), "all that was before does, through the states"


@pytest.mark.parametrize("name", ["rnn", "rnn-additive", "transformer", "t5", "captioner-vit"])
def test_the_encoder_has_gradients_of_its_own(name: str) -> None:
    trace = traced(name)
    found = trace.gradients(stack="encoder")
    keys = trace.reading.at("encoder.0" if name != "captioner-vit" else "image.encoder.0")
    assert found.shape[1] == len(keys)
    assert (found.values[0] > 0).all(), "what is read reaches the logit, if only by the final state"


def test_a_stack_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"This model has no states of a stack 'encodr'\.\nDid you mean encoder\?"):
        traced("rnn").gradients(stack="encodr")
    with pytest.raises(UsageError, match=r"This model has no states of a stack 'encoder'"):
        traced("gpt").gradients(stack="encoder")


@pytest.mark.parametrize(
    ("name", "tap"),
    [("rnn", "decoder.layers.0.state"), ("birnn", "encoder.layers.0.backwards.state"), ("rnn-dot", "encoder.layers.0")],
)
def test_the_gradient_of_a_state_is_that_of_differences(name: str, tap: str) -> None:
    """Through all later steps: what replaces a state goes on from there."""
    trace = traced(name)
    tap = tap if tap.endswith("state") else f"{tap}.forwards.state"
    stack = "decoder" if tap.startswith("decoder") else "encoder"
    norms, asked, place = trace.gradients(stack=stack), find_logit(trace), 1
    row = norms.labels["layer"].index(tap.removesuffix(".state"))
    state, slopes = trace[tap].values, []
    for feature in range(state.shape[1]):
        logits = []
        for step in (STEP, -STEP):
            logits.append(moved_logit(trace, tap, place, feature, step, asked.id))
        slopes.append((logits[0] - logits[1]) / (2 * STEP))
    assert norms.values[row, place] == pytest.approx(np.linalg.norm(slopes), rel=2e-2, abs=1e-6)


def moved_logit(trace: Trace, tap: str, place: int, feature: int, by: float, token: int) -> float:
    """The logit, where one number of one step's state is moved, and the later steps follow from that."""
    assert trace.subject is not None
    n_steps, calls = len(trace[tap]), iter(range(10**6))

    def move(name: str, tensor: torch.Tensor) -> torch.Tensor:
        call = next(calls)
        if call != (n_steps - 1 - place if ".backwards." in tap else place):
            return tensor
        moved = tensor.clone()
        moved[:, feature] += by
        return moved

    with torch.inference_mode(), listening(trace.subject.model, tap, move):
        logits = trace.reading.forward()[0]
    asked = find_logit(trace)
    return float(logits[asked.position, token])


def test_the_cell_of_an_lstm_has_a_gradient_too() -> None:
    table = {**FAMILIES["rnn"].fields, "cell": "lstm"}
    FAMILIES["rnn-lstm"] = replace(FAMILIES["rnn"], fields=table)
    try:
        found = traced("rnn-lstm").gradients(stack="encoder")
    finally:
        del FAMILIES["rnn-lstm"]
    assert "encoder.layers.0.forwards.cell" in found.labels["layer"]
    assert (found.values > 0).any(1).all()


@pytest.mark.parametrize("name", ["transformer-post", "gpt", "vit"])
def test_the_gradient_is_that_of_differences(name: str) -> None:
    trace = traced(name).without("encoder.0.feed_forward" if name != "gpt" else "decoder.0.feed_forward")
    norms, asked = trace.gradients(), find_logit(trace)
    tap, place = stream_or_map_taps(trace)[2], 0 if asked.position is None else asked.position - 1
    state = trace[tap].values
    slopes = []
    for feature in range(state.shape[1]):
        logits = []
        for step in (STEP, -STEP):
            moved = state.copy()
            moved[place, feature] += step
            logits.append(find_logit(trace.patched({tap: moved}), asked.id, -1).logit)
        slopes.append((logits[0] - logits[1]) / (2 * STEP))
    assert norms.values[2, place] == pytest.approx(np.linalg.norm(slopes), rel=2e-2)


def test_a_causal_model_has_no_gradient_at_later_positions() -> None:
    found = traced("gpt").gradients(position=3)
    assert (found.values[:, 4:] == 0).all()
    assert (found.values[0, :4] > 0).all()
    assert (found.values[-1, :3] == 0).all(), "behind the last sublayer only the position itself is read"


def test_interventions_are_respected() -> None:
    trace = traced("transformer")
    every = ["decoder.0.self_attention", "decoder.1.self_attention"]
    alone = trace.without(every[0]).without(every[1]).gradients(position=4)
    assert (alone.values[:, :4] == 0).all(), "nothing of earlier positions gets there"
    assert (trace.gradients(position=4).values[0, :4] > 0).all()


def test_frozen_weights_and_inference_mode_do_not_matter() -> None:
    trace = traced("bert-classify")
    expected = trace.gradients("b").values
    assert trace.subject is not None
    trace.subject.model.requires_grad_(False)
    with torch.inference_mode():
        np.testing.assert_allclose(trace.gradients("b").values, expected, rtol=1e-5)
    assert (trace.gradients("a").values != expected).any()
