"""Learning a vocabulary: sizes, alphabets, special tokens, and the errors people meet."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from regard.config import TokenizerConfig
from regard.data.text.tokenizer_training import KINDS, choose_vocab_size, has_words, learn
from regard.errors import DataError, UsageError

TEXTS = [
    "A dog runs across the grass.",
    "The dogs' t-shirts (red, blue) are #1!",
    "Ein Hund läuft über das Gras; die Straße ist naß.",
    "Two men are playing chess: the men's game.",
] * 3


@pytest.mark.parametrize("kind", ["bpe", "bytes", "sentencepiece", "characters", "words"])
def test_learning_is_deterministic_across_processes(kind: str) -> None:
    program = (
        "import sys, json; from regard.data.text.tokenizer_training import learn;"
        "print(learn(json.load(sys.stdin), kind=sys.argv[1], vocab_size=400, specials=['<mask>']).to_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, kind], input=json.dumps(TEXTS), capture_output=True, text=True, check=True
    )
    again = learn(TEXTS, kind=kind, vocab_size=400, specials=["<mask>"])
    assert done.stdout.rstrip("\n") == again.to_json()


def test_learning_reads_a_stream_once_and_keeps_the_size() -> None:
    tokenizer = learn((text for text in TEXTS), kind="bpe", vocab_size=300)
    assert tokenizer.vocab_size == 300
    assert list(tokenizer.vocabulary.values()) == list(range(300))
    assert learn(iter(TEXTS), kind="bytes", vocab_size=8000).vocab_size == 260


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], ["", " \n"]])
def test_no_text_to_learn_from(kind: str, texts: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        learn(texts, kind=kind, vocab_size=8000)
    assert str(caught.value) == ("There is no text to learn a vocabulary from.\nGive a corpus with at least one word.")


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("bpe", 260),
        ("bytes", 260),
        ("unigram", 11),
        ("wordpiece", 17),
        ("sentencepiece", 261),
        ("characters", 5),
        ("words", 5),
    ],
)
def test_too_small_a_vocabulary(kind: str, needed: int) -> None:
    texts = ["abc def"] * 2  # six letters and the mark of a space; WordPiece has each letter again to go on with
    with pytest.raises(UsageError) as caught:
        learn(texts, kind=kind, vocab_size=needed - 1)
    assert str(caught.value) == (
        f"A vocabulary of kind {kind} needs at least {needed} tokens for this text, not {needed - 1}:"
        f" 4 special ones and its alphabet.\n"
        f"Set tokenizer.vocab_size to {needed} or more, or to 0 to let the corpus decide."
    )
    assert learn(texts, kind=kind, vocab_size=needed).vocab_size <= needed


def test_far_too_small_a_vocabulary_for_unigram() -> None:
    with pytest.raises(UsageError, match="needs at least 11 tokens for this text, not 2:"):
        learn(["abc def"], kind="unigram", vocab_size=2)


def test_errors_of_the_texts_are_not_hidden() -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise DataError("train.en, line 2: not UTF-8.")

    with pytest.raises(DataError, match=r"^train\.en, line 2: not UTF-8\.$"):
        learn(texts(), kind="bpe", vocab_size=300)


def test_an_unknown_kind_gets_the_near_name() -> None:
    with pytest.raises(UsageError) as caught:
        learn(TEXTS, kind="wordpeice", vocab_size=300)
    assert str(caught.value) == "A vocabulary of kind 'wordpeice' cannot be learned from text.\nDid you mean wordpiece?"


@pytest.mark.parametrize("specials", [["mask"], ["<a b>"], ["<pad>"], ["<x>", "<x>"]])
def test_special_tokens_have_names_that_no_text_is_encoded_as(specials: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        learn(TEXTS, kind="words", vocab_size=300, specials=specials)
    assert str(caught.value) == f"'{specials[0]}' cannot be a special token.\nGive distinct names such as <mask>."


@pytest.mark.parametrize(
    ("n_words", "n_distinct", "size"),
    [
        (10, 10, 1_000),
        (6_000, 3_000, 1_000),
        (720_000, 39_000, 8_000),  # the size of Multi30k
        (720_000, 1_500, 1_000),  # a grammar: many sentences of few words
    ],
)
def test_vocabulary_size_follows_the_corpus(n_words: int, n_distinct: int, size: int) -> None:
    every_word = " ".join(f"{word:05d}" for word in range(n_distinct))
    assert choose_vocab_size([every_word] * (n_words // n_distinct)) == size


def test_vocabulary_size_makes_room_for_a_large_alphabet() -> None:
    characters = [chr(0x4E00 + i) for i in range(3_000)]
    assert choose_vocab_size(characters) == 4_000


@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_the_chosen_size_has_room_for_the_alphabet(kind: str) -> None:
    han = [chr(0x4E00 + n) * 2 for n in range(2_500)]
    size = choose_vocab_size(han, kind=kind)
    assert learn(han, kind=kind, vocab_size=size).vocab_size <= size == {"unigram": 3_000, "wordpiece": 6_000}[kind]


def test_the_chosen_size_has_room_for_special_tokens() -> None:
    gaps = [f"<gap_{number}>" for number in range(64)]
    han = [chr(0x4E00 + n) * 2 for n in range(960)]
    assert choose_vocab_size(han, kind="unigram") == 1_000
    size = choose_vocab_size(han, kind="unigram", specials=gaps)
    assert learn(han, kind="unigram", vocab_size=size, specials=gaps).vocab_size <= size == 2_000


def test_vocabulary_size_of_millions_of_words_stops_reading() -> None:
    def endless() -> Iterator[str]:
        yield " ".join(f"{word}" for word in range(40_000))
        while True:
            yield "dogs " * 1_000_000

    assert choose_vocab_size(endless()) == 32_000


def test_every_kind_that_can_be_chosen_is_one() -> None:
    [kind] = [field for field in dataclasses.fields(TokenizerConfig) if field.name == "kind"]
    assert set(kind.metadata["choices"]) == {"auto", *KINDS, "tiktoken", "vectors"}


def test_a_word_may_have_to_occur_twice() -> None:
    once, twice = (
        learn(["red red blue", "green red"], kind="words", vocab_size=100, min_frequency=count) for count in (1, 2)
    )
    assert once.vocab_size == 4 + 3
    assert twice.vocab_size == 4 + 1
    assert twice.encode("red blue") == [*once.encode("red"), twice.specials["<unk>"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("der Fuchs springt über den faulen Hund", True),
        ("敏捷的棕色狐狸跳过了懒狗 再见了我的朋友们大家好", False),
        ("MTYKLILNGKTLKGETTTEAVD", False),
    ],
)
def test_text_has_words_where_spaces_part_them(text: str, expected: bool) -> None:
    assert has_words([text] * 2) is expected


def test_names_that_hardly_recur_are_no_words() -> None:
    assert not has_words([f"name{n}" for n in range(100)])
    assert has_words([f"name{n} came home" for n in range(100)])
