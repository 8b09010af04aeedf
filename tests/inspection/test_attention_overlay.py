"""Where a captioner looked: a picture for each word, lit where its weights lie."""

from pathlib import Path

import numpy as np
import pytest

from regard.errors import UsageError
from regard.inspection.attention_overlay import dimmed, overlay_picture
from regard.inspection.render import save


def test_an_image_is_lit_where_the_weights_lie() -> None:
    white = np.full((4, 6, 3), 200, np.uint8)
    found = dimmed(white, np.array([[0.0, 0.5], [0.25, 0.25]]))
    assert (found[:2, :3] == 50).all()
    assert (found[:2, 3:] == 200).all()
    assert (found[2:] == 125).all()


def test_places_that_do_not_divide_the_image_evenly() -> None:
    found = dimmed(np.full((5, 5, 3), 100, np.uint8), np.eye(3))
    assert found.shape == (5, 5, 3)
    assert (found[0, 0] == 100).all() and (found[4, 4] == 100).all() and (found[0, 4] == 25).all()


def test_each_word_has_its_own_panel(tmp_path: Path) -> None:
    image = np.zeros((8, 8, 1), np.uint8)
    words = ["a", "$dog$", "runs", "over", "the", "grass", "now"]
    figure = overlay_picture(image, words, np.full((7, 2, 2), 0.25), title="a caption")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:8] == ["", "a", titles[2], "runs", "over", "the", "grass", "now"]
    assert sum(len(axes.images) for axes in figure.axes) == 8
    assert save(figure, tmp_path / "x.png").stat().st_size > 1000


def test_weights_that_do_not_fit_the_words() -> None:
    with pytest.raises(
        UsageError, match=r"must have the axes \(2 words, rows, columns\), but their shape is \(1, 2, 2\)"
    ):
        overlay_picture(np.zeros((4, 4, 3), np.uint8), ["a", "b"], np.zeros((1, 2, 2)))
