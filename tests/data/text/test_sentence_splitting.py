"""Long text cut to fit, without a loss."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.text.sentence_splitting import split_to_fit


def at_most(n_words: int) -> Callable[[str], bool]:
    return lambda text: len(text.split()) <= n_words


def test_a_text_that_fits_is_left_whole() -> None:
    assert split_to_fit("One dog. Two dogs.", at_most(4)) == ["One dog. Two dogs."]


def test_the_cut_is_between_sentences() -> None:
    text = 'He came. "Who is it?" she said. Nobody answered!  Then (at last) he spoke.'
    assert split_to_fit(text, at_most(6)) == [
        "He came.",
        '"Who is it?" she said.',
        "Nobody answered!",
        "Then (at last) he spoke.",
    ]


def test_as_many_sentences_as_fit_stay_together() -> None:
    assert split_to_fit("One. Two. Three. Four. Five.", at_most(2)) == ["One. Two.", "Three. Four.", "Five."]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Um 3.30 Uhr kam er. Dann ging er.", ["Um 3.30 Uhr kam er.", "Dann ging er."]),
        ("Er kam z. b. am Montag. Ärzte kamen auch.", ["Er kam z. b. am Montag.", "Ärzte kamen auch."]),
        ("¿Quién es? ¡Nadie habla aquí!", ["¿Quién es?", "¡Nadie habla aquí!"]),
        ("Она пришла домой рано. Все спали.", ["Она пришла домой рано.", "Все спали."]),
    ],
)
def test_sentences_of_several_languages(text: str, parts: list[str]) -> None:
    assert split_to_fit(text, at_most(max(len(part.split()) for part in parts))) == parts


def test_sentences_without_spaces_between_them() -> None:
    assert split_to_fit("他来了。她走了！谁？", lambda text: len(text) <= 5) == ["他来了。", "她走了！", "谁？"]


def test_a_long_sentence_is_cut_at_its_clauses_and_else_between_words() -> None:
    text = "When he came, she left; nobody knew why they had quarrelled so"
    assert split_to_fit(text, at_most(5)) == ["When he came, she left;", "nobody knew why they had", "quarrelled so"]


def test_one_endless_word_is_cut_anywhere() -> None:
    parts = split_to_fit("x" * 10, lambda text: len(text) <= 3)
    assert "".join(parts) == "x" * 10
    assert max(map(len, parts)) <= 3


def test_what_can_never_fit_comes_back_in_single_characters() -> None:
    assert split_to_fit("abc", lambda text: False) == ["a", "b", "c"]


def test_the_space_between_parts_takes_no_room() -> None:
    assert split_to_fit("Eins. Zwei. Drei.", lambda text: len(text) <= 5) == ["Eins.", "Zwei.", "Drei."]
    assert split_to_fit("Eins. Zwei. ", lambda text: len(text) <= 11) == ["Eins. Zwei."]


def test_empty_text_has_no_parts() -> None:
    assert split_to_fit("  \t ", lambda text: True) == []
    assert split_to_fit("", lambda text: True) == []


MARKS = st.sampled_from(
    ["a", "Ä", "文", " ", "  ", "\n", "\u2028", ".", "!", "。", ",", "—", '"', "”", "(", "1", "_", "é"]
)


@given(st.one_of(st.lists(MARKS, max_size=60).map("".join), st.text(max_size=60)), st.integers(1, 12))
def test_parts_fit_and_lose_nothing_but_spaces(text: str, limit: int) -> None:
    parts = split_to_fit(text, lambda part: len(part) <= limit)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= limit for part in parts)
    assert all(part == part.strip() != "" for part in parts)
