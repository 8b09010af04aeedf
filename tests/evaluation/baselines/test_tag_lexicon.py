"""The tag lexicon: words by their pieces, and their most frequent tags."""

import numpy as np
import pytest
from tests.evaluation.baselines.test_ngrams import sequences

from regard.evaluation.baselines import tag_lexicon
from regard.evaluation.baselines.tag_lexicon import TagLexicon, word_hashes


def test_words_are_known_by_their_pieces() -> None:
    # "1 2" is a word here and there; "1" alone, "2 1" and "2" are others.
    words = word_hashes(sequences([1, 2, 3], [1, 2], [2, 1], [1], [2]), sequences([0, 2], [0], [0], [0], [0]))
    assert len(words) == 6
    assert words[0] == words[2]
    assert len(set(words.tolist())) == 5


def test_words_that_share_a_piece_and_sentences_without_words() -> None:
    words = word_hashes(sequences([1, 2], [], [3]), sequences([0, 0], [], [0]))
    assert len(words) == 3
    assert len(word_hashes(sequences([1, 2]), sequences([]))) == 0


def test_each_word_has_its_most_frequent_tag() -> None:
    dog, runs, odd = (word_hashes(sequences([number]), sequences([0])) for number in (1, 2, 3))
    lexicon = TagLexicon.fit(np.concatenate((dog, dog, dog, runs, runs)), np.array([0, 0, 1, 2, 2]), 3)
    logits = lexicon.logits(np.concatenate((dog, runs, odd)))
    assert logits.argmax(1).tolist() == [0, 2, 0]
    assert np.exp(logits).sum(1) == pytest.approx([1, 1, 1], abs=1e-5)
    # Three of "dog", and what is known of all words as one more: 2.5 of 6.5.
    assert np.exp(logits[0, 0]) == pytest.approx((2 + 2.5 / 6.5) / 4)
    assert np.exp(logits[2, 0]) == pytest.approx(2.5 / 6.5)


def test_only_so_many_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_lexicon, "MOST_ENTRIES", 4)
    words = word_hashes(sequences([1, 1, 2, 2, 3]), sequences([0, 1, 2, 3, 4]))
    assert TagLexicon.fit(words, np.array([0, 0, 1, 1, 0]), 2).log_shares.shape == (2, 2)
