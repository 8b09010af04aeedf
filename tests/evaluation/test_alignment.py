"""Word alignments from attention."""

import json

import numpy as np
import pytest

from regard.errors import UsageError
from regard.evaluation.alignment import (
    Link,
    align_words,
    alignment_error_rate,
    as_json,
    as_pharaoh,
    read_pharaoh,
    word_weights,
)

# Source: "red house" as red, hou, se, <end>. Target: "maison rouge" as mai, son, rouge, <end>.
SOURCE_WORDS = [0, 1, 1, None]
TARGET_WORDS = [0, 0, 1, None]
WEIGHTS = np.array(
    [
        [0.3, 0.25, 0.25, 0.2],  # mai: most on "red" by pieces, but on "house" by words
        [0.1, 0.4, 0.4, 0.1],
        [0.6, 0.1, 0.1, 0.2],
        [0.0, 0.0, 0.0, 1.0],
    ]
)


def test_pieces_are_summed_over_the_source_and_averaged_over_the_target():
    merged = word_weights(WEIGHTS, source_words=SOURCE_WORDS, target_words=TARGET_WORDS)
    np.testing.assert_allclose(merged, [[0.2, 0.65], [0.6, 0.2]])


def test_each_target_word_is_linked_to_its_strongest_source_word():
    links = align_words(WEIGHTS, source_words=SOURCE_WORDS, target_words=TARGET_WORDS)
    assert [(link.source, link.target) for link in links] == [(0, 1), (1, 0)]
    assert [link.score for link in links] == [pytest.approx(0.6), pytest.approx(0.65)]


def test_pharaoh_format_has_the_source_first_and_is_sorted():
    weights = np.array([[0, 0, 1.0], [1.0, 0, 0], [0.9, 0.1, 0]])
    links = align_words(weights, source_words=[0, 1, 2], target_words=[0, 1, 2])
    assert as_pharaoh(links) == "0-1 0-2 2-0"


def test_json_holds_the_scores():
    assert json.dumps(as_json([Link(source=1, target=0, score=0.123456)])) == (
        '[{"source": 1, "target": 0, "score": 0.1235}]'
    )


def test_a_word_that_looks_at_special_tokens_alone_has_no_link():
    weights = np.array([[0.0, 1.0], [0.5, 0.5]])
    links = align_words(weights, source_words=[0, None], target_words=[0, 1])
    assert as_pharaoh(links) == "0-1"


@pytest.mark.parametrize(("source_words", "target_words"), [([None], [0, None]), ([0], [None, None])])
def test_without_words_there_are_no_links(source_words, target_words):
    assert align_words(np.ones((2, 1)), source_words=source_words, target_words=target_words) == []


def test_half_precision_weights_are_merged_in_full_precision():
    merged = word_weights(WEIGHTS.astype(np.float16), source_words=SOURCE_WORDS, target_words=TARGET_WORDS)
    assert merged.dtype == np.float64


def test_weights_of_another_shape_are_an_error():
    with pytest.raises(UsageError) as caught:
        align_words(WEIGHTS, source_words=[0, 1, 2], target_words=TARGET_WORDS)
    assert str(caught.value) == (
        "The weights must be 4 target by 3 source pieces, but they are 4 by 4.\n"
        "Give one row for each piece that was written, one column for each piece that was read."
    )


def links(*pairs):
    return [Link(source=source, target=target, score=1.0) for source, target in pairs]


def test_pharaoh_with_possible_links_is_read():
    gold = read_pharaoh("0-0 1?2 3p1\n10-4")
    assert gold.sure == {(0, 0), (10, 4)}
    assert gold.possible == {(0, 0), (1, 2), (3, 1), (10, 4)}
    assert read_pharaoh("").possible == frozenset()


@pytest.mark.parametrize("entry", ["0", "0-", "a-1", "0_1", "-1-2", "0-1-2", "²-1"])
def test_what_is_not_a_link_is_an_error(entry):
    with pytest.raises(UsageError) as caught:
        read_pharaoh(f"0-0 {entry}")
    assert str(caught.value) == (
        f"'{entry}' is not a link of two words.\nWrite source-target, as in 0-0 1-2; possible ones 1?2."
    )


def test_the_alignment_error_rate_is_that_of_och_and_ney():
    """A = {00, 11, 23}, S = {00, 11}, P = S + {22}: 1 - (2 + 2) / (3 + 2)."""
    gold = read_pharaoh("0-0 1-1 2?2")
    assert alignment_error_rate(links((0, 0), (1, 1), (2, 3)), gold) == pytest.approx(0.2)
    assert alignment_error_rate(links((0, 0), (1, 1)), gold) == 0.0
    assert alignment_error_rate(links((0, 0), (1, 1), (2, 2)), gold) == 0.0, "a possible link costs nothing"
    assert alignment_error_rate(links((0, 0)), gold) == pytest.approx(1 - 2 / 3)
    assert alignment_error_rate([], gold) == 1.0
    assert alignment_error_rate([], read_pharaoh("")) == 0.0
