"""Images with what was said of each."""

from pathlib import Path

import numpy as np
import pytest

from regard.errors import UsageError
from regard.inspection.image_grid import grid_picture
from regard.inspection.render import save


def test_each_image_has_its_answer_below_it(tmp_path: Path) -> None:
    images = [np.zeros((8, 8, channels), np.uint8) for channels in (1, 3, 3, 3, 3, 3, 3)]
    answers = ["a dog", "$5 $ and a sentence that is too long for one line below an image", *"abcde"]
    figure = grid_picture(images, answers)
    shown = [" ".join(text.get_text().split()) for axes in figure.axes for text in axes.texts]
    assert shown == answers
    assert max(text.get_text().count("\n") for axes in figure.axes for text in axes.texts) == 2
    assert sum(len(axes.images) for axes in figure.axes) == 7
    assert save(figure, tmp_path / "x.png").stat().st_size > 1000


def test_too_many_images_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        grid_picture([np.zeros((1, 1, 3), np.uint8)] * 61, ["x"] * 61)
    assert str(caught.value) == "A picture shows 1 to 60 images, not 61.\nName that many."
