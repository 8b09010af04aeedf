"""Sentences of words: whole words in segments that a model can read."""

from regard.tasks.labelling.words import WordSegment, word_segments


def test_a_long_sentence_is_cut_into_segments_of_whole_words() -> None:
    assert word_segments([], 0, 5) == []
    assert word_segments([0, 2, 4], 5, 5) == [WordSegment(0, 3, 0, 5)]
    assert word_segments([0, 2, 4], 6, 5) == [WordSegment(0, 2, 0, 4), WordSegment(2, 3, 4, 6)]
    # Not six and one.
    assert word_segments([0, 1, 2, 3, 4, 5, 6], 7, 6) == [
        WordSegment(0, 4, 0, 4),
        WordSegment(4, 7, 4, 7),
    ]
    # A word too long by itself.
    assert word_segments([0, 9], 10, 4) == [
        WordSegment(0, 1, 0, 4),
        WordSegment(1, 2, 9, 10),
    ]
    # A token in front of the first word.
    assert word_segments([1, 3], 5, 3) == [
        WordSegment(0, 1, 0, 3),
        WordSegment(1, 2, 3, 5),
    ]
    assert word_segments([0, 2, 2], 3, 2) == [WordSegment(0, 1, 0, 2), WordSegment(1, 3, 2, 3)]
    assert word_segments([0, 1, 1, 1], 2, 1) == [WordSegment(0, 1, 0, 1), WordSegment(1, 4, 1, 2)]
