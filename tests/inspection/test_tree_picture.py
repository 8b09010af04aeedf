"""The picture of a beam tree: every node once, the output bold, long searches in bands, any script."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from tests.inspection.families import traced

from regard.inspection.beam_tree import BeamTree
from regard.inspection.render import save
from regard.inspection.tree_picture import MOST_INCHES, tree_picture


@pytest.fixture(scope="module")
def tree() -> BeamTree:
    return traced("gpt").beam_tree()


def labels(figure: object) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]  # type: ignore[attr-defined]


def test_every_candidate_is_drawn_once(tree: BeamTree) -> None:
    words = labels(tree_picture(tree))
    for label in {node.label for node in tree.nodes}:
        assert words.count(label) == sum(node.label == label for node in tree.nodes)
    assert words.count("step") == 1


def test_pruned_ones_can_be_left_out(tree: BeamTree) -> None:
    n_kept = sum(node.fate != "pruned" for node in tree.nodes)
    figure = tree_picture(tree, pruned=False)
    assert len(labels(figure)) == 2 * n_kept + tree.n_steps + 1
    [legend] = figure.legends
    assert not any("pruned" in text.get_text() for text in legend.get_texts())


def test_the_output_is_bold(tree: BeamTree) -> None:
    [axes] = tree_picture(tree).axes
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == [node.label for node in tree.path(tree.best)]


def test_a_long_search_goes_on_in_a_further_band() -> None:
    tree = traced("transformer", max_length=40, min_length=38).beam_tree()
    figure = tree_picture(tree)
    assert len(figure.axes) > 1
    assert figure.get_figwidth() < MOST_INCHES + 2
    assert len([word for word in labels(figure) if word == "step"]) == len(figure.axes)


def test_any_script_and_no_formula(tree: BeamTree, tmp_path: Path) -> None:
    strange = ("犬", "$x^2$", "\x1b[31m", "كلب", "🐕")
    nodes = [replace(node, label=strange[node.number % len(strange)]) for node in tree.nodes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(tree_picture(replace(tree, nodes=tuple(nodes)), title="$\\frac$"), tmp_path / "tree.png")
    assert (tmp_path / "tree.png").stat().st_size > 10_000


def test_the_same_tree_gives_the_same_bytes(tree: BeamTree, tmp_path: Path) -> None:
    first, second = (save(tree_picture(tree), tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second
