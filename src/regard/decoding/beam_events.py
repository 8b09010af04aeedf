"""Beam search as a tree, and the events by which it can be watched: kept, finished, pruned.

The start token is the root and no node; a node is one written token. Kept nodes may have children at the next step.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True, eq=False)  # Not frozen: hundreds are made at every step, and freezing doubles the time of that.
class BeamNode:
    """One token of a hypothesis.

    number:    counts the nodes of one search, over all its sentences
    sentence:  the sentence's number in the input
    log_prob:  of this token, after rules
    total:     sum of the log-probabilities from the first token to this
    """

    number: int
    sentence: int
    parent: "BeamNode | None" = field(repr=False)
    token: int
    log_prob: float
    total: float

    def path(self) -> list["BeamNode"]:
        """From the first token to this."""
        node: BeamNode | None = self
        nodes: list[BeamNode] = []
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


@dataclass(frozen=True, slots=True)
class BeamKept:
    """The hypothesis goes on."""

    node: BeamNode


@dataclass(frozen=True, slots=True)
class BeamFinished:
    """The hypothesis is complete (or at its limit): `score` is its total over the length penalty."""

    node: BeamNode
    score: float


PruneReason = Literal["beam", "hopeless"]


@dataclass(frozen=True, slots=True)
class BeamPruned:
    """The hypothesis is given up, since `value` does not exceed `against`.

    beam:      W others of this step have larger totals; `value` is its total, `against` that of the last of the W
    hopeless:  `value` is the best score it can still reach, `against` the score of a finished one that is good enough
    """

    node: BeamNode
    reason: PruneReason
    value: float
    against: float


BeamEvent = BeamKept | BeamFinished | BeamPruned
