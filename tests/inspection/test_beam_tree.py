"""The beam tree: its best leaf is the output, its numbers add up, a runner-up can be forced, its lines fit a terminal."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.inspection.families import FAMILIES, subject_of, traced

from regard.errors import UsageError
from regard.evaluation.table import text_width
from regard.inspection.beam_tree import BeamTree, TreeNode, forced, grow_tree
from regard.inspection.trace import Trace, trace_input
from regard.inspection.tree_lines import shown_token

DECODING = ("translate", "language", "denoise", "caption")
WRITING = [name for name, family in FAMILIES.items() if family.task in DECODING]


def written(trace: Trace) -> tuple[int, ...]:
    return trace.reading.writes[trace.reading.n_given :]


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("beam", [1, 3])
def test_the_best_leaf_is_the_output_and_its_log_probabilities_add_up(name: str, beam: int) -> None:
    trace = traced(name, beam=beam, length_penalty=0.7)
    tree = trace.beam_tree()
    assert tree.ids(tree.best) == written(trace)
    path = tree.path(tree.best)
    total = sum(node.log_prob for node in path)
    assert path[-1].score == pytest.approx(total / len(path) ** 0.7, abs=1e-5)
    assert path[-1].score == max(node.score for node in tree.finished if node.score is not None)
    assert tree.finished[0].number == tree.best


@pytest.mark.parametrize("name", WRITING)
def test_forcing_a_runner_up_goes_on_from_there(name: str) -> None:
    trace = traced(name)
    tree = trace.beam_tree()
    rivals = [node for node in tree.nodes if node.number not in {one.number for one in tree.path(tree.best)}]
    rival = next(node for node in rivals if node.label != "(end)" and node.step == tree[tree.best].step // 2)
    other = forced(trace, tree, rival.number)
    ids = tree.ids(rival.number)
    assert written(other)[: len(ids)] == ids
    assert other["logits"].shape[0] == len(other.reading.own)
    # The log-probabilities of what was forced are the model's own: those of the free search.
    again = other.beam_tree()
    assert again.ids(again.best) == written(other)
    [node] = [one for one in again.nodes if one.step == len(ids) - 1 and one.forced]
    assert node.total == pytest.approx(rival.total, abs=1e-4)


def test_all_of_the_output_may_be_forced() -> None:
    trace = traced("transformer", max_length=0)
    assert trace.forced(written(trace)).output == trace.output


def test_every_candidate_has_its_fate_and_the_numbers_of_it() -> None:
    tree = traced("gpt").beam_tree()
    assert {node.fate for node in tree.nodes} == {"kept", "finished", "pruned"}
    for node in tree.nodes:
        if node.parent is not None:
            before = tree[node.parent]
            assert before.fate == "kept" and before.step == node.step - 1
            assert node.total == pytest.approx(before.total + node.log_prob, abs=1e-5)
        if node.fate == "pruned":
            assert node.value is not None and node.against is not None
            assert node.value <= node.against
            assert not tree.children(node.number)
    for step in range(tree.n_steps):
        assert sum(node.step == step and node.fate == "kept" for node in tree.nodes) <= tree.width


def test_a_hopeless_hypothesis_is_told_apart() -> None:
    tree = trace_input(subject_of("gpt", seed=1, max_length=12, length_penalty=0.0)).beam_tree()
    hopeless = [node for node in tree.nodes if node.reason == "hopeless"]
    assert hopeless
    assert {node.against for node in hopeless} == {tree[tree.best].score}
    assert "hopeless: at best" in "\n".join(tree.lines(pruned=True))


def test_the_search_respects_interventions() -> None:
    trace = traced("transformer")
    changed = trace.without("decoder.1.cross_attention").without("decoder.0.feed_forward")
    tree = changed.beam_tree()
    assert tree.ids(tree.best) == written(changed.rewritten())
    assert tree[tree.best].score != trace.beam_tree()[trace.beam_tree().best].score


def test_the_tree_of_an_ensemble_is_that_of_all_its_models() -> None:
    alone, other = subject_of("transformer"), subject_of("transformer", seed=5)
    both = replace(alone, options=replace(alone.options, ensemble=(other.model,)))  # type: ignore[call-arg]
    trace = trace_input(both)
    tree = trace.beam_tree()
    assert tree.ids(tree.best) == written(trace)
    assert tree.ids(tree.best) != written(trace_input(alone))


def test_a_patch_of_what_is_read_at_once_holds_while_searching() -> None:
    trace = traced("transformer")
    name = "encoder.0.feed_forward.output"
    changed = trace.patched({name: 5 * trace[name].values})
    tree = changed.beam_tree()
    assert tree.ids(tree.best) == written(changed.rewritten())
    with pytest.raises(UsageError, match="A search writes one token after another"):
        trace.patched({"decoder.0.feed_forward.output": trace["decoder.0.feed_forward.output"]}).beam_tree()


def test_a_beginning_is_forced_and_marked() -> None:
    trace = traced("transformer")
    first = trace.beam_tree().children(None)[1]
    tree = grow_tree(trace, [first.token])
    assert tree.beginning == (first.token,)
    assert [node.token for node in tree.nodes if node.forced] == [first.token]
    assert "(forced)" in tree.lines()[1]


@pytest.mark.parametrize("name", ["bert-classify", "vit", "bert-mask"])
def test_what_decodes_nothing_has_no_tree(name: str) -> None:
    with pytest.raises(UsageError, match="writes nothing token by token"):
        traced(name).beam_tree()


def test_sampling_has_no_tree() -> None:
    trace = traced("gpt", sample=True, beam=1)
    with pytest.raises(UsageError, match="Sampling draws one token after another"):
        trace.beam_tree()
    with pytest.raises(UsageError, match="Sampling draws one token after another"):
        trace.forced([7])


@pytest.mark.parametrize(
    ("beginning", "message"),
    [
        ([10_000], "There is no token 10000 to begin with."),
        ([-1], "There is no token -1"),
        ([7] * 50, "begin with 50 tokens, and has at most 6"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(beginning: Sequence[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        traced("transformer").forced(beginning)


def test_nothing_follows_the_end_token() -> None:
    trace = traced("transformer")
    end = subject_of("transformer").task.vocabulary.target.end_id  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="to follow the end token"):
        trace.forced([end, 7])


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="The tree has no node 999"):
        traced("gpt").beam_tree().path(999)


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("pruned", [False, True])
def test_lines_fit_a_terminal(name: str, pruned: bool) -> None:
    lines = traced(name, max_length=12, beam=4).beam_tree().lines(pruned=pruned)
    assert max(map(text_width, lines)) <= 100
    assert ("✗" in "\n".join(lines)) == pruned


def make_tree(facts: Sequence[tuple[int, int | None, int, str, dict[str, Any]]], best: int) -> BeamTree:
    nodes = [
        TreeNode(
            number=number,
            parent=parent,
            step=step,
            token=number,
            label=label,
            log_prob=-0.5,
            total=-0.5 * (step + 1) - 0.1 * number,
            **{"fate": "kept", **more},
        )
        for number, parent, step, label, more in facts
    ]
    return BeamTree(nodes=tuple(nodes), best=best, width=2, alpha=1.0)


def test_branches_stand_under_the_token_that_they_competed_with() -> None:
    tree = make_tree(
        [
            (0, None, 0, "ein", {}),
            (1, None, 0, "der", {}),
            (2, 0, 1, "Hund", {"fate": "finished", "score": -0.7, "ended": True}),
            (3, 1, 1, "kleine", {}),
            (4, 3, 2, "Hund", {"fate": "pruned", "reason": "beam", "value": -1.9, "against": -1.2}),
        ],
        best=2,
    )
    assert tree.lines() == [
        "step  node  token            log-prob    total",
        "0     0     ein                −0.500   −0.500",
        "0–1   1     └─ der kleine               −1.300  then behind: −1.900, beam to −1.200",
        "1     2     Hund               −0.500   −1.200  finished: −0.700, the best",
    ]
    assert tree.lines(pruned=True)[3] == (
        "2     4        └─ ✗ Hund       −0.500   −1.900  behind: −1.900, beam to −1.200"
    )


def test_hostile_tokens_stay_on_their_line() -> None:
    assert shown_token(" Hund") == "Hund"
    assert shown_token("\x1b[31m\nrot") == "□[31m↵rot"
    assert shown_token("\n") == "↵"
    assert shown_token("") == "␣"


def test_the_tree_as_data() -> None:
    tree = traced("transformer").beam_tree()
    facts = json.loads(json.dumps(tree.to_json()))
    assert facts["best"] == tree.best and len(facts["nodes"]) == len(tree)
    assert (facts["width"], facts["length_penalty"]) == (3, 1.0)
    pruned = next(node for node in facts["nodes"] if node["fate"] == "pruned")
    assert pruned.keys() >= {"number", "step", "token", "label", "log_prob", "total", "reason", "value", "against"}
