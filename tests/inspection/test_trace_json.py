"""Everything of a trace as JSON: of every family, strict, and saying the same as the arrays."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inspection.families import ATTENDING, FAMILIES, OF_NUMBERS, subject_of, traced
from tests.inspection.test_contributions import PRE_NORM
from tests.inspection.test_lens import STREAMS
from tests.inspection.test_probe_picture import timeline_of

from regard.errors import UsageError
from regard.inspection import overview
from regard.inspection.position_picture import DRAWN, LEARNED, encoding_panels, model_panels
from regard.inspection.trace import Trace
from regard.inspection.trace_file import load_trace
from regard.inspection.walk import walk

SEARCHING = ["transformer", "t5", "rnn-additive", "captioner-vit", "captioner-rnn"]


def strict(data: Any) -> Any:
    """As it comes out of JSON, which knows no NaN and no infinity."""
    return json.loads(json.dumps(data, allow_nan=False))


def everything(trace: Trace) -> dict[str, Any]:
    """All that a page asks of a trace."""
    found: dict[str, Any] = {
        "trace": trace.to_json(),
        "overview": overview.to_json(trace),
        "heads": [one.to_json() for one in trace.head_labels()],
        "checks": trace.checks().to_json(),
    }
    if offers := found["trace"]["offers"]:
        paths = trace.attentions()
        if offers["cells"]:
            found["cell"] = trace.cell(paths[-1], head=0, query=0, key=0).to_json()
        if offers["lens"]:
            found["lens"] = trace.lens(top=2).to_json()
        if offers["norms"]:
            found["norms"] = trace.residual_norms().to_json()
        if offers["beam_tree"]:
            found["tree"] = trace.beam_tree().to_json()
    return found


@pytest.mark.parametrize("name", [*FAMILIES, *OF_NUMBERS])
def test_every_family_is_strict_json_live_and_from_a_file(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    live, kept = strict(everything(trace)), strict(everything(load_trace(trace.save(tmp_path / "a.trace"))))
    assert live["trace"]["live"] and not kept["trace"]["live"]
    assert live["trace"]["tokens"] == kept["trace"]["tokens"]
    assert live["trace"]["attentions"] == kept["trace"]["attentions"]
    assert live["trace"]["offers"]["lens"] == kept["trace"]["offers"]["lens"] == (name in STREAMS)
    assert live["trace"]["offers"]["maps"] == bool(live["trace"]["attentions"]) == (name in (*ATTENDING, *OF_NUMBERS))
    if len(trace.reading.own):
        strict(walk(trace).to_json())


@pytest.mark.parametrize("name", ["transformer", "gpt"])
def test_a_network_of_nan_is_strict_json_too(name: str) -> None:
    """A training that diverged is what people want to look into."""
    trace = traced(name)
    assert trace.subject is not None
    with torch.no_grad():
        for parameter in trace.subject.model.parameters():
            parameter[:] = torch.nan
    broken = trace.without("decoder.0.feed_forward")
    assert not np.isfinite(broken["logits"].values).any()
    path = "decoder.0.self_attention"
    for found in (
        overview.to_json(broken),
        broken.lens(top=2).to_json(),
        broken.residual_norms().to_json(),
        broken.cell(path, head=0, query=1, key=0).to_json(),
        broken.checks().to_json(),
        trace.difference(broken).to_json(),
        [one.to_json() for one in broken.head_labels()],
    ):
        strict(found)


def test_tokens_have_their_offsets() -> None:
    tokens = strict(traced("transformer").to_json())["tokens"]
    source, target = tokens["sequences"]
    assert (tokens["own"], tokens["memory"]) == (1, 0)
    assert [source["text"][slice(*one["span"])] for one in source["tokens"]][:3] == ["the", "dog", "is"]
    assert [one["word"] for one in source["tokens"]][:3] == [0, 1, 2]
    assert source["tokens"][-1] == {**source["tokens"][-1], "text": "(end)", "span": [0, 0], "word": None}
    assert [one["position"] for one in target["tokens"]] == list(range(len(target["tokens"])))
    assert len(tokens["writes"]) == len(target["tokens"])


def test_an_array_as_a_blob_has_the_numbers_as_float16() -> None:
    array = traced("transformer")["decoder.0.self_attention.weights"]
    found = strict(array.to_json(blob=True))
    values = np.frombuffer(base64.b64decode(found["base64"]), "<f2").reshape(found["shape"])
    np.testing.assert_allclose(values, array.values, atol=1e-3)
    assert strict(array.to_json())["values"][0][0][0] == pytest.approx(float(array.values[0, 0, 0]))


@pytest.mark.parametrize("name", SEARCHING)
def test_every_node_of_a_tree_has_what_it_attended_to(name: str) -> None:
    trace = traced(name, beam=3)
    tree = trace.beam_tree()
    found = trace.tree_attention(tree)
    assert found.shape[0] == len(tree) and found.axes[0] == "node"
    np.testing.assert_allclose(found.values.sum(1), 1.0, atol=1e-5)
    path = overview.overview_attention(trace)
    own = trace[f"{path}.weights"].values.mean(0)
    by_number = {node.number: row for node, row in zip(tree.nodes, found.values, strict=True)}
    rows = [by_number[node.number] for node in tree.path(tree.best)]
    np.testing.assert_allclose(rows, own[trace.reading.n_given :][: len(rows)], atol=1e-5)
    assert any(node.fate == "pruned" for node in tree.nodes)
    data = strict(tree.to_json(found))
    assert len(data["nodes"][0]["attention"]) == found.shape[1]
    assert {"number", "step", "token", "label", "log_prob", "total", "fate"} <= set(data["nodes"][0])


def test_a_language_model_has_no_input_to_attend_to() -> None:
    trace = traced("gpt")
    with pytest.raises(UsageError, match=r"The nodes of this tree attend to no input: there is no cross-attention"):
        trace.tree_attention(trace.beam_tree())


@pytest.mark.parametrize("name", PRE_NORM)
def test_shares_of_a_logit(name: str) -> None:
    assert strict(traced(name).contributions().to_json())["contributions"]


@pytest.mark.parametrize("kind", [kind for kind in DRAWN if kind not in LEARNED])
def test_positional_encodings(kind: str) -> None:
    found = strict(encoding_panels(kind, 10, 8).to_json())
    assert np.array(found["values"]).shape == (10, 8) and len(found["by_distance"]) == 10


@pytest.mark.parametrize(("name", "kind"), [("gpt", "learned"), ("t5", "relative")])
def test_learned_positions(name: str, kind: str) -> None:
    assert all(strict(one.to_json())["values"] for one in model_panels(subject_of(name).model, kind))


def test_gradients_rollout_and_ablation() -> None:
    trace = traced("transformer")
    for array in (trace.gradients(), trace.rollout(), trace.flow()):
        assert strict(array.to_json())["shape"] == list(array.shape)
    found = strict(trace.difference(trace.without("decoder.0.cross_attention", heads=[1])).to_json())
    assert found["tokens"][0]["before"]["log_prob"] != found["tokens"][0]["after"]["log_prob"]


def test_probe_examples(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "transformer")
    assert [step["step"] for step in strict(timeline.to_json())["steps"]] == [0, 10, 20]
    kept = strict(everything(timeline.trace(10)))
    assert kept["trace"]["offers"] == {**kept["trace"]["offers"], "lens": True, "norms": True, "cells": False}
