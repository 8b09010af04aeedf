"""The beam's tree as the page has it: its nodes, and where the model looked in the source when it wrote each."""

from typing import Any

from regard.inspection.beam_attention import tree_attention
from regard.inspection.overview import overview_attention
from regard.inspection.trace import Trace

DIGITS = 4  # of weights, which only shade the source


def tree_facts(trace: Trace) -> dict[str, Any]:
    """`BeamTree.to_json` with "attended" at each node whose attention is known, and of which attention that is."""
    tree = trace.beam_tree()
    facts = tree.to_json()
    attended = tree_attention(trace, tree)
    for node in facts["nodes"]:
        if node["number"] in attended:
            node["attended"] = [round(float(weight), DIGITS) for weight in attended[node["number"]]]
    return {**facts, "attention": overview_attention(trace) if attended else ""}
