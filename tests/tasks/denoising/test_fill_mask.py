"""Blanks in a text: encoded as what could stand there, filled in where they stood."""

import re

import pytest

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import SPACED, learn
from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import (
    Filled,
    Guess,
    find_blanks,
    list_texts,
    most_tokens,
    only_window,
    show_blanks,
)

TEXTS = ["The dog barks.", "The cat sees (the dog).", "dogs bark, the old dog sleeps", "Über Äpfel läuft ein Käfer"] * 5
BLANK = 4


def tokenizer(kind: str = "bpe", *, running: bool = False) -> Tokenizer:
    return learn(TEXTS, kind=kind, vocab_size=400, specials=["<mask>"], running=running)


def encoded(kind: str, text: str, *, running: bool = False) -> tuple[list[str], Tokenizer]:
    """The tokens of a text with blanks, as people read them."""
    own = tokenizer(kind, running=running)
    blanks = find_blanks(text, own)
    return [own.piece_text(id) for id in blanks.row([BLANK] * blanks.count)], own


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("blank", ["[MASK]", "<mask>"])
def test_a_blank_is_a_word_with_the_space_in_front_of_it(blank: str, running: bool) -> None:
    tokens, _ = encoded("bpe", f"The {blank} barks.", running=running)
    assert tokens[-3:] == ["<mask>", " barks", "."]
    assert "".join(tokens[:-3]) == ("The" if running else " The")


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    ("kind", "unit", "n_hidden"),
    [
        ("bpe", r"\w+", 18),
        ("wordpiece", r"\w+", 18),
        ("unigram", r"\w+", 1),
        ("characters", r"\S", 70),
        ("bytes", r"[a-z.]", 55),
    ],
)
def test_a_text_with_one_token_hidden_is_the_text_but_for_this_token(
    kind: str, unit: str, n_hidden: int, running: bool
) -> None:
    """Hide each word (or character) that is one token: the others stay, and with the token again so does the text."""
    own = tokenizer(kind, running=running)
    n_found = 0
    for text in TEXTS[:4]:
        pieces = own.pieces(text)
        ids = [piece.id for piece in pieces]
        for word in re.finditer(unit, text):
            places = [
                place for place, piece in enumerate(pieces) if piece.end > word.start() and piece.start < word.end()
            ]
            space = " " if kind in SPACED and text[: word.start()].endswith(" ") else ""
            if len(places) > 1 or pieces[places[0]].text != space + word[0]:
                continue
            n_found += 1
            blanks = find_blanks(f"{text[: word.start()]}[MASK]{text[word.end() :]}", own)
            assert blanks.row([BLANK]) == [BLANK if place == places[0] else id for place, id in enumerate(ids)]
            assert blanks.filled(blanks.guesses([[ids[places[0]]]])) == text
    assert n_found >= n_hidden


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "characters", "bytes", "words"])
@pytest.mark.parametrize("blank", ["[MASK]", "<mask>"])
def test_a_blank_stays_one_where_text_is_lower_cased(kind: str, blank: str) -> None:
    own = learn(TEXTS, kind=kind, vocab_size=400, specials=["<mask>"], lowercase=True, normalisation="nfc")
    cased, small = find_blanks(f"The {blank} BARKS.", own), find_blanks(f"the {blank} barks.", own)
    assert cased.count == 1
    assert cased.row([BLANK]) == small.row([BLANK])
    assert cased.filled([" dog"]) == "The dog BARKS." or kind in ("characters", "bytes")  # the user's own text


def test_words_are_filled_in_where_they_stood() -> None:
    own = tokenizer("words")
    blanks = find_blanks("The  [MASK] barks , [MASK]", own)
    dog, cat = own.encode("dog cat")
    assert blanks.filled(blanks.guesses([[dog], [cat]])) == "The  dog barks , cat"


def test_several_blanks_and_several_tokens_in_one() -> None:
    own = tokenizer()
    blanks = find_blanks("[MASK] dog [MASK][MASK]", own)
    assert blanks.count == 3
    assert blanks.row([1, 2, 3]) == [1, *own.encode("dog"), 2, 3]
    fillings = [own.encode("The old"), own.encode("läuft"), own.encode("barks")]
    assert blanks.guesses(fillings) == ["The old", " läuft", " barks"]
    assert blanks.filled(blanks.guesses(fillings)) == "The old dog läuft barks"
    assert blanks.filled(blanks.guesses([[], [], []])) == " dog"


