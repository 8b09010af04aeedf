"""Direct logit attribution: shares that add up to the logit, for pre-norm models alone."""

import json

import pytest
from tests.inspection.families import FAMILIES, traced

from regard.errors import UsageError

PRE_NORM = ["transformer", "transformer-window", "t5", "t5-denoise", "gpt", "llama", "vit", "captioner-vit"]


@pytest.mark.parametrize("name", PRE_NORM)
def test_shares_add_up_to_the_logit(name: str) -> None:
    trace = traced(name)
    positions = [-1] if name == "vit" else [-1, 0, 3]
    for position in positions:
        for token in ("", 1):
            found = trace.contributions(token, position=position)
            assert abs(found.total - found.asked.logit) <= 1e-4
    assert json.loads(json.dumps(found.to_json()))["sum"] == pytest.approx(found.total)


def test_each_head_bias_and_feed_forward_has_its_share() -> None:
    names = [part.name for part in traced("gpt").contributions().parts]
    layer = [f"decoder.0.{name}" for name in ("self_attention:0", "self_attention:1", "self_attention.output.bias")]
    assert names[:5] == ["embedding", *layer, "decoder.0.feed_forward"]
    assert names[-1] == "decoder_norm.bias"
    names = [part.name for part in traced("vit").contributions().parts]
    assert names[-2:] == ["encoder_norm.bias", "head.output.bias"]
    names = [part.name for part in traced("llama").contributions().parts]
    assert names[-1] == "decoder.1.feed_forward", "RMS norm has no bias, and neither have its layers"


def test_the_share_of_a_head_that_is_cut_is_nothing() -> None:
    trace = traced("gpt").without("decoder.1.self_attention", heads=[1])
    found = trace.contributions()
    shares = {part.name: part.value for part in found.parts}
    assert shares["decoder.1.self_attention:1"] == 0.0
    assert shares["decoder.1.self_attention:0"] != 0.0
    assert found.total == pytest.approx(found.asked.logit, abs=1e-4)


def test_what_an_intervention_put_there_has_a_share_of_its_own() -> None:
    whole = traced("gpt")
    cut = whole.without("decoder.0.self_attention")
    patched = whole.patched({"decoder.0.feed_forward_residual.output": cut["embedding.sum"]})
    for trace, name in ((cut, "decoder.0.self_attention"), (patched, "decoder.0.feed_forward")):
        found = trace.contributions()
        assert f"{name} (changed by an intervention)" in [part.name for part in found.parts]
        assert found.total == pytest.approx(found.asked.logit, abs=1e-4)
    assert cut.contributions().parts[1].value == pytest.approx(0.0, abs=1e-6)


def test_lines_stand_by_size() -> None:
    found = traced("transformer").contributions("dog", position=2)
    lines = found.lines(most=3)
    assert lines[0] == f"logit of 'dog' at position 2: {found.asked.logit:.4f}"
    sizes = [abs(float(line.split()[0])) for line in lines[1:4]]
    assert sizes == sorted(sizes, reverse=True)
    assert lines[4].endswith(f"{len(found.parts) - 3} smaller ones together")
    assert lines[5].split() == [f"{found.total:+.4f}", "sum"]
    assert repr(found).splitlines() == found.lines()


@pytest.mark.parametrize("name", ["transformer-post", "bert-mask", "bert-classify", "bert-tag"])
def test_with_post_norm_there_are_no_shares(name: str) -> None:
    with pytest.raises(UsageError, match="with post-norm each sum is normalised again, so that they would not add up"):
        traced(name).contributions()


def test_without_residual_connections_there_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    family = FAMILIES["transformer-post"]
    monkeypatch.setitem(family.fields, "norm_order", "none")
    trace = traced("transformer-post")
    with pytest.raises(UsageError, match="This model has no residual connections"):
        trace.contributions()
    assert len(trace.lens().taps) == 7
