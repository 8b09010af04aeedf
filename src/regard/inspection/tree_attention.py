"""What the nodes of a beam tree attended to: for each token of each hypothesis, its cross-attention while it was written.

Attention looks at what was written so far, and not at the token that is chosen then: what follows one node shares it. So
there is one forward pass for each of the longest hypotheses that go on, over all of its tokens.
"""

from collections.abc import Mapping

import numpy as np

from regard.decoding.result import Decoded, Hypothesis
from regard.errors import UsageError
from regard.inspection.axes import key_positions
from regard.inspection.beam_tree import BeamTree
from regard.inspection.named_array import NamedArray, Values
from regard.inspection.overview import overview_attention
from regard.inspection.trace import Trace, record_pass


def tree_attention(trace: Trace, tree: BeamTree, attention: str = "") -> NamedArray:
    """(node, source): the weights of each node in the order of `tree.nodes`, the mean over heads; each row sums to 1.

    attention: by its path; by default the one that aligns words best
    """
    path, reading = attention or overview_attention(trace), trace.reading
    if not path or reading.memory is None or key_positions(path, reading) is not reading.memory:
        raise UsageError(
            "The nodes of this tree attend to no input: there is no cross-attention.",
            "Trace a translator or a captioner.",
        )
    rows: dict[int | None, Values] = {}
    for last in _longest(tree):
        nodes = [] if last is None else [node.number for node in tree.path(last)]
        weights = _weights(trace, path, () if last is None else tree.ids(last))
        rows |= dict(zip([None, *nodes], weights, strict=True))
    values = np.stack([rows[node.parent] for node in tree.nodes]).astype(np.float32)
    return NamedArray(values, ("node", reading.memory.name), _labels(trace, values))


def _longest(tree: BeamTree) -> list[int | None]:
    """The nodes that something follows, of which none is followed by another such node; None for the root."""
    followed = {node.parent for node in tree.nodes}
    before = {tree[number].parent for number in followed if number is not None}
    return [number for number in followed if number not in before]


def _weights(trace: Trace, path: str, ids: tuple[int, ...]) -> Values:
    """(N + 1, S): what is attended to behind each of N tokens of an output, and before the first."""
    subject = trace.live("What a hypothesis attends to needs the model, and")
    assert trace.reading.result is not None
    written = Hypothesis(ids=ids, log_probs=(0.0,) * (len(ids) + 1), score=0.0, finished=True)
    reading = subject.reading(trace.reading.result(Decoded((written,))))
    arrays, _ = record_pass(subject, reading, [f"{path}.weights"], most_bytes=None)
    weights = arrays[f"{path}.weights"]
    mean: Values = weights.values.mean(0) if weights.axes[0] == "head" else weights.values  # recurrent: one head
    return mean[reading.n_given :]


def _labels(trace: Trace, values: Values) -> Mapping[str, tuple[str, ...]]:
    memory = trace.reading.memory
    assert memory is not None
    return {memory.name: memory.labels} if len(memory) == values.shape[1] else {}