def test_a_text_without_a_blank_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        find_blanks("The dog\nbarks", tokenizer())
    assert str(caught.value) == (
        r"There is no [MASK] in 'The dog\nbarks'." + "\nWrite [MASK] in the place of what is to be guessed."
    )


def test_of_a_long_text_what_stands_around_the_blanks_is_read() -> None:
    own = tokenizer("characters")

    def read(text: str, most: int | None) -> list[tuple[str, int, int, bool]]:
        """The windows of a text, with _ for a blank; which blanks of each are its own; whether it is cut."""
        return [
            ("_".join(map(own.decode, one.blanks.ids)), one.own.start, one.own.stop, one.cut)
            for one in find_blanks(text.replace("_", "[MASK]"), own).windows(most)
        ]

    assert read("the_dog_s", 9) == read("the_dog_s", None) == [("the_dog_s", 0, 2, False)]
    assert read("dogs bark_the old dog", 5) == [("rk_th", 0, 1, True)]
    assert read("_dogs bark", 5) == [("_dogs", 0, 1, True)]
    assert read("dogs bark_", 5) == [("bark_", 0, 1, True)]
    assert read("dogs _a_ bark, the_dog", 8) == [("s _a_ ba", 0, 2, True), (" the_dog", 0, 1, True)]
    assert read("a_e_l_s_d", 6) == [("a_e_l_", 0, 2, True), ("_l_s_d", 1, 3, True)], "the others stay blanks"
    assert read("__", 1) == [("_", 0, 1, True), ("_", 0, 1, True)]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 30])
@pytest.mark.parametrize("text", ["_", "____", "the old_dog sees the cat_the_dog_s", "_dogs bark, the old dog sleeps_"])
def test_every_blank_of_a_long_text_is_read_once(text: str, most: int) -> None:
    own = tokenizer("characters")
    blanks = find_blanks(text.replace("_", "[MASK]"), own)
    windows = blanks.windows(most)
    assert all(len(one.blanks.row([BLANK] * one.blanks.count)) <= most for one in windows)
    assert sum(len(range(one.blanks.count)[one.own]) for one in windows) == blanks.count


def test_how_many_tokens_positions_leave_room_for() -> None:
    class Short:
        max_length = 7

    assert most_tokens(Short(), n_specials=2) == 5
    assert most_tokens(object(), n_specials=2) is None


def test_a_picture_shows_one_window() -> None:
    blanks = find_blanks("dogs [MASK] bark, the [MASK] dog", tokenizer("characters"))
    assert only_window(blanks, None) is blanks
    with pytest.raises(UsageError) as caught:
        only_window(blanks, 8)
    assert str(caught.value) == (
        "The text was read around its blanks in 2 parts, and a picture shows one.\nGive a shorter text."
    )


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("bpe", "[MASK] dog [MASK]."), ("words", "[MASK] dog [MASK] ."), ("wordpiece", "[MASK] dog [MASK].")],
)
def test_hidden_tokens_are_shown_as_blanks(kind: str, shown: str) -> None:
    own = tokenizer(kind)
    ids = [BLANK, *find_blanks("[MASK] dog", own).ids[1], BLANK, *find_blanks("[MASK].", own).ids[1]]
    assert show_blanks(ids, (BLANK,), own) == shown
    assert show_blanks([BLANK], (BLANK,), own) == "[MASK]"


def test_characters_are_shown_without_more_spaces() -> None:
    own = tokenizer("characters")
    d, o, g = own.encode("dog")
    assert show_blanks([d, BLANK, g], (BLANK,), own) == "d[MASK]g"
    assert show_blanks([BLANK, o, g], (BLANK,), own) == "[MASK]og"


def test_what_was_hidden_is_listed() -> None:
    assert list_texts([" dog", "s", " "]) == "dog | s |  "


def test_a_filled_text_shows_itself() -> None:
    guesses = ((Guess(text=" dog", probability=0.75), Guess(text=" cat\t", probability=0.125)),)
    found = Filled(source="The [MASK]\nbarks.", text="The dog\nbarks.", guesses=guesses)
    assert found.lines() == ["The dog barks."]
    assert found.lines(top=2) == ["The dog barks.", "1\tdog\t0.7500", "1\tcat\t0.1250"]
    assert found.cells() == {"text": "The [MASK]\nbarks.", "filled": "The dog\nbarks."}
    assert found.to_json() == {
        "filled": "The dog\nbarks.",
        "blanks": [[{"text": " dog", "probability": 0.75}, {"text": " cat\t", "probability": 0.125}]],
        "cut": False,
    }
