"""Scores by the length of the source."""

import pytest

from regard.errors import DataError, UsageError
from regard.evaluation.generated_text import score_translations
from regard.evaluation.lengths import length_table, scores_by_length

SOURCES = ["eins", "eins zwei drei", "eins zwei drei vier", "a b c d e f g"]
HYPOTHESES = ["one", "one two there", "one two three four", "a b c d x f g"]
REFERENCES = ["one", "one two three", "one two three four", "a b c d e f g"]


def test_each_bucket_is_scored_as_a_corpus_of_its_own():
    short, middle, long = scores_by_length(SOURCES, HYPOTHESES, REFERENCES, edges=[2, 5])
    assert [bucket.label for bucket in (short, middle, long)] == ["0-1", "2-4", "5+"]
    assert [bucket.sentences for bucket in (short, middle, long)] == [1, 2, 1]
    assert list(middle.scores) == score_translations(HYPOTHESES[1:3], REFERENCES[1:3])
    assert list(long.scores) == score_translations(HYPOTHESES[3:], REFERENCES[3:])


def test_a_bucket_without_sentences_has_no_scores():
    *_, last = scores_by_length(SOURCES, HYPOTHESES, REFERENCES, edges=[10], metrics=["chrf"])
    assert (last.sentences, last.scores) == (0, ())


@pytest.mark.parametrize(("edges", "shown"), [([5, 2], "5, 2"), ([0, 4], "0, 4"), ([3, 3], "3, 3")])
def test_edges_must_rise(edges, shown):
    with pytest.raises(UsageError) as caught:
        scores_by_length(SOURCES, HYPOTHESES, REFERENCES, edges=edges)
    assert str(caught.value) == f"Lengths must rise and be at least 1: got {shown}.\nGive them as in: 10 20 30."


def test_a_missing_hypothesis_is_an_error():
    with pytest.raises(DataError) as caught:
        scores_by_length(SOURCES, HYPOTHESES[:3], REFERENCES)
    assert str(caught.value) == (
        "Each source sentence needs its hypothesis: there are 4 sources and 3 hypotheses.\n"
        "Score the output of exactly these source sentences."
    )


def test_ranges_that_hold_sentences_have_a_table_and_all_a_json():
    buckets = scores_by_length(SOURCES, HYPOTHESES, REFERENCES, edges=[2, 5, 9], metrics=["ter"])
    assert length_table(buckets).lines() == [
        "source words  sentences    TER",
        "0-1                   1   0.00",
        "2-4                   2  14.29",
        "5-8                   1  14.29",
    ]
    assert buckets[0].to_json() == {"words": "0-1", "sentences": 1, "ter": 0}
    assert buckets[3].to_json() == {"words": "9+", "sentences": 0}
