"""Pictures: what is on them, that they can be drawn, and that nothing of a user's text can break them."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from regard.errors import UsageError
from regard.inspection.curves import curves_picture
from regard.inspection.map_blocks import Part, in_blocks
from regard.inspection.render import SCALE, attention_atlas, attention_picture, save

SOURCE = ["A", "dog", "runs", "<end>"]
TARGET = ["Ein", "Hund", "rennt"]
WEIGHTS = np.array([[0.9, 0.1, 0.0, 0.0], [0.04, 0.9, 0.03, 0.03], [0.25, 0.25, 0.25, 0.25]])


def texts(labels):
    return [label.get_text() for label in labels]


def even(n_rows, n_columns):
    return np.full((n_rows, n_columns), 1 / n_columns)


def oklab(colour):
    """Björn Ottosson, "A perceptual color space for image processing", 2020."""
    srgb = np.array(to_rgb(colour))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(lab) @ np.cbrt(np.array(cones) @ linear)


def test_the_scale_is_perceptually_even_and_darkens_throughout():
    points = np.array([oklab(colour) for colour in SCALE])
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert steps.max() / steps.min() < 1.05
    assert (np.diff(points[:, 0]) < -0.05).all()


def test_a_map_has_its_tokens_its_numbers_and_a_fixed_scale():
    figure = attention_picture(WEIGHTS, SOURCE, TARGET, title="cross, layer 0, head 1")
    axes, legend = figure.axes
    assert texts(axes.get_xticklabels()) == SOURCE
    assert texts(axes.get_yticklabels()) == TARGET
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("looks at", "writes")
    assert axes.get_title(loc="left") == "cross, layer 0, head 1"
    assert axes.images[0].get_clim() == (0, 1)
    np.testing.assert_array_equal(axes.images[0].get_array(), WEIGHTS)
    assert legend.get_ylabel() == "attention weight"
    assert texts(axes.texts) == [".90", ".10", ".90", ".25", ".25", ".25", ".25"]  # what is under .05 is left out


def test_masked_cells_are_hatched():
    weights = np.where(np.tril(np.ones((3, 3))) > 0, 0.5, np.nan)
    axes = attention_picture(weights, TARGET, TARGET).axes[0]
    assert axes.images[0].get_array().mask.sum() == 3
    assert axes.patch.get_hatch()


def test_cells_have_the_same_size_in_every_picture():
    for n_rows, n_columns in [(1, 1), (1, 9), (9, 2)]:
        figure = attention_picture(even(n_rows, n_columns), ["a"] * n_columns, ["b"] * n_rows)
        box = figure.axes[0].get_position()
        width, height = np.array([box.width, box.height]) * figure.get_size_inches()
        assert (width / n_columns, height / n_rows) == (pytest.approx(0.4), pytest.approx(0.4))


def test_long_sequences_stay_within_bounds_and_are_labelled_here_and_there():
    figure = attention_picture(even(130, 500), [f"s{i}" for i in range(500)], [f"t{i}" for i in range(130)])
    axes = figure.axes[0]
    assert max(figure.get_size_inches()) < 20
    assert axes.images[0].get_array().shape == (65, 125)  # in blocks
    assert texts(axes.get_xticklabels())[:3] == ["0 s0", "8 s8", "16 s16"]
    assert texts(axes.get_yticklabels())[:3] == ["0 t0", "2 t2", "4 t4"]
    assert figure.axes[1].get_ylabel() == "largest attention weight of 2 × 4 positions"
    assert not axes.texts  # no numbers where there is no room


def test_a_block_shows_its_largest_weight_and_is_masked_only_as_a_whole():
    weights = np.full((300, 300), np.nan)
    weights[np.tril_indices(300)] = 0.001
    weights[7, 2] = 0.9
    blocks = in_blocks(weights, [f"t{i}" for i in range(300)], [f"s{i}" for i in range(300)])
    assert blocks.size == (3, 3)
    assert blocks.values.shape == (100, 100)
    assert blocks.values[2, 0] == 0.9
    assert np.isnan(blocks.values[0, 1]) and blocks.values[1, 1] == 0.001
    assert blocks.row_labels[:2] == ("0 t0", "3 t3")
    same = in_blocks(WEIGHTS, TARGET, SOURCE)
    assert same.values is WEIGHTS and same.legend == "attention weight"


def test_the_atlas_of_long_sequences_is_in_blocks():
    figure = attention_atlas(np.broadcast_to(even(512, 512), (1, 2, 512, 512)), ["s"] * 512, ["t"] * 512)
    assert figure.axes[0].images[0].get_array().shape == (128, 128)
    assert figure.axes[-1].get_ylabel() == "largest attention weight of 4 × 4 positions"


@pytest.mark.parametrize(
    ("text", "expected"), [("", slice(0, 9)), ("2:4", slice(2, 4)), (":3", slice(0, 3)), ("5:", slice(5, 9))]
)
def test_parts_of_a_map(text, expected):
    assert Part.parse(text, "--queries").within(9, "queries") == expected


@pytest.mark.parametrize("text", ["3", "4:2", "-1:3", "a:b", "2:2"])
def test_what_is_no_part_of_a_map(text):
    with pytest.raises(UsageError) as caught:
        Part.parse(text, "--queries")
    assert str(caught.value) == (
        f"--queries '{text}' is no range of positions.\nGive the first, and the one behind the last: --queries 0:40"
    )


def test_a_part_behind_the_map():
    with pytest.raises(UsageError, match="There are the queries 0 to 8, and none from 9 on"):
        Part(9).within(9, "queries")


def test_any_text_can_be_drawn(tmp_path):
    # A missing glyph is a warning, and a single $ a formula that does not parse; both would be errors here.
    tokens = ["你好", "👍", "$x", "$\\frac$", "\n", "\x00", "ا", "w" * 300]
    figure = attention_picture(even(8, 8), tokens, tokens, title="$ 你 \\frac{")
    save(figure, tmp_path / "picture.png")
    save(attention_atlas(even(8, 8)[None, None], tokens, tokens, title="$ 你"), tmp_path / "atlas.svg")
    save(curves_picture({"run $ 你 _": [{"kind": "train", "step": 1, "loss": 2.0}]}), tmp_path / "curves.pdf")
    assert len(list(tmp_path.iterdir())) == 3


def test_weights_that_do_not_fit_their_tokens_are_an_error():
    with pytest.raises(UsageError) as caught:
        attention_picture(WEIGHTS.T, SOURCE, TARGET)
    assert str(caught.value) == (
        "The weights must have the axes (3 target tokens, 4 source tokens), but their shape is (4, 3).\n"
        "Give one token for each row and each column, and at least one of each."
    )


def test_an_empty_map_is_an_error():
    with pytest.raises(UsageError, match="0 target tokens, 4 source tokens"):
        attention_picture(np.zeros((0, 4)), SOURCE, [])


def test_the_atlas_has_a_row_a_layer_and_a_column_a_head():
    weights = np.stack([np.stack([WEIGHTS * (layer + head) / 3 for head in range(3)]) for layer in range(2)])
    figure = attention_atlas(weights, SOURCE, TARGET, title="cross")
    *maps, legend = figure.axes
    assert [axes.get_title() for axes in maps] == ["head 0", "head 1", "head 2", "", "", ""]
    assert [axes.get_ylabel() for axes in maps] == ["layer 0", "", "", "layer 1", "", ""]
    assert [texts(axes.get_yticklabels()) == TARGET for axes in maps] == [True, False, False, True, False, False]
    assert [texts(axes.get_xticklabels()) == SOURCE for axes in maps] == [False] * 3 + [True] * 3
    np.testing.assert_array_equal(maps[5].images[0].get_array(), weights[1, 2])
    assert {axes.images[0].get_clim() for axes in maps} == {(0, 1)}
    assert texts(figure.texts) == ["cross"]
    assert legend.get_ylabel() == "attention weight"
    tops = [axes.get_position().y1 for axes in maps]
    assert tops[0] == tops[2] > tops[3]


def test_the_atlas_of_long_sequences_has_no_token_labels():
    figure = attention_atlas(np.broadcast_to(even(25, 30), (1, 2, 25, 30)), ["s"] * 30, ["t"] * 25)
    assert texts(figure.axes[0].get_xticklabels()) == texts(figure.axes[0].get_yticklabels()) == []


def test_an_atlas_needs_layers_and_heads():
    with pytest.raises(UsageError) as caught:
        attention_atlas(WEIGHTS, SOURCE, TARGET)
    assert caught.value.problem == (
        "The weights must have the axes (layers, heads, 3 target tokens, 4 source tokens), but their shape is (3, 4)."
    )


@pytest.mark.parametrize(("name", "first"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_ending_decides_the_format_and_equal_figures_give_equal_bytes(tmp_path, name, first):
    written = []
    for folder in ("one", "two"):
        path = save(attention_picture(WEIGHTS, SOURCE, TARGET), tmp_path / folder / name)
        written.append(path.read_bytes())
    assert written[0].startswith(first)
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("name", "shown", "example"), [("map.jpg", ".jpg", "map.png"), ("map", "map", "map.png"), ("", "", "picture.png")]
)
def test_another_ending_is_an_error(name, shown, example):
    with pytest.raises(UsageError) as caught:
        save(attention_picture(WEIGHTS, SOURCE, TARGET), name)
    assert str(caught.value) == (
        f"A picture is written as .pdf, .png, .svg, not as '{shown}'.\nName it, for example, {example}."
    )


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "map.png"
    with pytest.raises(UsageError) as caught:
        save(attention_picture(WEIGHTS, SOURCE, TARGET), path)
    assert caught.value.problem.startswith(f"Cannot write {path}: ")
    assert caught.value.remedy == "Choose a place that can be written to."


def test_importing_is_quick_and_leaves_pyplot_alone():
    program = (
        "import sys, regard.inspection.curves as curves, regard.inspection.render as render\n"
        "assert 'matplotlib' not in sys.modules\n"
        "curves.curves_picture({'run': [{'kind': 'train', 'step': 1, 'loss': 2.0}]})\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
