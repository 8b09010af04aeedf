"""Gradients by layer: against differences, under interventions, and without leaving anything behind."""

import numpy as np
import pytest
import torch
from tests.inspection.families import traced
from tests.inspection.test_lens import CONVOLUTIONS, STREAMS

from regard.inspection.residual_stream import find_logit, stream_or_map_taps

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
