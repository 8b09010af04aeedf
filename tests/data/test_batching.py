"""Batches: every example once, under the budget, reproducible, with little padding."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regard.data.batching import fixed_batches, padding_share, plan
from regard.errors import UsageError

length_arrays = st.tuples(st.integers(0, 60), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 50) | st.integers(900, 1000))
)


@pytest.fixture(scope="module")
def lengths() -> np.ndarray:
    """Sentence pairs of the shape of Multi30k: 29,000 pairs, about 15 ± 4.5 tokens, the sides alike but not equal."""
    random = np.random.default_rng(0)
    source = random.lognormal(np.log(14.7), 0.28, size=29_000)
    target = source * random.lognormal(0.02, 0.17, size=29_000)
    return np.clip(np.stack([source, target], axis=1).round().astype(np.int64), 4, 54)


@settings(max_examples=100, deadline=None)
@given(lengths=length_arrays, batch_tokens=st.integers(1, 300) | st.integers(3_000, 9_000), seed=st.integers(0, 9))
def test_every_example_once_and_under_the_budget(lengths: np.ndarray, batch_tokens: int, seed: int) -> None:
    random_batches = plan(lengths, batch_tokens=batch_tokens, seed=seed, epoch=3)
    for batches in (random_batches, fixed_batches(lengths, batch_tokens)):
        assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= batch_tokens


def test_the_budget_holds_where_long_examples_change_places() -> None:
    lengths = np.arange(1_000, 4_000)
    for batch in plan(lengths, batch_tokens=60_000, seed=1, epoch=0):
        assert len(batch) * lengths[batch].max() <= 60_000


def test_one_side_is_the_same_as_a_column(lengths: np.ndarray) -> None:
    alone = plan(lengths[:500, 0], batch_tokens=512, seed=1, epoch=0)
    column = plan(lengths[:500, :1], batch_tokens=512, seed=1, epoch=0)
    assert all(np.array_equal(a, b) for a, b in zip(alone, column, strict=True))
    assert padding_share(lengths[:500, 0], alone) == padding_share(lengths[:500, :1], column)


def test_too_long_an_example_is_a_batch_of_its_own() -> None:
    batches = plan([3, 99, 3, 3], batch_tokens=9, seed=1, epoch=0)
    assert sorted(sorted(batch.tolist()) for batch in batches) == [[0, 2, 3], [1]]


def test_batches_are_a_function_of_seed_and_epoch(lengths: np.ndarray) -> None:
    program = (
        "import numpy as np; from regard.data.batching import plan;"
        "lengths = np.arange(600).reshape(300, 2) % 37;"
        "print([batch.tolist() for batch in plan(lengths, batch_tokens=200, seed=7, epoch=2)])"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = plan(np.arange(600).reshape(300, 2) % 37, batch_tokens=200, seed=7, epoch=2)
    assert elsewhere.strip() == str([batch.tolist() for batch in here])
    others = [plan(np.arange(600).reshape(300, 2) % 37, batch_tokens=200, seed=s, epoch=e) for s, e in ((7, 3), (8, 2))]
    for other in others:
        assert [batch.tolist() for batch in other] != [batch.tolist() for batch in here]


def test_batches_differ_from_epoch_to_epoch_in_content_too() -> None:
    short = np.random.default_rng(0).integers(5, 40, size=3_000)
    long = np.arange(1_000, 4_000)  # no two are equal
    for lengths in (short, long):
        first, second = (
            {tuple(sorted(batch.tolist())) for batch in plan(lengths, batch_tokens=60_000, seed=1, epoch=epoch)}
            for epoch in (0, 1)
        )
        assert len(first & second) <= 1


def test_the_order_of_batches_is_random(lengths: np.ndarray) -> None:
    longest = [lengths[batch].max() for batch in plan(lengths, batch_tokens=4096, seed=1, epoch=0)]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


@pytest.mark.parametrize("batch_tokens", [1024, 4096, 16384])
def test_padding_is_under_ten_percent(lengths: np.ndarray, batch_tokens: int) -> None:
    for batches in (plan(lengths, batch_tokens=batch_tokens, seed=1, epoch=0), fixed_batches(lengths, batch_tokens)):
        assert padding_share(lengths, batches) < 0.1
        filled = [len(batch) * lengths[batch].max() for batch in batches]
        assert np.mean(filled) > 0.9 * batch_tokens


def test_padding_share_counts_both_sides() -> None:
    lengths = np.array([[1, 4], [3, 2]])
    assert padding_share(lengths, [np.array([0, 1])]) == pytest.approx(1 - 10 / 14)
    assert padding_share(lengths, [np.array([0]), np.array([1])]) == 0
    assert padding_share(lengths, []) == 0


def test_fixed_batches_go_from_short_to_long_and_stay(lengths: np.ndarray) -> None:
    batches = fixed_batches(lengths, 4096)
    assert all(np.array_equal(a, b) for a, b in zip(batches, fixed_batches(lengths, 4096), strict=True))
    longest = lengths[np.concatenate(batches)].max(axis=1)
    assert (np.diff(longest) >= 0).all()


def test_a_budget_of_nothing() -> None:
    for make in (lambda: plan([1], batch_tokens=0, seed=1, epoch=0), lambda: fixed_batches([1], 0)):
        with pytest.raises(UsageError) as caught:
            make()
        assert str(caught.value) == "A batch needs room for at least 1 token, not 0.\nSet training.batch_tokens."
