"""Maps in a notebook: SVG of what is a map, nothing of what is none, and no text that becomes markup."""

from xml.etree import ElementTree

import numpy as np
import pytest
from tests.inspection.families import traced

from regard.inspection.named_array import NamedArray
from regard.inspection.notebook import svg_of

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</svg><script>alert(1)</script>",
    "--><b>",
    "]]>&amp;",
    "$\\frac{1}$",
    "\x1b\n",
)
DRAWN = {"svg", "g", "path", "defs", "use", "image", "rect", "style", "clipPath", "pattern", "polygon"}


def elements(svg: str) -> set[str]:
    """The names of all elements that are drawn: what is in the metadata is not."""
    root = ElementTree.fromstring(svg)
    for metadata in root.findall("{*}metadata"):
        root.remove(metadata)
    return {one.tag.rpartition("}")[2] for one in root.iter()}


def test_one_map_and_all_heads() -> None:
    weights = traced("transformer")["decoder.0.cross_attention.weights"]
    for array in (weights, weights.at(head=1)):
        svg = array._repr_svg_()
        assert svg is not None
        assert svg.startswith("<svg")
        assert elements(svg) <= DRAWN
        assert svg == svg_of(array)


@pytest.mark.parametrize(
    "array",
    [
        NamedArray(np.zeros(3), ("feature",)),
        NamedArray(np.zeros((2, 2)), ("token", "feature"), {"token": ("a", "b")}),
        NamedArray(np.full((1, 1), 7.0), ("token", "key"), {"token": ("a",), "key": ("a",)}),
        NamedArray(np.full((1, 1), np.nan), ("token", "key"), {"token": ("a",), "key": ("a",)}),
        NamedArray(np.zeros((0, 0)), ("token", "key"), {"token": (), "key": ()}),
        NamedArray(np.zeros((1, 1, 1)), ("sublayer", "token", "key"), {"token": ("a",), "key": ("a",)}),
    ],
)
def test_what_is_no_map(array: NamedArray) -> None:
    assert svg_of(array) is None


def test_masked_cells_can_be_drawn() -> None:
    values = np.array([[1.0, np.nan], [0.5, 0.5]])
    assert svg_of(NamedArray(values, ("token", "key"), {"token": ("a", "b"), "key": ("a", "b")})) is not None


@pytest.mark.parametrize("n_heads", [0, 2])
def test_hostile_tokens_never_become_markup(n_heads: int) -> None:
    n = len(HOSTILE)
    shape, axes = ((n, n), ("token", "key")) if not n_heads else ((n_heads, n, n), ("head", "token", "key"))
    svg = svg_of(NamedArray(np.full(shape, 1 / n), axes, {"token": HOSTILE, "key": HOSTILE}))
    assert svg is not None
    assert elements(svg) <= DRAWN
    assert "<img" not in svg
    assert "<script" not in svg
    assert not any("onerror" in name for one in ElementTree.fromstring(svg).iter() for name in one.attrib)
