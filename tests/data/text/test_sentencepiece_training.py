"""The kind `sentencepiece`: which characters are pieces, how much room they have, and all merges of the pieces."""

import json
from typing import Any

import pytest

from regard.data.text.sentencepiece_training import LEAST, merges_of
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import BYTES, SPACE
from regard.data.text.tokenizer_training import learn
from regard.errors import UsageError

SPECIALS = ["<pad>", "<start>", "<end>", "<unk>"]
TEXTS = ["the dog and the dogs", "der Hund und die Hunde"] * LEAST


def learned(texts: list[str], vocab_size: int = 300, **settings: Any) -> Tokenizer:
    return learn(texts, kind="sentencepiece", vocab_size=vocab_size, **settings)


def test_any_two_pieces_that_make_up_a_third_are_merged() -> None:
    assert merges_of(["bc", "abc", "ab", "a", "b", "c"]) == [("b", "c"), ("a", "bc"), ("ab", "c"), ("a", "b")]


def test_special_tokens_bytes_characters_and_merges_stand_in_this_order() -> None:
    tokenizer = learned(TEXTS, specials=["<mask>"])
    names = [*tokenizer.vocabulary]
    assert names[: 5 + 256] == [*SPECIALS, "<mask>", *BYTES]
    rest = names[5 + 256 :]
    n_characters = sum(len(name) == 1 for name in rest)
    assert rest[:n_characters] == sorted({*"".join(TEXTS)} - {" "} | {SPACE})
    assert all(len(name) > 1 for name in rest[n_characters:])
    assert "▁the" in rest[n_characters:]
    assert tokenizer.vocab_size <= 300


def test_the_file_holds_every_merge_of_its_pieces() -> None:
    tokenizer = learned(TEXTS)
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_json())["model"]["merges"]]
    merged = [*dict.fromkeys("".join(pair) for pair in merges)]
    assert merged == [name for name in [*tokenizer.vocabulary][4 + 256 :] if len(name) > 1]
    assert merges == merges_of([*merged, *(name for name in tokenizer.vocabulary if len(name) == 1)])


def test_a_rare_character_is_its_bytes() -> None:
    often, rare = ["é dog"] * LEAST, ["ж dog"] * (LEAST - 1)
    tokenizer = learned([*often, *rare])
    assert "é" in tokenizer.vocabulary and "ж" not in tokenizer.vocabulary
    assert not any("ж" in name for name in tokenizer.vocabulary)
    assert [tokenizer.piece_text(id) for id in tokenizer.encode("жé")] == [" ", "⟨D0⟩", "⟨B6⟩", "é"]
    assert tokenizer.decode(tokenizer.encode("жé")) == "жé"


def test_characters_have_at_most_half_of_the_room() -> None:
    """The most frequent ones: the vocabulary never is too small for an alphabet."""
    han = "".join(chr(0x4E00 + n) * (LEAST + n) for n in range(100))
    tokenizer = learned([han, "aaab" * 200], vocab_size=4 + 256 + 1 + 40)
    characters = {name for name in tokenizer.vocabulary if len(name) == 1}
    assert characters == {SPACE, "a", "b", *(chr(0x4E00 + n) for n in range(82, 100))}
    assert tokenizer.vocab_size <= 4 + 256 + 1 + 40


def test_the_size_that_was_asked_for_is_reached() -> None:
    """Though merges of rare characters fall out."""
    words = [f"{start}{middle}{end}" for start in "bdfgkl" for middle in "aeiou" for end in "mnrst"]
    texts = [*[" ".join(words)] * LEAST, "жук жук жука жука"]
    assert learned(texts, vocab_size=340).vocab_size == 340


def test_no_piece_crosses_a_space_a_punctuation_mark_or_a_line() -> None:
    tokenizer = learned(["it's (the dog) ...\nthe\nthe <pad> <0xE2>, <0xE2>."] * 40, vocab_size=400)
    for name in [*tokenizer.vocabulary][4 + 256 :]:
        assert SPACE not in name[1:]
        assert len(name) == 1 or name.replace(SPACE, "").isalnum()


def test_a_mark_of_spaces_is_a_piece_even_without_spaces() -> None:
    tokenizer = learned(["abab"] * LEAST, running=True)
    assert tokenizer.decode(tokenizer.encode("a b")) == "a b"
    assert SPACE in tokenizer.vocabulary


def test_a_zero_is_no_piece() -> None:
    tokenizer = learned(["a\0b"] * LEAST)
    assert not any("\0" in name for name in tokenizer.vocabulary)
    assert tokenizer.decode(tokenizer.encode("a\0b")) == "a\0b"


def test_nothing_is_normalised_but_case() -> None:
    assert learned(TEXTS, normalisation="auto").normalisation == "none"
    assert learned(TEXTS, normalisation="auto").to_json() == learned(TEXTS).to_json()
    assert learned(TEXTS, lowercase=True).encode("THE Dog") == learned(TEXTS, lowercase=True).encode("the dog")


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_unicode_forms_are_refused(form: str) -> None:
    with pytest.raises(UsageError) as caught:
        learned(TEXTS, normalisation=form)
    assert str(caught.value) == (
        f"tokenizer.normalisation = {form} is not supported for the kind sentencepiece: the normaliser of such a model is a"
        " table of characters, and holds no Unicode form exactly.\n"
        "Set tokenizer.normalisation = none, or choose another tokenizer.kind."
    )
