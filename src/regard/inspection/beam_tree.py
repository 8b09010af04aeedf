"""The beam search as a tree: kept, finished and pruned hypotheses, with the numbers that decided; a runner-up forced.

Grown from the model's own search, watched once more (`decoding/beam_events.py`), under the interventions of the trace. The
start token is the root and no node. Steps count from 0; a node's path from the root is a hypothesis.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from regard.decoding.beam_events import BeamEvent, BeamFinished, BeamPruned
from regard.decoding.search import WatchedSearch
from regard.errors import UsageError
from regard.inspection.interventions import intervening
from regard.inspection.named_array import NamedArray
from regard.inspection.trace import Trace
from regard.inspection.tree_lines import tree_lines
from regard.runs.disk import without_non_finite

Fate = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """One token of a hypothesis, and what became of it.

    number, parent:  its own number, and that of the node before it; None for those of the first step
    log_prob:        of this token; total: the sum from the first token to this
    forced:          whether it was given, not chosen
    score:           of a finished one: its total over the length penalty
    ended:           whether a finished one ends with the end token; else the limit cut it off
    reason:          why it was pruned, since `value` does not exceed `against`. beam: its total, and that of the last in the
                     beam; hopeless: the best score that it can still reach, and that of a finished one
    """

    number: int
    parent: int | None
    step: int
    token: int
    label: str
    log_prob: float
    total: float
    fate: Fate
    forced: bool = False
    score: float | None = None
    ended: bool = False
    reason: str = ""
    value: float | None = None
    against: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Facts as data that `json.dumps` takes: those that its fate has."""
        return {name: fact for name, fact in asdict(self).items() if fact is not None and fact != ""}


@dataclass(frozen=True, kw_only=True)
class BeamTree:
    """A search: its nodes by their numbers, in the order of steps, and the number of the leaf that is the output.

    width:      hypotheses that go on at each step
    alpha:      a score is the total over length**alpha
    beginning:  the tokens that were forced
    """

    nodes: tuple[TreeNode, ...]
    best: int
    width: int
    alpha: float
    beginning: tuple[int, ...] = ()

    def __getitem__(self, number: int) -> TreeNode:
        """A node by its number."""
        if number not in self._by_number:
            raise UsageError(
                f"The tree has no node {number}.",
                f"They are numbered from 0 to {max(self._by_number)}; --beam-tree shows them, in Python print(tree).",
            )
        return self._by_number[number]

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def _by_number(self) -> dict[int, TreeNode]:
        return {node.number: node for node in self.nodes}

    @cached_property
    def _children(self) -> dict[int | None, list[TreeNode]]:
        found: dict[int | None, list[TreeNode]] = {}
        for node in self.nodes:
            found.setdefault(node.parent, []).append(node)
        return {parent: sorted(own, key=lambda one: -one.total) for parent, own in found.items()}

    def children(self, number: int | None) -> list[TreeNode]:
        """What follows a node, the likeliest first; of None, the nodes of the first step."""
        return self._children.get(number, [])

    def path(self, node: int) -> list[TreeNode]:
        """The hypothesis that ends with a node, from its first token on."""
        found: list[TreeNode] = []
        place: int | None = node
        while place is not None:
            found.append(self[place])
            place = found[-1].parent
        return found[::-1]

    def ids(self, node: int) -> tuple[int, ...]:
        """The tokens of the hypothesis that ends with a node: what `Trace.forced` takes."""
        return tuple(one.token for one in self.path(node))

    @property
    def finished(self) -> list[TreeNode]:
        """The complete hypotheses, the best first."""
        found = [node for node in self.nodes if node.score is not None]
        return sorted(found, key=lambda node: (node.number != self.best, -(node.score or 0.0)))

    @property
    def n_steps(self) -> int:
        return 1 + max(node.step for node in self.nodes)

    def lines(self, *, pruned: bool = False, columns: int = 100) -> list[str]:
        """The tree for a terminal: the output downwards, other branches beside it; `pruned`: with all candidates."""
        return tree_lines(self, pruned=pruned, columns=columns)

    def to_json(self, attention: NamedArray | None = None) -> dict[str, Any]:
        """All of it as data that `json.dumps` takes; with what each node attended to, if that is given."""
        nodes = [node.to_json() for node in self.nodes]
        facts: dict[str, Any] = {
            "width": self.width,
            "length_penalty": self.alpha,
            "beginning": list(self.beginning),
            "best": self.best,
            "nodes": nodes,
        }
        if attention is not None:
            for node, row in zip(nodes, attention.values.tolist(), strict=True):
                node["attention"] = row
            facts["source"] = list(attention.labels.get(attention.axes[1], ()))
        found: dict[str, Any] = without_non_finite(facts)
        return found

    def __repr__(self) -> str:
        return f"<BeamTree: {len(self)} nodes in {self.n_steps} steps, beam {self.width}>"


