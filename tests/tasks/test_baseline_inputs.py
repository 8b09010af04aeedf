"""What baselines read: a bounded number of examples, in equal distances."""

import numpy as np
import pytest

from regard.data.pipeline.corpus import Ragged
from regard.tasks import baseline_inputs
from regard.tasks.baseline_inputs import (
    bounded_rows,
    evenly,
    in_chunks,
    in_parts,
    ngram_order,
    sequences,
    stretches,
)


def test_numbers_in_equal_distances() -> None:
    assert evenly(4, 9).tolist() == [0, 1, 2, 3]
    assert evenly(10, 5).tolist() == [0, 2, 4, 6, 8]
    assert len(set(evenly(1_000_003, 1000).tolist())) == 1000


def test_rows_are_bounded_by_their_tokens() -> None:
    lengths = np.full(100, 10)
    assert bounded_rows(lengths, 1000).tolist() == list(range(100))
    assert bounded_rows(lengths, 250).tolist() == list(range(0, 100, 4))
    assert bounded_rows(np.array([5000]), 10).tolist() == [0]  # one is always learned from
    assert bounded_rows(np.empty(0, np.int64), 10).tolist() == []


def test_rows_of_a_corpus_as_sequences() -> None:
    ragged = Ragged(np.arange(6, dtype=np.uint16), np.array([0, 2, 2, 6]))
    found = sequences(ragged, np.array([2, 1, 0]))
    assert (found.values.tolist(), found.offsets.tolist()) == ([2, 3, 4, 5, 0, 1], [0, 4, 4, 6])
    assert sequences(ragged, np.empty(0, np.int64)).offsets.tolist() == [0]


def test_all_rows_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_inputs, "_CHUNK", 10)
    chunks = list(in_chunks(np.array([4, 4, 4, 0, 30, 1])))
    assert [row for chunk in chunks for row in chunk.tolist()] == list(range(6))
    assert len(chunks) > 2
    assert [part.tolist() for part in in_parts(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]


def test_stretches_of_a_long_stream() -> None:
    stream = np.arange(100_000)
    assert stretches(stream, 100_000) is not None
    assert len(stretches(stream, 100_000)) == 100_000
    found = stretches(stream, 2000)
    assert (len(found), found[:3].tolist(), found[20:22].tolist()) == (2000, [0, 1, 2], [1000, 1001])


def test_vocabularies_of_characters_have_longer_ngrams() -> None:
    assert (ngram_order(300, few=2, many=5), ngram_order(8000, few=2, many=5)) == (5, 2)
