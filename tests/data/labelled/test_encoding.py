"""Texts and words as ids."""

import random
from itertools import product

import pytest

from regard.data.labelled.encoding import encode_texts, encode_words, number_of
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import KINDS, learn

WORDS = ["The", "dog's", "cat", "barked", "-", "und", "größer", "10", "...", "日本", "😀", "U.S.", "can't", "re-enter"]


def sentences(count: int, *, seed: int = 3) -> list[tuple[str, ...]]:
    chance = random.Random(seed)
    return [tuple(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(count)]


@pytest.fixture(scope="module", params=[(kind, running) for kind in KINDS for running in (False, True)], ids=str)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind, running = request.param
    texts = [" ".join(one) for one in sentences(200)]
    return learn(texts, kind=kind, vocab_size=320, running=running)


def test_a_word_begins_with_its_first_piece(tokenizer: Tokenizer) -> None:
    given = [*sentences(60, seed=4), ("never", "seen", "☂", "New York", "x")]
    found = encode_words(given, tokenizer, 10_000)
    assert found.ids == tokenizer.encode_batch([" ".join(one) for one in given])
    for words, firsts in zip(given, found.firsts, strict=True):
        pieces = tokenizer.pieces(" ".join(words))
        assert len(firsts) == len(words)
        assert firsts == sorted(set(firsts))
        for word, first in zip(words, firsts, strict=True):
            shown = pieces[first].text.strip()
            assert shown
            assert word.startswith(shown)


def test_a_word_without_a_piece_of_its_own_takes_the_one_at_its_place() -> None:
    tokenizer = learn(["a b c d"], kind="words", vocab_size=20)
    [firsts] = encode_words(
        [("a", "\u2007", "b", "\u2007")], tokenizer, 100
    ).firsts  # white space, to this kind nothing
    assert firsts == [0, 1, 1, 1]
    assert encode_words([("\u2007",)], tokenizer, 100).firsts == [[]]
    assert encode_words([], tokenizer, 100).ids == []


def test_words_beyond_the_cut_are_not_asked() -> None:
    tokenizer = learn(["a b c d"], kind="characters", vocab_size=20)
    found = encode_words([("ab", "cd", "ab")], tokenizer, 4)
    assert [len(ids) for ids in found.ids] == [4]
    assert found.firsts == [[0, 3]]


def test_texts_lose_the_white_space_around_them() -> None:
    tokenizer = learn(["a b c d"], kind="bpe", vocab_size=300)
    assert encode_texts([" a b\n"], ["c "], tokenizer, 100) == encode_texts(["a b"], ["c"], tokenizer, 100)
    found = encode_texts(["a", "b"], [], tokenizer, 100)
    assert found.ids_b == [[], []]
    assert found.n_lost == [0, 0]
    assert encode_texts([], [], tokenizer, 100).ids == []


def test_of_two_texts_the_longer_is_cut_first() -> None:
    tokenizer = learn(["abc"], kind="characters", vocab_size=20)
    for first, second, room in product(range(7), range(7), range(1, 9)):
        found = encode_texts(["a" * first], ["b" * second], tokenizer, room)
        expected = [first, second]
        while sum(expected) > room:  # as Devlin et al.'s code has it
            expected[0 if expected[0] > expected[1] else 1] -= 1
        assert [len(found.ids[0]), len(found.ids_b[0])] == expected
        assert found.n_lost == [max(0, first + second - room)]


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), (" -2.5e3 ", -2500.0), ("0", 0.0)])
def test_numbers(text: str, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "not a number"), ("1,5", "not a number"), ("1_0", "not a number"), ("nan", "NaN"), ("-inf", "infinite")],
)
def test_what_is_no_number_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        number_of(text)
