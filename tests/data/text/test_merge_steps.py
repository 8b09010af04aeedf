import pytest

from regard.data.text.merge_steps import merge_steps
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import learn

TEXTS = ["low lower lowest new newer newest wide wider widest großer größte"] * 20
MODEL = {
    "type": "BPE",
    "vocab": {one: id for id, one in enumerate(["l", "o", "w", "e", "r", "lo", "low", "er"])},
    "merges": ["e r", ["l", "o"], "lo w"],
}


def test_the_merge_that_was_learned_first_goes_first() -> None:
    assert merge_steps(MODEL, "lower") == [
        ["l", "o", "w", "e", "r"],
        ["l", "o", "w", "er"],
        ["lo", "w", "er"],
        ["low", "er"],
    ]
    assert merge_steps(MODEL, "erer")[1] == ["er", "e", "r"]  # of two, the leftmost
    assert merge_steps(MODEL, "l") == [["l"]]


def test_other_models_have_none() -> None:
    assert merge_steps({"type": "Unigram"}, "lower") == []
    assert merge_steps(MODEL, "") == []
    assert merge_steps(MODEL, "e" * 10_000) == []
    assert merge_steps({**MODEL, "ignore_merges": True}, "low") == [["low"]]


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece", "bytes"])
@pytest.mark.parametrize("text", ["the lowest", "newest", "größte", "a 😀😀", "wider ", "x", " "])
def test_they_end_with_the_tokens_of_the_last_word(kind: str, text: str) -> None:
    tokenizer: Tokenizer = learn(iter(TEXTS), kind=kind, vocab_size=340)
    states = tokenizer.merges(text)
    pieces = [tokenizer.piece_text(id) for id in tokenizer.encode(text)]
    assert states
    assert pieces[-len(states[-1]) :] == states[-1]
    assert [len(state) for state in states] == list(range(len(states[0]), len(states[-1]) - 1, -1))


@pytest.mark.parametrize("kind", ["words", "characters", "unigram", "wordpiece"])
def test_kinds_without_merges_tell_none(kind: str) -> None:
    assert learn(iter(TEXTS), kind=kind, vocab_size=200).merges("the lowest") == []


def test_an_empty_text_has_none() -> None:
    tokenizer = learn(iter(TEXTS), kind="bpe", vocab_size=340)
    assert tokenizer.merges("") == []
