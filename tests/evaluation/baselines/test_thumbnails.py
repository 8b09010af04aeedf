"""Thumbnails of images."""

import numpy as np
import pytest

from regard.evaluation.baselines.thumbnails import thumbnails


def test_pixels_are_the_means_of_what_they_stand_for() -> None:
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1)
    assert 255 * thumbnails(image, 2) == pytest.approx(np.array([[2.5, 4.5, 10.5, 12.5]]), abs=1e-4)


def test_a_size_that_is_no_multiple_keeps_every_pixel() -> None:
    image = np.full((2, 5, 5, 3), 51, np.uint8)
    assert thumbnails(image, 3) == pytest.approx(np.full((2, 27), 0.2))


def test_small_images_stay_as_they_are() -> None:
    image = np.arange(8, dtype=np.uint8).reshape(1, 2, 2, 2)
    assert 255 * thumbnails(image, 32) == pytest.approx(np.arange(8.0)[None], abs=1e-4)
