import numpy as np
import pytest
from tests.inspection.families import traced

from regard.inspection.beam_attention import tree_attention
from regard.inspection.overview import overview_attention


@pytest.mark.parametrize("family", ["transformer", "t5", "rnn-dot", "captioner-vit", "captioner-rnn"])
def test_a_nodes_attention_is_that_of_its_own_hypothesis(family: str) -> None:
    """Of a hypothesis that lost, it is what a trace shows when that is forced."""
    trace = traced(family)
    tree, path = trace.beam_tree(), overview_attention(trace)
    found = tree_attention(trace, tree)
    assert set(found) == {node.number for node in tree.nodes}
    output = {node.number for node in tree.path(tree.best)}
    others = [node for node in tree.nodes if node.fate == "kept" and node.number not in output and node.step > 0]
    for node in [*others[:3], tree[tree.best]]:
        ids = tree.ids(node.number)
        weights = (trace if node.number == tree.best else trace.forced(ids))[f"{path}.weights"].values
        mean = (weights if weights.ndim == 3 else weights[None]).mean(0)
        np.testing.assert_allclose(found[node.number], mean[node.step], atol=1e-6)


def test_nodes_with_one_parent_share_it_and_few_passes_show_the_output_first() -> None:
    trace = traced("transformer")
    tree = trace.beam_tree()
    found = tree_attention(trace, tree)
    for node in tree.nodes:
        np.testing.assert_array_equal(found[node.number], found[tree.children(node.parent)[0].number])
    some = tree_attention(trace, tree, most_passes=1)
    assert {node.number for node in tree.path(tree.best)} <= set(some) < set(found)


@pytest.mark.parametrize("family", ["gpt", "rnn"])
def test_a_model_that_attends_to_no_source_shows_nothing(family: str) -> None:
    trace = traced(family, sample=False, beam=2)
    assert tree_attention(trace, trace.beam_tree()) == {}


def test_an_intervention_holds_in_all_hypotheses() -> None:
    trace = traced("transformer").without("decoder.0.self_attention")
    whole = traced("transformer")
    tree = whole.beam_tree()
    assert not np.allclose(tree_attention(trace, tree)[tree.best], tree_attention(whole, tree)[tree.best])
