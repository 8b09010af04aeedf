"""The nearest class mean."""

import numpy as np
import pytest

from regard.evaluation.baselines.nearest_mean import NearestMean


def test_the_nearest_mean_is_found_in_units_of_deviation() -> None:
    random = np.random.default_rng(1)
    classes = np.arange(300) % 3
    centres = np.array([[0, 0], [1, 0], [0, 1000]])
    features = (centres[classes] + random.normal(size=(300, 2)) * (0.1, 100)).astype(np.float32)
    model = NearestMean.fit(features, classes, 4)
    assert (model.logits(features).argmax(1) == classes).mean() > 0.98
    assert (model.n_inputs, model.n_outputs) == (2, 4)
    assert model.means[0] * model.deviations == pytest.approx(features[classes == 0].mean(0), abs=0.01)


def test_a_class_without_examples_is_never_meant() -> None:
    features = np.array([[5.0], [6.0], [-4.0]], np.float32)
    model = NearestMean.fit(features, np.array([0, 0, 2]), 3)
    assert model.logits(np.array([[0.0], [0.1]], np.float32)).argmax(1).tolist() != [1, 1]
    assert (model.logits(features)[:, 1] < model.logits(features)[:, [0, 2]].min(1)).all()


def test_large_numbers_do_not_overflow() -> None:
    features = np.array([[1e30], [-1e30], [2e30], [-2e30]], np.float32)
    model = NearestMean.fit(features, np.array([0, 1, 0, 1]), 2)
    assert model.logits(features).argmax(1).tolist() == [0, 1, 0, 1]


def test_deviations_that_are_none_are_refused() -> None:
    arrays = NearestMean.fit(np.eye(2, dtype=np.float32), np.array([0, 1]), 2).arrays
    with pytest.raises(ValueError, match="a deviation and a temperature are above 0"):
        NearestMean.of_arrays({**arrays, "deviations": np.zeros(2, np.float32)}, n_inputs=2, n_outputs=2)
