"""The constant answer."""

import numpy as np
import pytest

from regard.evaluation.baselines.constant import MajorityClass, MajorityTag, Mean


def test_classes_are_as_likely_as_they_are_frequent() -> None:
    majority = MajorityClass.fit([1, 6, 0])
    assert np.exp(majority.logits) == pytest.approx(np.array([1.5, 6.5, 0.5]) / 8.5)
    assert majority.repeated(4).shape == (4, 3)
    assert majority.repeated(4).argmax(1).tolist() == [1] * 4
    assert (MajorityClass.name, MajorityTag.name) == ("majority class", "most frequent tag")


def test_the_mean() -> None:
    assert Mean.fit(np.array([1.0, 2.0, 6.0])).repeated(2).tolist() == [[3.0], [3.0]]
    assert Mean.fit(np.empty(0)).repeated(1).tolist() == [[0.0]]
