"""Attention in the beam's tree: where a model looked in its source while it wrote each node, also one that was pruned.

What is written behind a hypothesis depends on it alone: nodes with one parent share a row of the map. So one pass over each
hypothesis from which others went on shows the rows of all its nodes.
"""

import numpy as np

from regard.decoding.result import Decoded, Hypothesis
from regard.inspection.attention_replay import Numbers
from regard.inspection.beam_tree import BeamTree
from regard.inspection.maps import kinds
from regard.inspection.overview import overview_attention
from regard.inspection.trace import Trace, record_pass

MOST_PASSES = 64


def tree_attention(trace: Trace, tree: BeamTree, *, most_passes: int = MOST_PASSES) -> dict[int, Numbers]:
    """By the number of a node, the weights (S,) over the source when it was written: the mean over the heads of the
    attention that tells most. Nothing of a model that attends to no source; of a very large tree, of some nodes."""
    path, reading = overview_attention(trace), trace.reading
    if path not in kinds(trace).get("cross", ()) or reading.result is None:
        return {}
    subject = trace.live("The attention of other hypotheses needs the model, and")
    parents = {node.parent for node in tree.nodes}
    inner = {tree[parent].parent for parent in parents if parent is not None}
    ends: list[int | None] = [parent for parent in parents if parent is not None and parent not in inner]
    of_output = {node.number for node in tree.path(tree.best)}
    ends.sort(key=lambda number: (number not in of_output, number or 0))
    rows: dict[int | None, Numbers] = {}
    for end in ends[:most_passes] or [None]:
        nodes = [] if end is None else tree.path(end)
        ids = tuple(node.token for node in nodes)
        one = Hypothesis(ids=ids, log_probs=(0.0,) * (len(ids) + 1), score=0.0, finished=True)
        hypothesis = subject.reading(reading.result(Decoded((one,))))
        found, _ = record_pass(subject, hypothesis, [f"{path}.weights"], most_bytes=None)
        weights = np.asarray(found[f"{path}.weights"].values, np.float64)
        mean = (weights if weights.ndim == 3 else weights[None]).mean(0)[hypothesis.n_given :]
        for parent, row in zip([None, *(node.number for node in nodes)], mean, strict=True):
            rows[parent] = row
    return {node.number: rows[node.parent] for node in tree.nodes if node.parent in rows}
