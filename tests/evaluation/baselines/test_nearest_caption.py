"""Captions of the nearest image, and the most typical one."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines.nearest_caption import NearestCaption, TypicalCaption

FEATURES = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], np.float32)


def test_the_caption_of_the_nearest_image() -> None:
    model = NearestCaption.fit(FEATURES, sequences([1, 2], [3], [4, 5, 6]), 9)
    near = np.array([[0.9, 0.8], [0.2, 0.1], [0.2, 0.9]], np.float32)
    assert [own.tolist() for own in model.captions(near)] == [[3], [1, 2], [4, 5, 6]]
    assert (model.n_inputs, model.n_outputs) == (2, 9)


def test_the_caption_that_shares_most_with_the_others() -> None:
    model = TypicalCaption.fit(sequences([7, 8], [1, 2, 3], [1, 2, 4], [1, 2, 3]), 9)
    assert [own.tolist() for own in model.captions(FEATURES)] == [[1, 2, 3]] * 3


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("offsets", [0, 3, 2, 6], "captions are not in order"),
        ("offsets", [0, 1, 2, 9], "a number is outside its range"),
        ("tokens", [1, 2, 3, 4, 5, 9], "a number is outside its range"),
    ],
)
def test_captions_that_are_none_are_refused(name: str, value: list[int], problem: str) -> None:
    arrays = NearestCaption.fit(FEATURES, sequences([1, 2], [3], [4, 5, 6]), 9).arrays
    with pytest.raises(ValueError, match=problem):
        NearestCaption.of_arrays({**arrays, name: np.array(value)}, n_inputs=2, n_outputs=9)
