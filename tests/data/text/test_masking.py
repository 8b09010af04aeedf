"""Hidden tokens and spans: the shares that the papers have, and nothing lost."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.text.masking import corrupt_spans, mask_tokens
from regard.data.text.roles import GAPS, MASK

VOCAB, N_SPECIALS, MASK_ID = 1000, 5, 4
ORDINARY = np.arange(VOCAB) >= N_SPECIALS
GAP_IDS = range(1000, 1064)


def chance(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def masked(ids: np.ndarray, *, rate: float = 0.15, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    return mask_tokens(ids, ordinary=ORDINARY, rate=rate, mask_id=MASK_ID, random=chance(seed))


def test_the_names_are_special_tokens() -> None:
    assert MASK == "<mask>"
    assert len(GAPS) == 64
    assert GAPS[0] == "<gap_0>"
    assert GAPS[-1] == "<gap_63>"


# Tokens


def test_of_the_hidden_tokens_eighty_percent_are_masked_ten_replaced_and_ten_stay() -> None:
    ids = chance(0).integers(N_SPECIALS, VOCAB, (400, 100))
    shown, hidden = masked(ids)
    assert (hidden.sum(axis=1) == 15).all()
    assert (shown[~hidden] == ids[~hidden]).all()
    as_mask, as_it_was = shown[hidden] == MASK_ID, shown[hidden] == ids[hidden]
    assert as_mask.mean() == pytest.approx(0.8, abs=0.02)
    assert as_it_was.mean() == pytest.approx(0.1, abs=0.015)
    replaced = shown[hidden][~as_mask & ~as_it_was]
    assert (replaced >= N_SPECIALS).all()
    assert np.ptp(replaced) > 0.99 * (VOCAB - N_SPECIALS - 1)  # any ordinary token, the first and the last too
    assert hidden.mean(axis=0) == pytest.approx(0.15, abs=0.06)  # wherever they stand


@settings(max_examples=60, deadline=None)
@given(
    row=st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40),
    rate=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)
def test_no_special_token_is_hidden_and_at_least_one_other_is(row: list[int], rate: float, seed: int) -> None:
    ids = np.array([row])
    shown, hidden = masked(ids, rate=rate, seed=seed)
    n_ordinary = int((ids >= N_SPECIALS).sum())
    assert not hidden[ids < N_SPECIALS].any()
    assert (shown[~hidden] == ids[~hidden]).all()
    assert hidden.sum() == (max(1, int(rate * n_ordinary + 0.5)) if n_ordinary else 0)


def test_padding_behind_a_row_changes_nothing() -> None:
    row = np.arange(10, 40)[None]
    shown, hidden = masked(row)
    wider, also_hidden = masked(np.concatenate((row, np.zeros((1, 7), np.int64)), axis=1))
    assert np.array_equal(wider[:, :30], shown)
    assert np.array_equal(also_hidden[:, :30], hidden)
    assert not also_hidden[:, 30:].any()


def test_the_generator_alone_decides() -> None:
    ids = np.arange(10, 110).reshape(2, 50)
    first, again, other = masked(ids, seed=3), masked(ids, seed=3), masked(ids, seed=4)
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[1], other[1])


# Spans


def corrupted(ids: np.ndarray, *, rate: float = 0.15, span: float = 3.0, seed: int = 1) -> tuple[list[int], list[int]]:
    return corrupt_spans(ids, rate=rate, span=span, gaps=GAP_IDS, random=chance(seed))


def put_together(source: list[int], target: list[int]) -> list[int]:
    """The text again: in the place of each gap what the target has behind it."""
    spans: dict[int, list[int]] = {}
    for id in target:
        if id in GAP_IDS:
            spans[id] = []
        else:
            spans[list(spans)[-1]].append(id)
    return [word for id in source for word in (spans[id] if id in GAP_IDS else [id])]


@settings(max_examples=200, deadline=None)
@given(
    length=st.integers(1, 40) | st.integers(500, 700),
    rate=st.floats(0, 0.99),
    span=st.floats(1, 20),
    seed=st.integers(0, 99),
)
def test_source_and_target_hold_every_token_once_in_order(length: int, rate: float, span: float, seed: int) -> None:
    ids = np.arange(length)
    source, target = corrupted(ids, rate=rate, span=span, seed=seed)
    assert put_together(source, target) == ids.tolist()
    gaps = [id for id in source if id in GAP_IDS]
    assert gaps == list(GAP_IDS)[: len(gaps)] == [id for id in target if id in GAP_IDS]
    assert not any(first in GAP_IDS and second in GAP_IDS for first, second in pairwise(source))
    assert not any(first in GAP_IDS and second in GAP_IDS for first, second in pairwise(target))
    assert target[-1] not in GAP_IDS
    n_hidden = len(target) - len(gaps)
    assert n_hidden == min(max(1, round(rate * length)), max(1, length - 1))
    assert len(source) <= length
    assert len(target) <= length + 1


def test_spans_have_the_mean_length_that_is_asked_for() -> None:
    drawn = [corrupted(np.arange(200), seed=seed) for seed in range(100)]
    assert {sum(id in GAP_IDS for id in source) for source, _ in drawn} == {10}  # 30 tokens in spans of 3
    firsts = {source[0] == 1000 for source, _ in drawn} | {source[-1] == 1009 for source, _ in drawn}
    assert firsts == {True, False}  # a text may begin and end with a span
    places = np.zeros(200)
    for source, _ in drawn:
        kept = [id for id in source if id not in GAP_IDS]
        places[kept] += 1
    assert places.mean() == pytest.approx(85)
    assert places[[0, -1]] == pytest.approx(85, abs=15)


def test_there_are_never_more_spans_than_gaps() -> None:
    source, target = corrupted(np.arange(900), rate=0.5, span=1.0)
    assert [id for id in source if id in GAP_IDS] == list(GAP_IDS)
    assert len(target) == 450 + 64


def test_a_single_token_is_hidden_whole() -> None:
    assert corrupted(np.array([7])) == ([1000], [1000, 7])
