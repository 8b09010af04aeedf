"""A walk: which position it follows, and that each station shows that position's numbers."""

import numpy as np
import pytest
from tests.inspection.families import traced

from regard.inspection.overview import step_table, steps
from regard.inspection.walk import walk


@pytest.mark.parametrize(
    ("name", "expected"), [("transformer", "(end)"), ("gpt", None), ("bert-classify", "(start)"), ("vit", "(class)")]
)
def test_the_position_that_tells_most_is_followed(name: str, expected: str | None) -> None:
    trace = traced(name)
    found = walk(trace)
    if name == "transformer":
        assert found.position == len(trace.reading.writes) - 1
    elif name == "gpt":
        assert found.position == trace.reading.n_given, "behind the prompt"
    else:
        assert (found.position, found.reads) == (0, expected), "from which the class is read"


def test_patches_stand_behind_the_class_token() -> None:
    trace = traced("vit")
    patches = trace["embedding.patches"].values
    assert len(patches) == len(trace.reading.own) - 1

    def station(place: int) -> str:
        [step] = [one for one in walk(trace, place).steps if one.name == "embedding.patches"]
        return step.numbers or step.about

    assert station(0) == "not at this position"
    assert f"length {np.linalg.norm(patches[0]):.2f}" in station(1)
    assert f"length {np.linalg.norm(patches[-1]):.2f}" in station(len(patches))


def test_white_space_is_seen_in_the_overview() -> None:
    trace = traced("transformer")
    weights = trace["decoder.1.cross_attention.weights"]
    labels = {**weights.labels, "source": (" ",) * weights.shape[2]}
    for path in trace.attentions():
        own = trace[f"{path}.weights"]
        if "source" in own.axes and "target" in own.axes:
            trace._arrays[f"{path}.weights"] = type(own)(own.values, own.axes, {**own.labels, **labels})
    assert steps(trace)[0].attended[0][0] == " "
    assert step_table(trace).rows[0][-1].startswith("␣ 0.")
