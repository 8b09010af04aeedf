"""Bags of n-grams: what is the same, what is another, and which ones are kept."""

import numpy as np
import pytest

from regard.evaluation.baselines.ngrams import (
    Sequences,
    bags_of_ngrams,
    bags_of_places,
    find,
    mixed,
    most_frequent,
    require_hashes,
)


def sequences(*rows: list[int]) -> Sequences:
    offsets = np.cumsum([0, *map(len, rows)])
    return Sequences(np.array([one for row in rows for one in row], np.uint16), offsets)


def test_ngrams_of_each_sequence_are_counted() -> None:
    bags = bags_of_ngrams(sequences([1, 2, 1, 2], [], [2]), order=2)
    assert bags.n_rows == 3
    # 1, 2, "1 2" and "2 1"; then 2.
    assert np.bincount(bags.rows, minlength=3).tolist() == [4, 0, 1]
    assert sorted(bags.counts[bags.rows == 0].tolist()) == [1, 2, 2, 2]
    [two] = bags.hashes[bags.rows == 2]
    assert two in bags.hashes[bags.rows == 0]


def test_no_ngram_reaches_over_the_end_of_a_sequence() -> None:
    apart, together = bags_of_ngrams(sequences([1, 2], [3]), order=3), bags_of_ngrams(sequences([1, 2, 3]), order=3)
    assert (len(apart.hashes), len(together.hashes)) == (4, 6)
    assert set(apart.hashes.tolist()) < set(together.hashes.tolist())


def test_ngrams_may_be_longer_than_all_there_is() -> None:
    assert len(bags_of_ngrams(sequences([1, 2]), order=5).hashes) == 3
    assert len(bags_of_ngrams(sequences([], []), order=5).hashes) == 0


def test_a_token_and_a_sequence_of_one_number_are_two_things() -> None:
    bags = bags_of_ngrams(sequences(*([token] for token in (3, 2, 1, 0))), order=1)
    assert sorted(bags.rows.tolist()) == [0, 1, 2, 3]


def test_the_order_of_tokens_counts() -> None:
    first, second = (set(bags_of_ngrams(sequences(row), order=2).hashes.tolist()) for row in ([1, 2], [2, 1]))
    assert len(first & second) == 2


def test_a_second_text_is_told_apart() -> None:
    first = bags_of_ngrams(sequences(list(range(50))), order=1)
    second = bags_of_ngrams(sequences(list(range(50))), order=1, salt=1)
    assert not set(first.hashes.tolist()) & set(second.hashes.tolist())
    assert len(first.joined(second).hashes) == 100


def test_a_token_at_another_place_is_another() -> None:
    bags = bags_of_places(sequences([7, 7], [7, 8]))
    assert len(set(bags.hashes.tolist())) == 3
    assert bags.hashes[0] == bags.hashes[2]


def test_the_most_frequent_are_kept() -> None:
    hashes = mixed(np.array([1, 1, 2, 3, 3, 3]))
    assert set(most_frequent(hashes, 2).tolist()) == set(mixed(np.array([1, 3])).tolist())
    assert set(most_frequent(hashes, 9).tolist()) == set(hashes.tolist())


def test_places_of_known_hashes() -> None:
    known = np.sort(mixed(np.arange(5)))
    assert find(known, known[[3, 0]]).tolist() == [3, 0]
    assert find(known, mixed(np.array([99]))).tolist() == [-1]
    assert find(known[:0], known).tolist() == [-1] * 5


def test_what_are_no_sorted_hashes_is_refused() -> None:
    require_hashes(np.array([1, 5], np.uint64))
    for wrong in (
        np.array([5, 1], np.uint64),
        np.array([1, 1], np.uint64),
        np.array([1, 5]),
        np.zeros((1, 1), np.uint64),
    ):
        with pytest.raises(ValueError, match="sorted hashes were expected"):
            require_hashes(wrong)
