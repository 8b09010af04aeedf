import numpy as np
import pytest
from tests.inspection.families import traced

from regard.inspection.overview import overview_attention


@pytest.mark.parametrize("family", ["transformer", "t5", "rnn-dot", "captioner-vit", "captioner-rnn"])
def test_a_nodes_attention_is_that_of_its_own_hypothesis(family: str) -> None:
    """Of a hypothesis that lost, it is what a trace shows when that is forced."""
    trace = traced(family)
    tree, path = trace.beam_tree(), overview_attention(trace)
    found = dict(zip([node.number for node in tree.nodes], trace.tree_attention(tree).values, strict=True))
    output = {node.number for node in tree.path(tree.best)}
    others = [node for node in tree.nodes if node.fate == "kept" and node.number not in output and node.step > 0]
    for node in [*others[:3], tree[tree.best]]:
        ids = tree.ids(node.number)
        weights = (trace if node.number == tree.best else trace.forced(ids))[f"{path}.weights"].values
        mean = (weights if weights.ndim == 3 else weights[None]).mean(0)
        np.testing.assert_allclose(found[node.number], mean[node.step], atol=1e-6)


def test_nodes_with_one_parent_share_it() -> None:
    trace = traced("transformer")
    tree = trace.beam_tree()
    found = dict(zip([node.number for node in tree.nodes], trace.tree_attention(tree).values, strict=True))
    for node in tree.nodes:
        np.testing.assert_array_equal(found[node.number], found[tree.children(node.parent)[0].number])


def test_an_intervention_holds_in_all_hypotheses() -> None:
    whole = traced("transformer")
    cut, tree = whole.without("decoder.0.self_attention"), whole.beam_tree()
    assert not np.allclose(cut.tree_attention(tree).values[-1], whole.tree_attention(tree).values[-1])
