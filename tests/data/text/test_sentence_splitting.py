"""Long text cut to fit, without a loss."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.text.sentence_splitting import count_sentences, separator, split_to_fit


def at_most(n_words: int) -> Callable[[str], bool]:
    return lambda text: len(text.split()) <= n_words


def parts(text: str, fits: Callable[[str], bool], usual: Callable[[str], bool] | None = None) -> list[str]:
    return [text[start:end] for start, end in split_to_fit(text, fits=fits, usual=usual or fits)]


def sentences(text: str) -> list[str]:
    return parts(text, lambda part: True, lambda part: count_sentences(part) == 1)


def test_a_text_that_fits_is_left_whole() -> None:
    assert parts("One dog. Two dogs.", at_most(4)) == ["One dog. Two dogs."]


def test_the_cut_is_between_sentences() -> None:
    text = 'He came. "Who is it?" she said. Nobody answered!  Then (at last) he spoke.'
    assert parts(text, at_most(6)) == [
        "He came.",
        '"Who is it?" she said.',
        "Nobody answered!",
        "Then (at last) he spoke.",
    ]


def test_as_many_sentences_as_usual_stay_together() -> None:
    assert parts("One. Two. Three. Four. Five.", at_most(9), at_most(2)) == ["One. Two.", "Three. Four.", "Five."]
    assert parts("One. Two. Three.", at_most(9), lambda part: count_sentences(part) <= 2) == ["One. Two.", "Three."]


def test_a_sentence_is_whole_where_it_fits_though_it_is_longer_than_usual() -> None:
    assert parts("A very long one, it seems. Yes.", at_most(6), at_most(2)) == ["A very long one, it seems.", "Yes."]


@pytest.mark.parametrize(
    "text",
    [
        "Um 3.30 Uhr kam er. | Dann ging er.",
        "Er kam am 3. Mai, z. B. mit Dr. Müller bzw. Hrn. Maier. | Ärzte kamen auch.",
        "¿Quién es? | ¡Nadie habla aquí!",
        "Она пришла домой рано. | Все спали.",
        "It cost 1,000 dollars, e.g. in the U.S. and Dr. Smith paid 3.5. | Then he left.",
        "See No. 5 and Fig. 2 of Vaswani et al. 2017. | No. | He did not see it.",
        "J. R. R. Tolkien wrote it, Ph.D. or not. | So do I. | Go! | (Really?) | Yes…  | And 12 more.",
        "Wait... | What? | “Nothing.” | ‘Fine.’",
        "Yahoo! is a name. | The site example.com too. | It is at www.example.com. | Look there.",
        "« Oui ! » | Il partit. | « Non ! » dit-il.",
        "»Ja.« | »Nein.«",
        "هل أنت بخير؟ | نعم. | أنا بخير.",
        "वह आया। | वह गया।",
        "ის მოვიდა. | ის წავიდა.",
        "他来了。 | “她走了！” | 谁？ | 他说:好! | 对",
        "1. First this. | 2. Then that.",
        "the man runs . | he sees dr. smith , e.g. there . | is it so ? | yes",
    ],
)
def test_sentences_of_several_languages(text: str) -> None:
    expected = [part.strip() for part in text.split("|")]
    written = text.replace(" | ", "" if "。" in text else " ")
    assert sentences(written) == expected
    assert count_sentences(written) == len(expected)


def test_sentences_without_spaces_between_them() -> None:
    assert parts("他来了。她走了！谁？", lambda text: len(text) <= 5) == ["他来了。", "她走了！", "谁？"]


def test_each_line_is_a_part() -> None:
    text = "  Dear Anna,\n\n\tcome here. Now.\r\nYours\u2028Peter\n"
    assert sentences(text) == ["Dear Anna,", "come here.", "Now.", "Yours", "Peter"]
    assert parts(text, at_most(9)) == ["Dear Anna,", "come here. Now.", "Yours", "Peter"]


def test_a_long_sentence_is_cut_at_its_clauses_and_else_between_words() -> None:
    text = "When he came, she left; nobody knew why they had quarrelled so"
    assert parts(text, at_most(5)) == ["When he came, she left;", "nobody knew why they had", "quarrelled so"]
    assert parts("He paid 1,000 and 3,500 at 12:30 yesterday, too", at_most(4)) == [
        "He paid 1,000 and",
        "3,500 at 12:30 yesterday,",
        "too",
    ]


def test_one_endless_word_is_cut_anywhere() -> None:
    found = parts("x" * 10, lambda text: len(text) <= 3)
    assert "".join(found) == "x" * 10
    assert max(map(len, found)) <= 3


def test_what_can_never_fit_comes_back_in_single_characters() -> None:
    assert parts("abc", lambda text: False) == ["a", "b", "c"]


def test_the_space_between_parts_takes_no_room() -> None:
    assert parts("Eins. Zwei. Drei.", lambda text: len(text) <= 5) == ["Eins.", "Zwei.", "Drei."]
    assert parts("Eins. Zwei. ", lambda text: len(text) <= 11) == ["Eins. Zwei."]


def test_empty_text_has_no_parts() -> None:
    assert parts("  \t ", lambda text: True) == []
    assert parts("", lambda text: True) == []
    assert count_sentences(" ") == 0


@pytest.mark.parametrize(
    ("gap", "source", "output", "expected"),
    [
        (" ", ".", ".", " "),
        ("  ", ".", ".", "  "),
        ("\n\n  ", ".", "。", "\n\n  "),
        ("", "。", ".", " "),  # Chinese to English
        (" ", ".", "。", ""),  # English to Chinese
        ("", "。", "。", ""),
        ("", "x", "x", ""),  # inside an endless word
        (" ", "다", "다", " "),
    ],
)
def test_what_stands_between_the_outputs_of_two_parts(gap: str, source: str, output: str, expected: str) -> None:
    assert separator(gap, source, output) == expected


def test_a_long_text_is_split_in_linear_time() -> None:
    text = "He came, e.g. today. " * 20_000
    assert count_sentences(text) == 20_000


@pytest.mark.parametrize("mark", [".", "!"])
def test_so_is_a_long_row_of_marks(mark: str) -> None:
    # Tried from each mark to the last, this would take hours.
    assert count_sentences("He came" + mark * 1_000_000 + " She left.") == 2
    assert count_sentences("He came" + mark * 1_000_000 + "she left.") == 1


MARKS = st.sampled_from(
    ["a", "Ä", "文", " ", "  ", "\n", "\u2028", ".", "!", "。", ",", "—", '"', "”", "(", "1", "_", "é"]
)


@given(st.one_of(st.lists(MARKS, max_size=60).map("".join), st.text(max_size=60)), st.integers(1, 12))
def test_parts_fit_and_lose_nothing_but_spaces(text: str, limit: int) -> None:
    spans = split_to_fit(text, fits=lambda part: len(part) <= limit, usual=lambda part: len(part) <= limit)
    cut = [text[start:end] for start, end in spans]
    ends = [0, *(place for span in spans for place in span), len(text)]
    assert ends == sorted(ends)
    assert all(not text[end:start].strip() for end, start in zip(ends[::2], ends[1::2], strict=True))
    assert all(len(part) <= limit for part in cut)
    assert all(part == part.strip() != "" for part in cut)
