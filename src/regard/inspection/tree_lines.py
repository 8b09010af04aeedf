"""A beam tree as lines for a terminal: the output downwards, one token per line, and other branches beside it.

    step  node  token                     log-prob    total
    0     0     ein                         −0.120   −0.120
    0–2   1     ├─ der kleine Hund                   −2.310  then behind: −4.020, beam to −3.975
    1     9     kleiner                     −0.210   −0.330

Under each token of the output stand the branches that competed with it. A branch is a chain of tokens, with the branches
that leave it below, further to the right; `node` is the number of its first token, by which it can be forced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.evaluation.table import text_width

if TYPE_CHECKING:
    from regard.inspection.beam_tree import BeamTree, TreeNode

_STEPS, _NODES, _NUMBER = 6, 6, 9  # columns of steps, of nodes, and of a log-probability
_VISIBLE = {" ": "␣", "\n": "↵", "\r": "↵", "\t": "⇥"}
_DEEPEST = 6  # branches of branches that are indented


@dataclass(frozen=True)
class _Row:
    steps: str
    node: str
    text: str
    log_prob: str
    total: str
    fate: str


def tree_lines(tree: "BeamTree", *, pruned: bool, columns: int) -> list[str]:
    """The lines of a tree, at most so many columns wide."""
    rows = list(_rows(tree, pruned=pruned))
    widest = max(text_width(row.text) for row in rows)
    fates = max(text_width(row.fate) for row in rows)
    room = max(16, min(widest, columns - _STEPS - _NODES - 2 * _NUMBER - 2 - fates))
    heading = _line("step", "node", _padded("token", room), "log-prob", "total", "")
    return [heading, *(line for row in rows for line in _wrapped(row, room))]


def shown_token(label: str) -> str:
    """A token on one line of a terminal: white space around it is left out, what cannot be printed is a box."""
    text = label.strip() or "".join(_VISIBLE.get(character, character) for character in label)
    return "".join(character if character.isprintable() else _VISIBLE.get(character, "□") for character in text) or "␣"


def _rows(tree: "BeamTree", *, pruned: bool) -> Iterator[_Row]:
    """The output and, under each of its tokens, what competed with it."""
    for node in tree.path(tree.best):
        fate = f"{_score(node)}, the best" if node.score is not None else ""
        token = shown_token(node.label) + ("  (forced)" if node.forced else "")
        yield _Row(str(node.step), str(node.number), token, number(node.log_prob), number(node.total), fate)
        others = [one for one in _drawn(tree, node.parent, pruned=pruned) if one is not node]
        yield from _branches(tree, others, indent="", pruned=pruned)


def _branches(tree: "BeamTree", nodes: Sequence["TreeNode"], *, indent: str, pruned: bool) -> Iterator[_Row]:
    for place, first in enumerate(nodes):
        is_last = place == len(nodes) - 1
        chain = _chain(tree, first)
        end = chain[-1]
        steps = str(first.step) if first is end else f"{first.step}–{end.step}"
        tokens = " ".join(shown_token(node.label) for node in chain)
        branch = f"{indent}{'└─' if is_last else '├─'} {'✗ ' if first.fate == 'pruned' else ''}{tokens}"
        log_prob = number(first.log_prob) if first is end else ""
        fate = "" if _drawn(tree, end.number, pruned=False) else fate_of(tree, end)
        yield _Row(steps, str(first.number), branch, log_prob, number(end.total), fate)
        deeper = indent if len(indent) >= 3 * _DEEPEST else indent + ("   " if is_last else "│  ")
        inside = {node.number for node in chain}
        leaving = [
            one for node in chain for one in _drawn(tree, node.number, pruned=pruned) if one.number not in inside
        ]
        yield from _branches(tree, leaving, indent=deeper, pruned=pruned)


def _drawn(tree: "BeamTree", parent: int | None, *, pruned: bool) -> list["TreeNode"]:
    return [node for node in tree.children(parent) if pruned or node.fate != "pruned"]


def _chain(tree: "BeamTree", first: "TreeNode") -> list["TreeNode"]:
    """A node and those behind it, up to where the hypothesis ends or divides."""
    chain = [first]
    while len(following := _drawn(tree, chain[-1].number, pruned=False)) == 1:
        chain += following
    return chain


def fate_of(tree: "BeamTree", node: "TreeNode") -> str:
    """What became of the last node of a branch, in a few words, with the numbers that decided."""
    if node.score is not None:
        return _score(node)
    if node.fate == "pruned":
        return _why(node)
    lost = [one for one in tree.children(node.number) if one.fate == "pruned"]
    return f"then {_why(lost[0])}" if lost else f"then not among the {2 * tree.width} candidates"


def _score(node: "TreeNode") -> str:
    return f"{'finished' if node.ended else 'at the limit'}: {number(node.score)}"


def _why(node: "TreeNode") -> str:
    if node.reason == "hopeless":
        return f"hopeless: at best {number(node.value)}, found {number(node.against)}"
    return f"behind: {number(node.value)}, beam to {number(node.against)}"


def number(value: float | None) -> str:
    """A log-probability or a score, with a true minus sign."""
    return "" if value is None else f"{value:.3f}".replace("-", "−").replace("−0.000", "0.000")


def _wrapped(row: _Row, room: int) -> Iterator[str]:
    """A row on as many lines as its tokens need; the numbers stand on the last."""
    *before, last = _cut(row.text, room)
    begin = iter([(row.steps, row.node)])
    for piece in before:
        yield _line(*next(begin, ("", "")), piece, "", "", "")
    yield _line(*next(begin, ("", "")), _padded(last, room), row.log_prob, row.total, row.fate)


def _cut(text: str, room: int) -> Iterator[str]:
    """A branch in pieces of so many columns, cut between tokens; further ones stand below the first token."""
    head = next((place for place, character in enumerate(text) if character not in "│├└─ "), 0)
    below = "".join({"├": "│", "└": " ", "─": " "}.get(character, character) for character in text[:head])
    line = text[:head]
    for word in text[head:].split(" "):
        if text_width(line) + text_width(word) > room and line.strip("│├└─ "):
            yield line.rstrip()
            line = below
        line += word + " "
    yield line.rstrip()


def _line(steps: str, node: str, text: str, log_prob: str, total: str, fate: str) -> str:
    return f"{steps:<{_STEPS}}{node:<{_NODES}}{text}{log_prob:>{_NUMBER}}{total:>{_NUMBER}}  {fate}".rstrip()


def _padded(text: str, room: int) -> str:
    return text + " " * (room - text_width(text))