def search_behind(trace: Trace, beginning: Sequence[int] = ()) -> WatchedSearch:
    """Search for the output of a traced input once more, behind a given beginning, under its interventions; watched."""
    subject = trace.live("A search needs the model, and")
    if trace.reading.watch is None:
        raise UsageError(
            f"A model of the task '{subject.task.spec.name}' writes nothing token by token: there is no search to watch.",
            "Trace a run that translates, captions or generates.",
        )
    with intervening(subject.model, subject.interventions):
        return trace.reading.watch(tuple(beginning))


def grow_tree(trace: Trace, beginning: Sequence[int] = ()) -> BeamTree:
    """The search for the output of a trace as a tree; `beginning`: tokens that are forced first, by default those that
    were forced for the trace."""
    beginning = tuple(beginning) or trace.reading.beginning
    search = search_behind(trace, beginning)
    n_forced = len(beginning)
    nodes = [
        _node(event, step, search, forced=step < n_forced, label=trace.reading.outputs(event.node.token))
        for step, events in enumerate(search.steps)
        for event in events
    ]
    return BeamTree(
        nodes=tuple(nodes),
        best=_best(nodes, search),
        width=search.config.beam,
        alpha=search.config.length_penalty,
        beginning=beginning,
    )


def forced(trace: Trace, tree: BeamTree, node: int) -> Trace:
    """Force the hypothesis that ends with a node, also a pruned one, and go on from there: a trace of what is written."""
    return trace.forced(tree.ids(node))


def _node(event: BeamEvent, step: int, search: WatchedSearch, *, forced: bool, label: str) -> TreeNode:
    own = event.node
    fate: dict[str, Any] = {"fate": "kept"}
    if isinstance(event, BeamFinished):
        fate = {"fate": "finished", "score": event.score, "ended": own.token == search.end_id}
    elif isinstance(event, BeamPruned):
        fate = {"fate": "pruned", "reason": event.reason, "value": event.value, "against": event.against}
    return TreeNode(
        number=own.number,
        parent=own.parent.number if own.parent is not None else None,
        step=step,
        token=own.token,
        label=label,
        log_prob=own.log_prob,
        total=own.total,
        forced=forced and not isinstance(event, BeamPruned),
        **fate,
    )


def _best(nodes: Sequence[TreeNode], search: WatchedSearch) -> int:
    """The number of the finished node that the search returned first."""
    found = search.found[0].best
    by_number = {node.number: node for node in nodes}
    for node in nodes:
        if node.score == found.score and node.step + 1 == len(found.log_probs):
            tokens = [one.token for one in _upwards(node, by_number)][::-1]
            if tuple(tokens[: len(found.ids)]) == found.ids:
                return node.number
    raise AssertionError("the search returned what it did not finish")


def _upwards(node: TreeNode | None, by_number: dict[int, TreeNode]) -> Iterator[TreeNode]:
    while node is not None:
        yield node
        node = by_number[node.parent] if node.parent is not None else None
