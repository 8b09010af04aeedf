"""The n-gram model: probabilities that sum to 1, by the formula, and tables that stay small."""

from collections import Counter

import numpy as np
import pytest

from regard.evaluation.baselines import kneser_ney
from regard.evaluation.baselines.kneser_ney import KneserNey, windows

V = 12


@pytest.fixture(scope="module")
def stream() -> np.ndarray:  # type: ignore[type-arg]
    """Text of a small grammar: every token has its favourites to follow."""
    random = np.random.default_rng(1)
    found = [0]
    for _ in range(3000):
        found.append(int((3 * found[-1] + random.choice((1, 2, 5), p=(0.7, 0.2, 0.1))) % 10))
    return np.array(found)


def test_windows_over_a_stream() -> None:
    tokens, before = windows(np.array([5, 6, 7]), 3)
    assert tokens.tolist() == [6, 7]
    assert before.tolist() == [[0, 5], [5, 6]]
    assert windows(np.array([5]), 3)[0].tolist() == []


@pytest.mark.parametrize("order", [2, 3, 5])
def test_probabilities_sum_to_one(stream: np.ndarray, order: int) -> None:  # type: ignore[type-arg]
    model = KneserNey.fit(*windows(stream, order), V)
    for row in ([0] * (order - 1), [11] * (order - 1), stream[40 : 40 + order - 1].tolist()):
        before = np.tile(row, (V, 1))
        assert model.probabilities(np.arange(V), before).sum() == pytest.approx(1, abs=1e-5)


def test_the_formula_of_bigrams(stream: np.ndarray) -> None:  # type: ignore[type-arg]
    model = KneserNey.fit(*windows(stream, 2), V)
    pairs = Counter(zip(stream[:-1].tolist(), stream[1:].tolist(), strict=True))
    assert min(pairs.values()) > 4  # so that each has the discount of n-grams of which the formula says nothing
    of_token = Counter(following for _, following in pairs)  # in how many pairs it follows
    counts = np.array([of_token[token] for token in range(V)])
    unigrams = (counts - kneser_ney._discounts(counts)) / counts.sum()
    unigrams += (1 - unigrams.sum()) / V
    total = sum(count for (before, _), count in pairs.items() if before == 4)
    kinds = [(token, count) for (before, token), count in pairs.items() if before == 4]
    token, count = kinds[0]
    expected = (count - 0.5) / total + 0.5 * len(kinds) / total * unigrams[token]
    assert model.probabilities(np.array([token]), np.array([[4]])) == pytest.approx([expected], rel=1e-5)


def test_discounts_by_chen_and_goodman() -> None:
    counts = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4])
    share = 8 / (8 + 2 * 4)
    expected = (1 - 2 * share * 4 / 8, 2 - 3 * share * 2 / 4, 3 - 4 * share * 1 / 2)
    assert kneser_ney._discounts(np.array([0, *counts]))[[0, 1, 9, 13, 15]] == pytest.approx(
        [0, *expected, expected[2]]
    )


def test_it_learns_what_follows(stream: np.ndarray) -> None:  # type: ignore[type-arg]
    train, test = stream[:2500], stream[2500:]
    tokens, before = windows(test, 3)
    model = KneserNey.fit(*windows(train, 3), V)
    entropy = -(0.7 * np.log(0.7) + 0.2 * np.log(0.2) + 0.1 * np.log(0.1))
    assert model.cross_entropy(tokens, before) / len(tokens) == pytest.approx(entropy, abs=0.1)
    assert (model.guesses(before) == tokens).mean() == pytest.approx(0.7, abs=0.06)
    assert model.guesses(np.array([[11, 11]])).tolist() == [int(model.unigrams.argmax())]


def test_chunks_make_no_difference(
    stream: np.ndarray,  # type: ignore[type-arg]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = KneserNey.fit(*windows(stream, 3), V)
    whole = model.cross_entropy(*windows(stream, 3))
    monkeypatch.setattr(kneser_ney, "_CHUNK", 7)
    assert model.cross_entropy(*windows(stream, 3)) == pytest.approx(whole)


def test_only_so_many_ngrams_are_kept(
    stream: np.ndarray,  # type: ignore[type-arg]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kneser_ney, "MOST_NGRAMS", 5)
    model = KneserNey.fit(*windows(stream, 3), V)
    assert len(model.ngrams) <= 10
    before = np.tile(stream[40:42], (V, 1))
    assert model.probabilities(np.arange(V), before).sum() == pytest.approx(1, abs=1e-5)


def test_nothing_to_learn_from_leaves_all_tokens_alike() -> None:
    model = KneserNey.fit(*windows(np.array([3]), 3), V)
    assert model.probabilities(np.arange(V), np.zeros((V, 2), np.int64)) == pytest.approx(np.full(V, 1 / V))


@pytest.mark.parametrize(
    ("name", "value"), [("unigrams", 0.0), ("left", 0.0), ("shares", -0.1), ("next", V), ("left", np.nan)]
)
def test_tables_that_are_none_are_refused(
    stream: np.ndarray,  # type: ignore[type-arg]
    name: str,
    value: float,
) -> None:
    arrays = KneserNey.fit(*windows(stream, 2), V).arrays
    wrong = arrays[name].copy()
    wrong[0] = value
    with pytest.raises(ValueError, match=r"a probability is not above 0|outside its range|finite numbers"):
        KneserNey.of_arrays({**arrays, name: wrong}, n_inputs=0, n_outputs=V)
