"""Linear regression on given features."""

import numpy as np
import pytest

from regard.evaluation.baselines.linear import LinearRegression


def test_a_line_is_found() -> None:
    random = np.random.default_rng(1)
    features = random.normal(size=(2000, 3)).astype(np.float32) * (1, 100, 0.01)
    numbers = 2 + features @ (1.0, -0.02, 50.0)
    model = LinearRegression.fit(features, numbers)
    assert model.weights == pytest.approx([1.0, -0.02, 50.0], rel=0.01)
    assert model.predict(features) == pytest.approx(numbers, abs=0.02)
    assert (model.n_inputs, model.n_outputs) == (3, 1)


def test_a_feature_that_never_changes_does_no_harm() -> None:
    features = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], np.float32)
    predicted = LinearRegression.fit(features, np.array([1.0, 2.0, 3.0])).predict(features)
    assert predicted[1] == pytest.approx(2.0)
    assert predicted[0] < 1.5
    assert predicted[2] > 2.5
