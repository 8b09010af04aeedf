"""Ridge regression on what sequences hold."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines import ridge
from regard.evaluation.baselines.ngrams import bags_of_ngrams, bags_of_places
from regard.evaluation.baselines.ridge import Ridge, RidgeByPosition


def test_the_solution_is_that_of_the_normal_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "PENALTIES", (0.5,))
    random = np.random.default_rng(1)
    rows = [random.permutation(8)[: random.integers(1, 7)].tolist() for _ in range(30)]
    numbers = random.normal(size=30)
    bags = bags_of_ngrams(sequences(*rows), order=1)
    model = Ridge.fit(bags, numbers)
    features = np.zeros((30, 8))
    for number, row in enumerate(rows):
        features[number, row] = 1 / np.sqrt(len(row))
    centred = numbers - numbers.mean()
    weights = np.linalg.solve(features.T @ features + 0.5 * np.eye(8), features.T @ centred)
    assert model.predict(bags) == pytest.approx(features @ weights + numbers.mean(), abs=1e-4)


def test_positions_tell_what_counts_cannot() -> None:
    random = np.random.default_rng(2)
    tokens = random.integers(0, 4, (300, 6))
    numbers = (tokens[:, 2] == 1) - 1.0 * (tokens[:, 4] == 1)  # the same token, here for and there against
    rows = sequences(*tokens.tolist())
    by_position = RidgeByPosition.fit(bags_of_places(rows), numbers)
    by_count = Ridge.fit(bags_of_ngrams(rows, order=1), numbers)
    errors = [
        float(np.square(model.predict(bags) - numbers).mean())
        for model, bags in ((by_position, bags_of_places(rows)), (by_count, bags_of_ngrams(rows, order=1)))
    ]
    assert errors[0] < 0.02
    assert errors[1] > 0.2


def test_how_often_something_stands_everywhere_tells_something() -> None:
    bags = bags_of_ngrams(
        sequences(*([1] * (1 + number % 4) + [2] * (4 - number % 4) for number in range(40))), order=1
    )
    numbers = np.arange(40) % 4 - 1.5
    assert np.corrcoef(Ridge.fit(bags, numbers).predict(bags), numbers)[0, 1] > 0.95


def test_what_stands_everywhere_is_no_feature() -> None:
    model = RidgeByPosition.fit(bags_of_places(sequences([5, 1], [5, 2], [5, 1])), np.array([0.0, 1.0, 0.0]))
    assert len(model.known) == 2


def test_what_was_never_seen_is_the_mean() -> None:
    model = Ridge.fit(bags_of_ngrams(sequences([1], [2], [1]), order=1), np.array([0.0, 3.0, 0.0]))
    assert model.predict(bags_of_ngrams(sequences([9], []), order=1)) == pytest.approx([1.0, 1.0])
